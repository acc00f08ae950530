"""outcome: what a walk gave, for `report` to draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from fp4ref.evidence.comparison import Comparison
from fp4ref.evidence.side_by_side import Pair
from fp4ref.walk.inputs import NonFinite


@dataclass(frozen=True)
class KernelReport:
    """The compiled kernel's run beside the emulator's.

    Attributes
    ----------
    code
        Where its PTX comes from; '' if only a GPU ran.
    events
        Hardware events compared, by tensor.
    pairs
        One event of each tensor: the Python line, the CUDA line, the bytes.
    gpu, gpu_ok
        The card on which the kernel ran, and whether D (and SFD) is the same.
    no_gpu
        Why no card ran though one would have been used, and what ran instead.
    """

    code: str
    ok: bool
    events: dict[str, int]
    first_difference: str
    pairs: tuple[str, ...]
    gpu: str = ""
    gpu_ok: bool = True
    no_gpu: str = ""

    @classmethod
    def of_card(cls) -> KernelReport:
        """Return what there is to say before a card runs: a card has no events."""
        return cls("", True, {}, "", ())

    @classmethod
    def of(cls, code: str, found: Comparison, pairs: Sequence[Pair]) -> KernelReport:
        """Keep the first event of each tensor."""
        first: dict[str, str] = {}
        for pair in pairs:
            first.setdefault(pair.key.tensor, str(pair))
        difference = str(found.first_difference or "")
        return cls(
            code, found.ok, dict(found.counts), difference, tuple(first.values())
        )


@dataclass(frozen=True)
class WalkReport:
    """What was computed, what the machine did, and what was checked.

    Attributes
    ----------
    quantisation_error
        Relative Frobenius errors of y against float64: of the result, and with only
        x, only w quantised. Over the elements that are finite; empty if none is.
    nonfinite
        NaN and Inf of x, w and y, where there are any.
    notes
        What else happened to the numbers, in sentences.
    bits_equal, bits_compared
        Elements of D (and scales of SFD) that equal the integer model.
    bound_ratio
        Largest |accumulator - float64| over what the datapath may lose; infinite if
        a NaN is where none belongs, or is missing.
    machine
        Counts of what ran.
    frames_seen, frames_expected
        Event frames of the index that this run emitted, and those in the index.
    kernel
        The compiled CUDA kernel against the emulator; None if it did not run.
    seconds
        Wall time by part.
    """

    title: str
    source: str
    sizes: tuple[int, int, int]
    config: dict[str, Any]
    quantisation: dict[str, float]
    quantisation_error: dict[str, float]
    tiles_run: int
    tiles_in_all: int
    bits_equal: int
    bits_compared: int
    bound_ratio: float
    machine: dict[str, int]
    frames_seen: int
    frames_expected: int
    seconds: dict[str, float]
    kernel: KernelReport | None = None
    trace_file: str = ""
    nonfinite: dict[str, NonFinite] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every bit and the bound hold, and the kernel agrees."""
        kernel_ok = self.kernel is None or (self.kernel.ok and self.kernel.gpu_ok)
        return (
            self.bits_equal == self.bits_compared
            and self.bound_ratio <= 1
            and kernel_ok
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self) | {"ok": self.ok}
