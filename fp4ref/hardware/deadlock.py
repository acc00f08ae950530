"""deadlock: which barrier broke the chain, and who should have signalled it.

When no warp can run, most of them wait for others that wait too. The root is a barrier
whose own books are wrong: bytes that nobody brings, an arrival that a warp left out, or
one that only a warp could make which has ended. The books are the unit's record of who
arrived in the last phases; what a barrier lacks is found by comparing its phase with
an earlier one, or with that of another stage of its ring.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fp4ref.errors import DeadlockRoot
from fp4ref.hardware.mbarrier_unit import Credit, MbarrierState, MbarrierUnit
from fp4ref.hardware.mbarrier_wait import MbarrierWait
from fp4ref.hardware.shared_memory import Signaller
from fp4ref.hardware.sm import Warp
from fp4ref.trace import Recorder

_STAGE = re.compile(r"(?P<ring>.+)\.(?P<side>full|empty)\[(?P<stage>\d+)\]")


@dataclass(frozen=True)
class Shortfall:
    """What one phase lacks, for which a warp waits.

    Attributes
    ----------
    since
        Step at which the wait began; -1 untraced.
    now, usual
        Who has arrived in this phase, and in a complete one of this barrier or of
        another stage of its ring; `usual` is empty if there is none.
    """

    waiter: Warp
    unit: MbarrierUnit
    address: int
    state: MbarrierState
    now: Sequence[Credit]
    usual: Sequence[Credit]
    since: int

    @classmethod
    def at(
        cls, waiter: Warp, unit: MbarrierUnit, address: int, since: int = -1
    ) -> Shortfall:
        """Read the books of a barrier."""
        books = unit.books.get(address, [[]])
        usual = books[-2] if len(books) > 1 else _of_another_stage(unit, address)
        state = unit.load(address)
        return cls(waiter, unit, address, state, books[-1], usual, since)

    @property
    def name(self) -> str:
        """Its label, or its address."""
        return self.unit.smem.labels.get(self.address) or f"mbarrier {self.address:#x}"

    @property
    def where(self) -> str:
        """Label and address."""
        return self.unit.smem.describe(self.address)

    @property
    def stage(self) -> re.Match[str] | None:
        """Ring, side and stage, if it has a label that says them."""
        return _STAGE.fullmatch(self.unit.smem.labels.get(self.address, ""))

    @property
    def absent(self) -> Counter[str]:
        """Arrivals that usually come and have not, by who makes them."""
        return _arrivals(self.usual) - _arrivals(self.now)

    @property
    def phases(self) -> int:
        """Phases that have completed."""
        return self.unit.completed.get(self.address, 0)

    @property
    def signaller(self) -> Signaller | None:
        """Who should arrive, if the kernel's set-up says so."""
        return self.unit.smem.signallers.get(self.address)


def _arrivals(credits: Sequence[Credit]) -> Counter[str]:
    found: Counter[str] = Counter()
    for each in credits:
        found[each.issuer] += each.arrivals
    return found


def _of_another_stage(unit: MbarrierUnit, address: int) -> Sequence[Credit]:
    """Return a complete phase of a barrier with the same ring and side."""
    mine = _STAGE.fullmatch(unit.smem.labels.get(address, ""))
    for other, books in unit.books.items():
        its = _STAGE.fullmatch(unit.smem.labels.get(other, ""))
        same = mine and its and mine.group("ring", "side") == its.group("ring", "side")
        if same and len(books) > 1:
            return books[-2]
    return []


class Inquest:
    """The warps that wait when nothing can run, and the trace up to there."""

    def __init__(self, warps: Sequence[Warp], recorder: Recorder | None) -> None:
        self.warps = warps
        self.events = recorder.trace.events if recorder else []
        waits = [(w, w.blocked) for w in warps if isinstance(w.blocked, MbarrierWait)]
        self.shortfalls = [
            Shortfall.at(warp, wait.warp.cta.mbarriers, wait.address, wait.since)
            for warp, wait in sorted(waits, key=lambda each: each[1].since)
        ]

    def root(self) -> DeadlockRoot | None:
        """Return the likeliest root; None if no mbarrier is waited for."""
        for find in _CAUSES:
            for each in self.shortfalls:
                if found := find(self, each):
                    return found
        return None

    def last(self, credits: Sequence[Credit]) -> tuple[int, str]:
        """Step and ``file:line`` of the last of these, if the run was traced."""
        for each in reversed(credits):
            if 0 <= each.step < len(self.events):
                event = self.events[each.step]
                return each.step, event.kernel_source or event.source
        return -1, ""

    def to_come(self, s: Shortfall) -> list[Warp]:
        """Return the warps that wait elsewhere and may still arrive here."""
        arrived = {credit.issuer for credit in s.now}
        named = s.signaller.warps if s.signaller else ()
        return [
            warp
            for warp in self.warps
            if warp.who not in arrived
            and warp is not s.waiter
            and (not named or warp.index in named)
        ]

    def ended(self, s: Shortfall) -> list[Warp]:
        """Return the warps that should arrive, have not, and never will."""
        arrived = {credit.issuer for credit in s.now}
        named = set(s.signaller.warps) if s.signaller else set()
        return [
            warp
            for warp in s.waiter.cta.warps
            if warp.done
            and warp.who not in arrived
            and (warp.who in s.absent or (not s.usual and warp.index in named))
        ]


