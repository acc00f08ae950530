"""errors: named faults of the machine and named refusals of bad input.

A fault says what happened, who did it, where (address and, when known, matrix
coordinates), the rule that was broken and the remedy. `HardwareFault` and its
children stand for what silicon would do wrong, often in silence. `InputError` and
its children are for the caller of the library.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

_LISTED = " (`fp4ref fidelity --gaps` lists what is not modelled)"


class Fp4refError(Exception):
    """Root of every error that fp4ref raises on purpose."""


class InputError(Fp4refError, ValueError):
    """The caller passed a shape, dtype, file or option that cannot be used.

    Parameters
    ----------
    gap
        If others have such an option: id of its row in the list that
        ``fp4ref fidelity --gaps`` prints.
    """

    def __init__(self, what: str = "", *, gap: str = "") -> None:
        self.gap = gap
        super().__init__(what + (f". Gap: {gap}{_LISTED}" if gap else ""))


class ConfigError(InputError):
    """A kernel configuration that the machine cannot run."""


class LayoutError(InputError):
    """A tensor is in another layout than the operation needs."""


class TensorMapError(InputError):
    """`cuTensorMapEncodeTiled` would return CUDA_ERROR_INVALID_VALUE."""


class TraceError(InputError):
    """A trace file cannot be read, or a step is outside the trace."""


class PipelineMisuse(Fp4refError):
    """A pipeline stage was left without commit or release."""


class HardwareFault(Fp4refError):
    """Something that silicon would do wrong, reported by name.

    Parameters
    ----------
    what
        What happened, with the numbers.
    who
        The agent, for example ``"cta (5,0,0) warp 2"``.
    where
        Address, and matrix coordinates where they are known.
    rule
        The rule that was broken, with its source.
    remedy
        What to do about it.

    Attributes
    ----------
    trace
        The `Trace` up to the fault, if `fp4ref.run` recorded one.
    statement
        ``file:line`` of the compiled kernel's statement at which it happened, or
        ``PTX:line``; empty where no statement of compiled code is to blame.
    races
        Accesses up to the fault that nothing orders, if the machine looked for them.
    """

    trace: object | None = None
    statement: str = ""
    races: tuple[Any, ...] = ()

    def __init__(
        self,
        what: str,
        *,
        who: str = "",
        where: str = "",
        rule: str = "",
        remedy: str = "",
    ) -> None:
        self.what, self.who, self.where = what, who, where
        self.rule, self.remedy = rule, remedy
        super().__init__(what)

    def __str__(self) -> str:
        parts = [f"{type(self).__name__}: {self.what}"]
        for label in ("who", "where", "rule", "remedy"):
            if text := getattr(self, label):
                parts.append(f"  {label}: {text}")
        return "\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """JSON values of the whole report."""
        said = ("what", "who", "where", "rule", "remedy")
        return {
            "type": type(self).__name__,
            **{name: getattr(self, name) for name in said},
            "races": [race.to_dict() for race in self.races],
        }


@dataclass(frozen=True, slots=True)
class RefusedForm:
    """One form of an instruction that a kernel has and this machine does not.

    Attributes
    ----------
    opcode
        With its modifiers; of a call with the function's name.
    lines
        Lines of the PTX text.
    gap
        Id of its row in the list of gaps.
    """

    opcode: str
    lines: tuple[int, ...]
    gap: str


class NotModelled(HardwareFault):
    """The instruction or option exists, but this machine does not model it.

    Parameters
    ----------
    gap
        Id of its row in the list that ``fp4ref fidelity --gaps`` prints; of several,
        with commas between.
    forms
        All that a kernel has of them, where its text was looked through.
    """

    def __init__(
        self,
        what: str,
        *,
        gap: str,
        forms: tuple[RefusedForm, ...] = (),
        **said: str,
    ) -> None:
        self.gap, self.forms = gap, forms
        super().__init__(what, **said)

    def __str__(self) -> str:
        return f"{super().__str__()}\n  gap: {self.gap}{_LISTED}"

    def to_dict(self) -> dict[str, Any]:
        """JSON values of the whole report."""
        return super().to_dict() | {"gap": self.gap}


class MisalignedAddress(HardwareFault):
    """An address does not have the alignment the instruction needs."""


class OutOfBounds(HardwareFault):
    """An address lies outside the memory or outside every allocation."""


class UninitialisedRead(HardwareFault):
    """Memory was read that nothing has written."""


class ReadWhileInFlight(HardwareFault):
    """Memory was touched while an asynchronous operation still uses it."""


class MissingProxyFence(HardwareFault):
    """The async proxy reads what the generic proxy wrote, with no fence between."""


class RegistersNotReady(HardwareFault):
    """A register of a tcgen05.ld was overwritten before tcgen05.wait::ld."""


class MbarrierFault(HardwareFault):
    """An mbarrier was used before init, after inval, or beyond its counts."""


class MbarrierCorrupted(MbarrierFault):
    """The mbarrier object was changed by something other than mbarrier operations."""


class DescriptorFault(HardwareFault):
    """A shared-memory matrix descriptor or instruction descriptor is not legal."""


class ScaleFactorFault(HardwareFault):
    """Scale factors in TMEM are not where or how the MMA needs them."""


class CollectorFault(HardwareFault):
    """An MMA takes A from a collector buffer that does not hold it."""


class TmemAllocationFault(HardwareFault):
    """TMEM columns were allocated, used or freed against the rules."""


class LaneQuarterViolation(HardwareFault):
    """A warp touched TMEM lanes outside its own quarter."""


class ClusterFault(HardwareFault):
    """A cluster rank, mask or shared::cluster address names no CTA."""


class LaunchFault(HardwareFault):
    """A launch asks for more than the machine has."""


class ExitFault(HardwareFault):
    """A CTA exited with work in flight or resources held."""


@dataclass(frozen=True, slots=True)
class DeadlockRoot:
    """The barrier that broke the chain.

    Attributes
    ----------
    barrier, where
        Its label or address, and both.
    what
        How its books are wrong: arrivals and bytes, expected and found.
    by
        Who should have signalled it; empty if nobody ever did.
    statement
        ``file:line`` where that is or was done; empty without a trace.
    step
        Step of the trace where that was done last, or where the wait for it began;
        -1 untraced.
    """

    barrier: str
    where: str
    what: str
    by: str
    statement: str
    remedy: str
    step: int = -1

    def __str__(self) -> str:
        place = f", at {self.statement}" if self.statement else ""
        by = f"\n    signalled by {self.by}{place}" if self.by else ""
        return f"  root: {self.where}: {self.what}{by}\n    {self.remedy}"

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)


class DeadlockError(HardwareFault):
    """No warp can run and nothing is in flight.

    The wait-for graph is in `edges`: (waiter, what it waits for, who could release it).
    `root` is the barrier at which it began, or None where no mbarrier is waited for.
    """

    def __init__(
        self,
        what: str,
        edges: list[tuple[str, str, str]],
        root: DeadlockRoot | None = None,
        **where: str,
    ) -> None:
        self.edges, self.root = edges, root
        super().__init__(what, **where)

    def __str__(self) -> str:
        lines = [super().__str__()]
        if self.root:
            lines.append(str(self.root))
        lines.append("  wait-for graph:")
        for waiter, on, released_by in self.edges:
            lines.append(
                f"    {waiter}\n      waits for {on}\n      released by {released_by}"
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """JSON values of the whole report."""
        graph = {
            "edges": [list(edge) for edge in self.edges],
            "root": self.root.to_dict() if self.root else None,
        }
        return super().to_dict() | graph
