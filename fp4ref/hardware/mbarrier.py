"""Part 1. mbarrier: pending arrivals, transaction bytes, phase.

An mbarrier is one 64-bit word in shared memory::

    63      62 ........ 43   42   41 ...... 21     20 ........ 1    0
    phase   -pending (20)    0    -tx-count (21)   -expected (20)   0

It has ONE arrival count. The phase completes when no arrival is pending *and* the
tx-count is 0; then the phase flips and the pending count is reloaded. A wait names the
parity of the phase it waits for, so on a fresh barrier parity 1 passes at once and
parity 0 blocks. Source: PTX, mbarrier; the word was measured after every operation on
an H200 (there ``ld.shared`` sees it only after ``mbarrier.inval``: the unit that counts
keeps the words of live mbarriers to itself).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fp4ref.errors import (
    ClusterFault,
    MbarrierCorrupted,
    MbarrierFault,
    MisalignedAddress,
)
from fp4ref.hardware.smem import SharedMemory
from fp4ref.trace import Barrier, Range

if TYPE_CHECKING:
    from collections.abc import Generator

    from fp4ref.hardware.sm import Blocked, Cta, Warp

NBYTES = 8
MAX_COUNT = (1 << 20) - 1
"""Largest arrival count, and largest magnitude of the tx-count [PTX: mbarrier]."""

_COUNT = 1 << 20
_TX = 1 << 21


@dataclass(frozen=True, slots=True)
class MbarrierState:
    """The four fields of the 64-bit word."""

    phase: int
    pending: int
    expected: int
    tx_count: int

    def encode(self) -> int:
        """Return the 64-bit word."""
        return (
            ((_COUNT - self.expected) % _COUNT) << 1
            | (-self.tx_count % _TX) << 21
            | ((_COUNT - self.pending) % _COUNT) << 43
            | self.phase << 63
        )

    @classmethod
    def decode(cls, word: int) -> MbarrierState:
        """Read the 64-bit word."""
        # Of the two ends of 21 bits the range of the tx-count has neither.
        tx_count = -(word >> 21) % _TX
        if tx_count >= _TX // 2:
            tx_count -= _TX
        return cls(
            word >> 63,
            -(word >> 43) % _COUNT,
            -(word >> 1) % _COUNT,
            tx_count,
        )

    @property
    def counts(self) -> tuple[int, int, int]:
        """(phase, pending arrivals, tx-count)."""
        return self.phase, self.pending, self.tx_count


class MbarrierUnit:
    """The live mbarriers of one CTA.

    The words are in shared memory. The unit remembers each word it wrote, so that a
    word changed by anything else is found at its next use.

    Attributes
    ----------
    live
        The word that each initialised mbarrier should hold, by address.
    completed
        How many phases have completed there.
    """

    def __init__(self, smem: SharedMemory) -> None:
        self.smem = smem
        self.live: dict[int, int] = {}
        self.completed: dict[int, int] = {}
        self.arrivers: dict[int, set[str]] = {}

    def load(self, address: int) -> MbarrierState:
        """Return the state at `address`.

        Raises
        ------
        MisalignedAddress, MbarrierFault, MbarrierCorrupted
        """
        if address % NBYTES:
            raise MisalignedAddress(
                f"mbarrier at {address:#x}",
                where=self.smem.describe(address),
                rule="an mbarrier object is 8-byte aligned [PTX: mbarrier]",
                remedy="align the barrier to 8 bytes",
            )
        if address not in self.live:
            raise MbarrierFault(
                "mbarrier operation on a word that is not an initialised mbarrier",
                who=self.smem.who(),
                where=self.smem.describe(address),
                rule="mbarrier.init comes first; after mbarrier.inval the word is "
                "plain memory",
                remedy="initialise the barrier and make the init visible",
            )
        at = address - self.smem.base
        word = int.from_bytes(self.smem.data[at : at + NBYTES].tobytes(), "little")
        if word != self.live[address]:
            raise MbarrierCorrupted(
                f"the mbarrier holds {word:#018x}, the last mbarrier operation left "
                f"{self.live[address]:#018x}",
                who=self.smem.who(),
                where=self.smem.describe(address),
                rule="only mbarrier operations may touch an mbarrier object [PTX: "
                "mbarrier]",
                remedy="look for a store that overlaps the barrier",
            )
        return MbarrierState.decode(word)

    def store(self, address: int, state: MbarrierState) -> None:
        """Write `state` and let the trace see the change."""
        where = Range(self.smem.space, address, NBYTES)
        before = (
            MbarrierState.decode(self.live[address]).counts
            if address in self.live
            else (0, 0, 0)
        )
        word = state.encode()
        data = np.frombuffer(word.to_bytes(NBYTES, "little"), np.uint8)
        self.smem.write(where, data.reshape(1, NBYTES))
        self.live[address] = word
        if self.smem.recorder:
            label = self.smem.labels.get(address, "")
            self.smem.recorder.barrier(
                Barrier(self.smem.space, address, label, before, state.counts)
            )

    def update(
        self, address: int, *, arrivals: int = 0, tx_bytes: int = 0, who: str = ""
    ) -> None:
        """Change the counts: `tx_bytes` first, then `arrivals`, then the phase.

        Raises
        ------
        MbarrierFault
            More arrivals than are pending, or a tx-count out of range.
        """
        state = self.load(address)
        tx_count = state.tx_count + tx_bytes
        if abs(tx_count) > MAX_COUNT:
            raise MbarrierFault(
                f"tx-count would become {tx_count}",
                who=who,
                where=self.smem.describe(address),
                rule=f"the tx-count stays within ±{MAX_COUNT} [PTX: mbarrier]",
                remedy="expect fewer bytes in one phase",
            )
        if arrivals > state.pending:
            raise MbarrierFault(
                f"arrival count {arrivals}, but {state.pending} pending in phase "
                f"{state.phase}",
                who=who,
                where=self.smem.describe(address),
                rule="a phase takes exactly its expected arrivals [PTX: mbarrier]",
                remedy="initialise the barrier with the number of real arrivals",
            )
        state = replace(state, tx_count=tx_count, pending=state.pending - arrivals)
        if state.pending == 0 and state.tx_count == 0:
            state = replace(state, phase=state.phase ^ 1, pending=state.expected)
            self.completed[address] = self.completed.get(address, 0) + 1
        self.store(address, state)
        if who:
            self.arrivers.setdefault(address, set()).add(who)

    def has_completed(self, address: int, parity: int) -> bool:
        """Whether the phase of `parity` is complete: the current phase is another."""
        return self.load(address).phase != parity

    def unbalanced(self) -> list[tuple[int, int]]:
        """Address and tx-count of every live mbarrier whose tx-count is not 0."""
        counts = ((a, MbarrierState.decode(w).tx_count) for a, w in self.live.items())
        return [(address, tx_count) for address, tx_count in counts if tx_count]


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
    unit.store(at, MbarrierState(0, count, count, 0))
    warp.record("mbarrier.init", {"mbar": address, "count": count})


def inval(warp: Warp, address: int) -> None:
    """``mbarrier.inval``: the word becomes plain memory."""
    unit, at = _own(warp, address, "mbarrier.inval")
    unit.load(at)
    del unit.live[at]
    warp.record("mbarrier.inval", {"mbar": address})


def arrive(warp: Warp, address: int, count: int = 1) -> None:
    """``mbarrier.arrive``; `count` is the sum over the executing lanes."""
    _, unit, at = _unit(warp, address)
    _check_operand(warp, "an arrival count", count, 1)
    unit.update(at, arrivals=count, who=warp.who)
    warp.record("mbarrier.arrive", {"mbar": address, "count": count})


def expect_tx(warp: Warp, address: int, nbytes: int) -> None:
    """``mbarrier.expect_tx``: more bytes are due in this phase; no arrival."""
    _, unit, at = _unit(warp, address)
    _check_operand(warp, "an expected byte count", nbytes, 0)
    unit.update(at, tx_bytes=nbytes, who=warp.who)
    warp.record("mbarrier.expect_tx", {"mbar": address, "tx_bytes": nbytes})


def complete_tx(warp: Warp, address: int, nbytes: int) -> None:
    """``mbarrier.complete_tx``: bytes have come, as said by a thread."""
    _, unit, at = _unit(warp, address)
    _check_operand(warp, "a completed byte count", nbytes, 0)
    unit.update(at, tx_bytes=-nbytes, who=warp.who)
    warp.record("mbarrier.complete_tx", {"mbar": address, "tx_bytes": nbytes})


def arrive_expect_tx(warp: Warp, address: int, *nbytes: int) -> None:
    """``mbarrier.arrive.expect_tx``: expect bytes, then arrive, for each lane."""
    _, unit, at = _unit(warp, address)
    for each in nbytes:
        _check_operand(warp, "an expected byte count", each, 0)
    total = sum(nbytes)
    unit.update(at, arrivals=len(nbytes), tx_bytes=total, who=warp.who)
    warp.record("mbarrier.arrive.expect_tx", {"mbar": address, "tx_bytes": total})


def pending_count(warp: Warp, address: int) -> int:
    """``mbarrier.pending_count`` of the current state."""
    unit, at = _own(warp, address, "mbarrier.pending_count")
    return unit.load(at).pending


def test_wait(warp: Warp, address: int, parity: int) -> bool:
    """``mbarrier.test_wait.parity``: is the phase of `parity` complete? Never blocks.

    The schedule may answer false to a phase that is complete: hardware gives no
    promise when it becomes visible.
    """
    unit, at = _own(warp, address, "mbarrier.test_wait", parity)
    done = warp.machine.schedule.peek(unit.has_completed(at, parity))
    warp.record(
        "mbarrier.test_wait.parity", {"mbar": address, "parity": parity, "done": done}
    )
    return done


def try_wait(warp: Warp, address: int, parity: int) -> Generator[Blocked, None, None]:
    """``mbarrier.try_wait.parity`` in a loop: suspend until the phase completes."""
    unit, at = _own(warp, address, "mbarrier.try_wait", parity)
    since = -1
    if not unit.has_completed(at, parity):
        since = warp.now
        yield MbarrierWait(warp, at, parity, unit.completed.get(at, 0))
    warp.record(
        "mbarrier.try_wait.parity", {"mbar": address, "parity": parity}, since=since
    )


@dataclass(frozen=True, slots=True)
class MbarrierWait:
    """A warp waits for one phase; `completed` phases were over when it began."""

    warp: Warp
    address: int
    parity: int
    completed: int

    def ready(self) -> bool:
        """Whether the warp may run again.

        Raises
        ------
        MbarrierFault
            Two phases completed during the wait: a poll of the parity would miss both.
        """
        unit = self.warp.cta.mbarriers
        if unit.completed.get(self.address, 0) >= self.completed + 2:
            raise MbarrierFault(
                f"the phase of parity {self.parity} completed, and so did the next "
                "one, before the waiting warp saw it",
                who=self.warp.who,
                where=unit.smem.describe(self.address),
                rule="a parity tells only the current phase from the one before [PTX: "
                "mbarrier.test_wait.parity]",
                remedy="let the next phase need an arrival from every waiter, and "
                "initialise the barrier with the number of real arrivals",
            )
        return unit.has_completed(self.address, self.parity)

    def describe(self) -> str:
        """Barrier, parity and what is missing."""
        unit = self.warp.cta.mbarriers
        state = unit.load(self.address)
        return (
            f"mbarrier {unit.smem.describe(self.address)} parity {self.parity}: "
            f"phase {state.phase}, {state.pending} of {state.expected} arrivals "
            f"pending, tx-count {state.tx_count} bytes"
        )

    def released_by(self) -> str:
        """Agents that arrived on this barrier before."""
        seen = self.warp.cta.mbarriers.arrivers.get(self.address, set())
        return ", ".join(sorted(seen)) or "nobody has arrived on it so far"


def fence_mbarrier_init(warp: Warp) -> None:
    """``fence.mbarrier_init.release.cluster``: inits are visible to the cluster."""
    warp.record("fence.mbarrier_init", {})