def _at_a_peer(inquest: Inquest, s: Shortfall) -> DeadlockRoot | None:
    """Bytes are expected by one CTA and come to the same barrier of another."""
    for cta in s.waiter.cta.cluster.ctas:
        unit = cta.mbarriers
        if cta is s.waiter.cta or s.address not in unit.live or not s.state.tx_count:
            continue
        peer = MbarrierState.decode(unit.live[s.address])
        if (s.state.tx_count > 0) == (peer.tx_count > 0) or not peer.tx_count:
            continue
        expects, comes = (s.waiter.cta, cta)[:: 1 if s.state.tx_count > 0 else -1]
        nbytes = min(abs(s.state.tx_count), abs(peer.tx_count))
        what = (
            f"{nbytes:,} bytes are expected by cta {expects.ctaid}, rank "
            f"{expects.rank}, and come to this barrier in cta {comes.ctaid}, rank "
            f"{comes.rank}"
        )
        books = expects.mbarriers.books.get(s.address, [[]])[-1]
        mine = [c for c in books if c.tx_bytes > 0]
        remedy = "let the CTA expect the bytes that receives the signal: with "
        remedy += ".cta_group::2 the one of the pair whose barrier the load names"
        return _root(inquest, s, what, mine, remedy)
    return None


def _wrong_bytes(inquest: Inquest, s: Shortfall) -> DeadlockRoot | None:
    """All arrivals are there, and the bytes do not come out even."""
    if s.state.pending or not s.state.tx_count:
        return None
    expects = [c for c in s.now if c.tx_bytes > 0]
    loads = [c for c in s.now if c.tx_bytes < 0]
    expected, came = (abs(sum(c.tx_bytes for c in part)) for part in (expects, loads))
    usually = [c for c in s.usual if c.tx_bytes < 0]
    what = f"{expected:,} bytes expected, {came:,} credited"
    if s.state.tx_count < 0:
        remedy = "expect the bytes of every copy that names this barrier"
    elif len(loads) < len(usually):
        what += f"; {len(usually) - len(loads)} of {len(usually)} copies never started"
        remedy = "start every copy whose bytes are expected"
        missing = usually[len(loads) :]
        return _root(inquest, s, what, missing, remedy)
    else:
        sizes = ", ".join(f"{-c.tx_bytes:,}" for c in loads) or "none"
        what += f" ({sizes})"
        remedy = "expect exactly the bytes of the boxes; no copy is left to come"
    return _root(inquest, s, what, expects, remedy)


def _ended(inquest: Inquest, s: Shortfall) -> DeadlockRoot | None:
    """Who should arrive is gone."""
    if not s.state.pending or not (gone := inquest.ended(s)):
        return None
    names = ", ".join(warp.who for warp in gone)
    what = f"{s.state.pending} of {s.state.expected} arrivals are missing: {names} has "
    what += "ended"
    mine = [c for c in s.usual if c.issuer in {warp.who for warp in gone}]
    remedy = "let no role return while others wait for its arrivals"
    return _root(inquest, s, what, mine, remedy, names)


def _count_too_high(inquest: Inquest, s: Shortfall) -> DeadlockRoot | None:
    """Everybody who arrives has arrived, or every arriver that there is."""
    arrived = s.state.expected - s.state.pending
    if not s.state.pending or not arrived or s.absent:
        return None
    if not s.usual and inquest.to_come(s):
        return None
    what = f"{arrived} of {s.state.expected} arrivals came, and nobody is left to come"
    remedy = "initialise the barrier with the number of real arrivals, or let every "
    remedy += "thread arrive that it counts"
    return _root(inquest, s, what, s.now, remedy)


