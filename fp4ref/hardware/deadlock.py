"""deadlock: which barrier broke the chain, and who should have signalled it.

When no warp can run, most wait for others that wait too. The root is a barrier whose
own books are wrong: bytes that nobody brings, an arrival left out, or one of a warp
that has ended. The books are who arrived in the last phases, as the unit recorded it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fp4ref.errors import DeadlockRoot
from fp4ref.hardware.mbarrier_unit import Credit, MbarrierState
from fp4ref.hardware.mbarrier_wait import MbarrierWait
from fp4ref.hardware.shortfall import STAGE_LABEL, Shortfall
from fp4ref.hardware.sm import Warp
from fp4ref.trace import Recorder


class Inquest:
    """The warps that wait when nothing can run, and the trace up to there."""

    def __init__(self, warps: Sequence[Warp], recorder: Recorder | None) -> None:
        self.warps = warps
        self.events = recorder.trace.events if recorder else []
        waits = [
            (warp, wait)
            for warp in warps
            for wait in getattr(warp.blocked, "waits", (warp.blocked,))
            if isinstance(wait, MbarrierWait)
        ]
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

    def has_passed(self, s: Shortfall) -> bool:
        """Whether the waiter has passed this barrier before; untraced, it may have."""
        if not self.events:
            return True
        agent, cta = s.waiter.agent, s.waiter.cta.ctaid
        return any(
            (event.agent, event.cta, event.operands.get("mbar"))
            == (agent, cta, s.address)
            and event.operation.startswith(("mbarrier.try_wait", "mbarrier.test_wait"))
            and event.operands.get("done", True)
            for event in self.events
        )

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


def _answer_not_expected(inquest: Inquest, s: Shortfall) -> DeadlockRoot | None:
    """A CLC answer came to a CTA that has not expected its bytes."""
    answers = [c for c in s.now if c.who == "clc" and c.tx_bytes < 0]
    if not answers or any(c.tx_bytes > 0 for c in s.now):
        return None
    nbytes = -sum(c.tx_bytes for c in answers)
    what = (
        f"{nbytes:,} bytes of a CLC answer came, and cta {s.waiter.cta.ctaid}, rank "
        f"{s.waiter.cta.rank}, has expected none"
    )
    remedy = "let every CTA that an answer reaches expect 16 bytes on its own barrier"
    return _root(inquest, s, what, answers, remedy)


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


def _only_expected(inquest: Inquest, s: Shortfall) -> DeadlockRoot | None:
    """All bytes came, but who expected them did not arrive."""
    if not s.state.pending or s.state.tx_count:
        return None
    arrived = {c.issuer for c in s.now if c.arrivals}
    expects = [c for c in s.now if c.tx_bytes > 0 and c.issuer not in arrived]
    if not expects:
        return None
    nbytes = sum(c.tx_bytes for c in expects)
    what = f"its {nbytes:,} bytes have come, and {s.state.pending} of "
    what += f"{s.state.expected} arrivals are missing: expect_tx is none"
    remedy = "arrive too, with mbarrier.arrive.expect_tx"
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


def _wrong_parity(inquest: Inquest, s: Shortfall) -> DeadlockRoot | None:
    """A producer's first wait asks for the phase that is still open."""
    stage = s.stage
    if not stage or stage["side"] != "empty" or s.phases or s.now:
        return None
    if inquest.has_passed(s) or _was_used(s, stage["ring"]):
        return None
    what = f"the first wait of {s.waiter.who} asks for parity {s.state.phase}, and no "
    what += "phase has completed; the ring is empty"
    remedy = "start a producer with phase 1: on a fresh barrier parity 1 passes"
    return _root(inquest, s, what, [], remedy)


def _was_used(s: Shortfall, ring: str) -> bool:
    """Whether anything was ever put into a ring."""
    return any(
        any(s.unit.books.get(address, ()))
        for address, label in s.unit.smem.labels.items()
        if label.startswith(f"{ring}.full[")
    )


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
        its = STAGE_LABEL.fullmatch(label)
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
    *(
        _answer_not_expected,
        _at_a_peer,
        _wrong_bytes,
        _ended,
        _count_too_high,
        _never_given_back,
    ),
    *(_only_expected, _wrong_parity, _never_committed, _skipped),
    *(_passed_by, _nobody, _first),
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
