"""Part 1. mbarrier: pending arrivals, transaction bytes, phase.

An mbarrier is one 64-bit word in shared memory; `mbarrier_unit` counts in it. It has
ONE arrival count. The phase completes when no arrival is pending *and* the tx-count is
0; then the phase flips and the pending count is reloaded. A wait names the parity of
the phase it waits for, so on a fresh barrier parity 1 passes at once and parity 0
blocks. Source: PTX, mbarrier.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from fp4ref.errors import ClusterFault, MbarrierFault
from fp4ref.hardware.mbarrier_unit import MAX_COUNT, MbarrierState, MbarrierUnit
from fp4ref.hardware.mbarrier_unit import NBYTES as NBYTES
from fp4ref.hardware.mbarrier_wait import MbarrierWait
from fp4ref.hardware.sm import Blocked, Cta, Warp


@dataclass(frozen=True, slots=True)
class Semantics:
    """``.sem`` and ``.scope`` of an arrival or a wait.

    Attributes
    ----------
    relaxed
        Whether it neither releases nor acquires.
    scope
        ``"cta"`` or ``"cluster"``; '' where the instruction names none.
    """

    relaxed: bool = False
    scope: str = ""


DEFAULT = Semantics()
RELAXED = Semantics(relaxed=True)


def _unit(warp: Warp, address: int) -> tuple[Cta, MbarrierUnit, int]:
    """Return the CTA, its mbarriers and the local offset that `address` names."""
    cta, offset = warp.cta.resolve_shared(address)
    return cta, cta.mbarriers, offset


def _own(
    warp: Warp, address: int, operation: str, parity: int = 0
) -> tuple[MbarrierUnit, int]:
    """Return the mbarriers of the warp's own CTA, which alone `operation` may use."""
    cta, unit, at = _unit(warp, address)
    if cta is not warp.cta:
        raise ClusterFault(
            f"{operation} on an mbarrier of cta {cta.ctaid}",
            who=warp.who,
            where=unit.smem.describe(at),
            rule=f"{operation} takes a .shared::cta address [PTX: {operation}]",
            remedy="let a warp of that CTA do it; only arrive, expect_tx and "
            "complete_tx work on a remote mbarrier",
        )
    if parity not in (0, 1):
        raise MbarrierFault(
            f"{operation} with parity {parity}",
            who=warp.who,
            where=unit.smem.describe(at),
            rule=f"the phase parity is 0 or 1 [PTX: {operation}]",
            remedy="pass the count of completed rounds modulo 2",
        )
    return unit, at


def _check_operand(warp: Warp, what: str, value: int, least: int) -> None:
    if not least <= value <= MAX_COUNT:
        raise MbarrierFault(
            f"{what} of {value}",
            who=warp.who,
            rule=f"it is {least} .. {MAX_COUNT} [PTX: mbarrier]",
            remedy="check how the operand is computed",
        )


def init(warp: Warp, address: int, count: int) -> None:
    """``mbarrier.init.shared::cta.b64 [address], count``.

    Phase 0, `count` arrivals pending and expected, tx-count 0. Frame 1.4.

    Raises
    ------
    MbarrierFault
        `count` is outside 1 .. 2^20 - 1, or the word is a live mbarrier.
    ClusterFault
        The address is in another CTA.
    """
    unit, at = _own(warp, address, "mbarrier.init")
    if not 1 <= count <= MAX_COUNT:
        raise MbarrierFault(
            f"mbarrier.init with count {count}",
            who=warp.who,
            where=unit.smem.describe(at),
            rule=f"the expected arrival count is 1 .. {MAX_COUNT} [PTX: mbarrier.init]",
            remedy="count the threads or commits that arrive in one phase",
        )
    if at % NBYTES:
        unit.load(at)
    if at in unit.live:
        raise MbarrierFault(
            "mbarrier.init on a live mbarrier",
            who=warp.who,
            where=unit.smem.describe(at),
            rule="an mbarrier is invalidated before it is initialised again [PTX: "
            "mbarrier.init]",
            remedy="execute mbarrier.inval first",
        )
    warp.machine.order.mbarrier_init(warp.actor, unit.smem, at)
    unit.store(at, MbarrierState(0, count, count, 0))
    warp.record("mbarrier.init", {"mbar": address, "count": count})


def inval(warp: Warp, address: int) -> None:
    """``mbarrier.inval``: the word becomes plain memory."""
    unit, at = _own(warp, address, "mbarrier.inval")
    unit.load(at)
    warp.machine.order.mbarrier_inval(warp.actor, unit.smem, at)
    del unit.live[at]
    warp.record("mbarrier.inval", {"mbar": address})


def _observe(
    warp: Warp, unit: MbarrierUnit, at: int, operation: str, semantics: Semantics
) -> None:
    """Let the engine see an arrival: a use of the barrier that releases."""
    order = warp.machine.order
    order.mbarrier_use(warp.actor, unit.smem, at, operation)
    phase = unit.completed.get(at, 0)
    order.mbarrier_release(
        warp.actor,
        unit.smem,
        at,
        phase,
        semantics.scope,
        relaxed=semantics.relaxed,
    )