def _never_given_back(inquest: Inquest, s: Shortfall) -> DeadlockRoot | None:
    """A stage was filled and used, and never released."""
    stage = s.stage
    if not stage or stage["side"] != "empty" or not s.state.pending:
        return None
    full = f"{stage['ring']}.full[{stage['stage']}]"
    for address, label in s.unit.smem.labels.items():
        if label == full and s.unit.completed.get(address, 0) > s.phases:
            if _is_held(inquest, stage["ring"]):
                continue
            what = (
                f"{s.state.pending} of {s.state.expected} arrivals are missing; "
                f"{full} has completed {s.unit.completed[address]} phases, this "
                f"barrier {s.phases}"
            )
            mine = list(s.usual) or list(s.unit.books[address][-1])
            remedy = "release every stage that was waited for"
            return _root(inquest, s, what, mine, remedy)
    return None


def _never_committed(inquest: Inquest, s: Shortfall) -> DeadlockRoot | None:
    """A stage is asked for again, and was not filled since the last time."""
    stage = s.stage
    if not stage or stage["side"] != "empty" or not s.state.pending:
        return None
    name = f"{stage['ring']}.full[{stage['stage']}]"
    for address, label in s.unit.smem.labels.items():
        phases = s.unit.completed.get(address, 0)
        if label == name and address in s.unit.live and phases <= s.phases:
            full = Shortfall.at(s.waiter, s.unit, address)
            if full.now:
                continue
            what = (
                f"{full.state.pending} of {full.state.expected} arrivals are missing, "
                f"and {s.waiter.who} asks for the stage again"
            )
            remedy = "commit every stage that was acquired"
            return _root(inquest, full, what, full.usual, remedy)
    return None


def _is_held(inquest: Inquest, ring: str) -> bool:
    """Whether no consumer asks for another stage, so that it may still use this one."""
    asked = (each.stage for each in inquest.shortfalls)
    return not any(m and (m["ring"], m["side"]) == (ring, "full") for m in asked)


def _skipped(inquest: Inquest, s: Shortfall) -> DeadlockRoot | None:
    """Another stage of the ring, which comes after this one, is ahead of it."""
    stage = s.stage
    if not stage or not s.state.pending:
        return None
    for address, label in s.unit.smem.labels.items():
        its = _STAGE.fullmatch(label)
        if not its or (its["ring"], its["side"]) != (stage["ring"], stage["side"]):
            continue
        if int(its["stage"]) > int(stage["stage"]):
            ahead = s.unit.completed.get(address, 0)
            if ahead > s.phases:
                what = f"{label} has completed {ahead} phases, this barrier {s.phases}"
                remedy = "arrive on every stage in turn"
                return _root(inquest, s, what, s.usual, remedy)
    return None


def _passed_by(inquest: Inquest, s: Shortfall) -> DeadlockRoot | None:
    """Nobody has ever arrived, and a warp that should has done other work since."""
    busy = {
        credit.issuer
        for books in s.unit.books.values()
        for phase in books
        for credit in phase
    }
    warps = s.signaller.warps if s.signaller else ()
    if any(warp.who in busy for warp in s.waiter.cta.warps if warp.index in warps):
        return _nobody(inquest, s)
    return None


def _nobody(inquest: Inquest, s: Shortfall) -> DeadlockRoot | None:
    """Nobody has ever arrived."""
    if s.now or s.usual or not s.state.pending:
        return None
    what = f"nobody has arrived on it so far; it takes {s.state.expected}"
    remedy = "let somebody arrive, or do not wait"
    if s.signaller:
        remedy = f"it is signalled by {s.signaller.by}; let that happen once a phase"
    return _root(inquest, s, what, [], remedy)


def _first(inquest: Inquest, s: Shortfall) -> DeadlockRoot | None:
    """A ring of warps that wait for each other, with books that are in order."""
    missing = ", ".join(f"{n} of {who}" for who, n in s.absent.items()) or "unknown"
    what = f"{s.state.pending} of {s.state.expected} arrivals are missing ({missing})"
    remedy = "look at the first wait of the chain below"
    return _root(inquest, s, what, s.usual, remedy)


_CAUSES: tuple[Callable[[Inquest, Shortfall], DeadlockRoot | None], ...] = (
    *(_at_a_peer, _wrong_bytes, _ended, _count_too_high, _never_given_back),
    *(_never_committed, _skipped, _passed_by, _nobody, _first),
)
"""In the order in which they are believed."""


def _root(
    inquest: Inquest,
    s: Shortfall,
    what: str,
    by: Sequence[Credit],
    remedy: str,
    who: str = "",
) -> DeadlockRoot:
    who = who or ", ".join(sorted({c.issuer for c in by}))
    if not who and s.signaller:
        who = ", ".join(f"warp{index}" for index in s.signaller.warps)
    step, line = inquest.last(by)
    step = s.since if step < 0 else step
    return DeadlockRoot(s.name, s.where, what, who, line, remedy, step)
