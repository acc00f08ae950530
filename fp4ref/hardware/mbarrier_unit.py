"""mbarrier_unit: the 64-bit words of a CTA's mbarriers, and how they count.

An mbarrier is one word in shared memory::

    63      62 ........ 43   42   41 ...... 21     20 ........ 1    0
    phase   -pending (20)    0    -tx-count (21)   -expected (20)   0

The word was measured after every operation on an H200 (there ``ld.shared`` sees it only
after ``mbarrier.inval``: the unit that counts keeps the words of live mbarriers to
itself).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fp4ref.errors import MbarrierCorrupted, MbarrierFault, MisalignedAddress
from fp4ref.hardware.exited import of_exited
from fp4ref.hardware.shared_memory import SharedMemory
from fp4ref.hardware.timing import Timed
from fp4ref.trace import Barrier, Dim3, Range

NBYTES = 8
MAX_COUNT = (1 << 20) - 1
"""Largest arrival count, and largest magnitude of the tx-count [PTX: mbarrier]."""

_COUNT = 1 << 20
_TX = 1 << 21


class MbarrierState(NamedTuple):
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
    @lru_cache(maxsize=4096)
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


class Credit(NamedTuple):
    """One change of a phase's counts.

    Attributes
    ----------
    who, issuer
        The unit or warp that made it, and the warp that asked for it.
    tx_bytes
        Positive where bytes were expected, negative where they came.
    step
        Of its event in the trace; -1 untraced.
    """

    who: str
    issuer: str
    arrivals: int
    tx_bytes: int
    step: int


PHASES_KEPT = 2
"""The current phase of a barrier, and the one before."""


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
    books
        Who changed the counts in the last phases, oldest first.
    exited
        Index of the CTA once it has exited.
    clock
        Hears of every arrival, in the schedule "timed".
    """

    def __init__(self, smem: SharedMemory, clock: Timed | None = None) -> None:
        self.smem, self.clock = smem, clock
        self._words = smem.data.view("<u8")
        self.live: dict[int, int] = {}
        self.completed: dict[int, int] = {}
        self.books: dict[int, list[list[Credit]]] = {}
        self.exited: Dim3 | None = None

    def load(self, address: int) -> MbarrierState:
        """Return the state at `address`.

        Raises
        ------
        MisalignedAddress, MbarrierFault, MbarrierCorrupted
        ClusterFault
            Its CTA has exited.
        """
        if self.exited is not None:
            where = self.smem.describe(address)
            use = "mbarrier operation"
            raise of_exited(self.smem.who(), use, self.exited, where)
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
        word = int(self._words[(address - self.smem.base) // NBYTES])
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
        word, before = state.encode(), self.live.get(address)
        if self.smem.recorder is None and before is not None:
            self.smem.guard(where, True)
            self._words[(address - self.smem.base) // NBYTES] = word
            self.smem.mark_written(where)
        else:
            data = np.frombuffer(word.to_bytes(NBYTES, "little"), np.uint8)
            self.smem.write(where, data.reshape(1, NBYTES))
        self.live[address] = word
        if self.smem.recorder:
            label = self.smem.labels.get(address, "")
            was = (0, 0, 0) if before is None else MbarrierState.decode(before).counts
            self.smem.recorder.barrier(
                Barrier(self.smem.space, address, label, was, state.counts)
            )

    def update(
        self,
        address: int,
        *,
        arrivals: int = 0,
        tx_bytes: int = 0,
        who: str = "",
        issuer: str = "",
    ) -> None:
        """Change the counts: `tx_bytes` first, then `arrivals`, then the phase.

        `who` is a warp or a unit, which `issuer` asked.

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
        phase, pending, expected, _ = state
        state = MbarrierState(phase, pending - arrivals, expected, tx_count)
        books = self.books.setdefault(address, [[]])
        step = self.smem.recorder.step if self.smem.recorder else -1
        books[-1].append(Credit(who, issuer or who, arrivals, tx_bytes, step))
        flips = state.pending == 0 and state.tx_count == 0
        if self.clock is not None:
            self.clock.credit(self.smem.space, address, flips)
        if flips:
            state = state._replace(phase=state.phase ^ 1, pending=state.expected)
            self.completed[address] = self.completed.get(address, 0) + 1
            books.append([])
            del books[:-PHASES_KEPT]
        self.store(address, state)

    def expect_arrivals(self, address: int, count: int, who: str) -> None:
        """Raise the pending count of the current phase, and of no other.

        Raises
        ------
        MbarrierFault
            It would be too large.
        """
        state = self.load(address)
        if state.pending + count > MAX_COUNT:
            raise MbarrierFault(
                f"pending count would become {state.pending + count}",
                who=who,
                where=self.smem.describe(address),
                rule=f"the pending count is at most {MAX_COUNT} [PTX: mbarrier]",
                remedy="arrive with fewer threads, or with .noinc and a count in init",
            )
        self.store(address, state._replace(pending=state.pending + count))

    def has_completed(self, address: int, parity: int) -> bool:
        """Whether the phase of `parity` is complete: the current phase is another."""
        return self.load(address).phase != parity

    def sees(self, address: int, time: float) -> bool:
        """Whether the last phase that ended is visible at a time of the clock."""
        clock = self.clock
        return clock is None or clock.flip(self.smem.space, address) <= time

    def unbalanced(self) -> list[tuple[int, int]]:
        """Address and tx-count of every live mbarrier whose tx-count is not 0."""
        counts = ((a, MbarrierState.decode(w).tx_count) for a, w in self.live.items())
        return [(address, tx_count) for address, tx_count in counts if tx_count]