def arrive(
    warp: Warp, address: int, count: int = 1, semantics: Semantics = DEFAULT
) -> None:
    """``mbarrier.arrive``; `count` is the sum over the executing lanes."""
    _, unit, at = _unit(warp, address)
    _check_operand(warp, "an arrival count", count, 1)
    _observe(warp, unit, at, "mbarrier.arrive", semantics)
    unit.update(at, arrivals=count, who=warp.who)
    warp.record("mbarrier.arrive", {"mbar": address, "count": count})


def expect_tx(warp: Warp, address: int, nbytes: int) -> None:
    """``mbarrier.expect_tx``: more bytes are due in this phase; no arrival."""
    _, unit, at = _unit(warp, address)
    _check_operand(warp, "an expected byte count", nbytes, 0)
    _observe(warp, unit, at, "mbarrier.expect_tx", RELAXED)
    unit.update(at, tx_bytes=nbytes, who=warp.who)
    warp.record("mbarrier.expect_tx", {"mbar": address, "tx_bytes": nbytes})


def complete_tx(warp: Warp, address: int, nbytes: int) -> None:
    """``mbarrier.complete_tx``: bytes have come, as said by a thread."""
    _, unit, at = _unit(warp, address)
    _check_operand(warp, "a completed byte count", nbytes, 0)
    _observe(warp, unit, at, "mbarrier.complete_tx", RELAXED)
    unit.update(at, tx_bytes=-nbytes, who=warp.who)
    warp.record("mbarrier.complete_tx", {"mbar": address, "tx_bytes": nbytes})


def arrive_expect_tx(
    warp: Warp, address: int, *nbytes: int, semantics: Semantics = DEFAULT
) -> None:
    """``mbarrier.arrive.expect_tx``: expect bytes, then arrive, for each lane."""
    _, unit, at = _unit(warp, address)
    for each in nbytes:
        _check_operand(warp, "an expected byte count", each, 0)
    total = sum(nbytes)
    _observe(warp, unit, at, "mbarrier.arrive.expect_tx", semantics)
    unit.update(at, arrivals=len(nbytes), tx_bytes=total, who=warp.who)
    warp.record("mbarrier.arrive.expect_tx", {"mbar": address, "tx_bytes": total})


def pending_count(warp: Warp, address: int) -> int:
    """``mbarrier.pending_count`` of the current state."""
    unit, at = _own(warp, address, "mbarrier.pending_count")
    return unit.load(at).pending


def test_wait(
    warp: Warp,
    address: int,
    parity: int,
    semantics: Semantics = DEFAULT,  # noqa: PT028  it is no test
) -> bool:
    """``mbarrier.test_wait.parity``: is the phase of `parity` complete? Never blocks.

    The schedule may answer false to a phase that is complete: hardware gives no
    promise when it becomes visible.
    """
    unit, at = _own(warp, address, "mbarrier.test_wait", parity)
    warp.machine.order.mbarrier_use(warp.actor, unit.smem, at, "mbarrier.test_wait")
    done = warp.machine.schedule.peek(unit.has_completed(at, parity))
    done = done and unit.sees(at, warp.time)
    if done:
        acquire(warp, address, semantics)
    warp.record(
        "mbarrier.test_wait.parity", {"mbar": address, "parity": parity, "done": done}
    )
    return done


def acquire(warp: Warp, address: int, semantics: Semantics = DEFAULT) -> None:
    """Take what the completed phases released: a test came true."""
    unit, at = _own(warp, address, "mbarrier.try_wait")
    warp.machine.order.mbarrier_acquire(
        warp.actor,
        unit.smem,
        at,
        unit.completed.get(at, 0),
        semantics.scope,
        relaxed=semantics.relaxed,
    )


def try_wait(
    warp: Warp, address: int, parity: int, semantics: Semantics = DEFAULT
) -> Generator[Blocked, None, None]:
    """``mbarrier.try_wait.parity`` in a loop: suspend until the phase completes."""
    unit, at = _own(warp, address, "mbarrier.try_wait", parity)
    wait = MbarrierWait(warp, at, parity, unit.completed.get(at, 0), warp.now)
    since = yield from warp.wait(wait)
    warp.machine.order.mbarrier_use(warp.actor, unit.smem, at, "mbarrier.try_wait")
    acquire(warp, address, semantics)
    warp.record(
        "mbarrier.try_wait.parity", {"mbar": address, "parity": parity}, since=since
    )


def fence_mbarrier_init(warp: Warp) -> None:
    """``fence.mbarrier_init.release.cluster``: inits are visible to the cluster."""
    warp.machine.order.fence_mbarrier_init(warp.actor)
    warp.record("fence.mbarrier_init", {})
