"""lane_programs: small random PTX programs whose lanes differ, and their races.

The checker shares no code with the engine: it takes every lane as a thread of its own,
builds the graph of their operations and searches it for a path between each pair.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from on_lanes import machine, run

from fp4ref.hardware.machine import Machine

WORDS, FLAGS = 8, 2
NBYTES = 4 * (WORDS + FLAGS)
Lane = tuple[int, int]
"""Warp, lane of the warp: only the first few lanes do anything by themselves."""


class LaneProgram:
    """Straight-line code of two to four warps; each step names its lanes.

    All steps come in one sequence, so a barrier that completes in it always does.
    """

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.warps = rng.randint(2, 4)
        self.steps: list[tuple[Any, ...]] = []
        self.schedule: str | int = rng.choice(["eager", "late", rng.randrange(99)])
        self.mbarriers = 0
        self.barriers = 0
        kinds = ["access"] * 6 + ["meet"] * 2 + ["strong"] * 2
        kinds += ["mbarrier"] * 3 + ["bar", "fence"]
        for _ in range(rng.randint(3, 12)):
            getattr(self, rng.choice(kinds))()

    def warp(self) -> int:
        return self.rng.randrange(self.warps)

    def lanes(self) -> int:
        """One of the first lanes, a few, or all."""
        return self.rng.choice([1, 2, 4, 3, 5, 0xFFFFFFFF, 0xFFFFFFFF])

    def access(self) -> None:
        """Each lane a word of its own, or all the same word."""
        kind = self.rng.choice(["st", "ld"])
        place = self.rng.randrange(WORDS)
        spread = self.rng.random() < 0.5
        self.steps.append((self.warp(), kind, self.lanes(), place, spread))

    def meet(self) -> None:
        self.steps.append((self.warp(), "meet", self.lanes()))

    def fence(self) -> None:
        self.steps.append((self.warp(), "fence", self.lanes()))

    def strong(self) -> None:
        """A flag: one lane of a warp writes, one of another reads or adds."""
        flag = self.rng.randrange(FLAGS)
        ways = ["st.release", "st.relaxed", "st.weak", "atom.release", "atom.relaxed"]
        self.steps.append(
            (
                self.warp(),
                "flag",
                1 << self.rng.randrange(3),
                self.rng.choice(ways),
                flag,
            )
        )
        ways = ["ld.acquire", "ld.relaxed", "ld.weak", "atom.acquire"]
        self.steps.append(
            (
                self.warp(),
                "flag",
                1 << self.rng.randrange(3),
                self.rng.choice(ways),
                flag,
            )
        )

    def mbarrier(self) -> None:
        """Some lanes arrive, some wait; perhaps without release or acquire."""
        if self.mbarriers == 6:
            return
        bar, self.mbarriers = self.mbarriers, self.mbarriers + 1
        giver, taker = self.lanes(), self.lanes()
        gives, takes = (self.rng.choice(["", "", "relaxed"]) for _ in range(2))
        self.steps.append((self.warp(), "arrive", giver, bar, gives))
        self.steps.append((self.warp(), "wait", taker, bar, takes))

    def bar(self) -> None:
        if self.barriers == 10:
            return
        self.barriers += 1
        for warp in range(self.warps):
            self.steps.append((warp, "bar", 0xFFFFFFFF, self.barriers))

    # -- as PTX -------------------------------------------------------------------

    def text(self) -> str:
        counts = {s[3]: s[2].bit_count() for s in self.steps if s[1] == "arrive"}
        lines = [
            ".shared .align 8 .b64 bars[8];",
            f".shared .align 8 .b8 data[{NBYTES + 4 * 32}];",
            "mov.u32 %r1, bars; mov.u32 %r2, data; mov.u32 %r3, %laneid;",
            "mov.u32 %r4, %tid.x; shr.u32 %r4, %r4, 5; mov.u32 %r5, 1;",
            "shl.b32 %r5, %r5, %r3; mad.lo.u32 %r6, %r3, 4, %r2;",
            "setp.eq.u32 %p1, %r4, 0; setp.eq.and.u32 %p2, %r3, 0, %p1;",
        ]
        for bar, count in counts.items():
            lines.append(
                f"@%p2 mbarrier.init.shared::cta.b64 [%r1+{8 * bar}], {count};"
            )
        lines.append("bar.sync 0;")
        for number, step in enumerate(self.steps):
            warp, mask = step[0], step[2]
            lines.append(f"setp.ne.u32 %p1, %r4, {warp}; @%p1 bra N{number};")
            lines.append(f"and.b32 %r7, %r5, {mask}; setp.ne.u32 %p2, %r7, 0;")
            lines += self.instructions(step, number)
            lines.append(f"N{number}:")
        return "\n".join([*lines, "bar.sync 0;"])

    def instructions(self, step: tuple[Any, ...], number: int) -> list[str]:
        _, kind, mask, *x = step
        flag = f"[%r2+{4 * (WORDS + x[1] if kind == 'flag' else 0) + 128}]"
        match kind:
            case "st":
                at = f"[%r{6 if x[1] else 2}+{4 * x[0]}]"
                return [f"@%p2 st.shared.u32 {at}, {number};"]
            case "ld":
                at = f"[%r{6 if x[1] else 2}+{4 * x[0]}]"
                return [f"@%p2 ld.shared.u32 %r8, {at};"]
            case "meet":
                return [f"@%p2 bar.warp.sync {mask};"]
            case "fence":
                return ["@%p2 fence.acq_rel.cta;"]
            case "flag":
                base, how = x[0].split(".")
                how = "" if how == "weak" else f".{how}.cta"
                return [
                    {
                        "st": f"@%p2 st{how}.shared.u32 {flag}, 1;",
                        "ld": f"@%p2 ld{how}.shared.u32 %r8, {flag};",
                        "atom": f"@%p2 atom{how}.shared.add.u32 %r8, {flag}, 1;",
                    }[base]
                ]
            case "arrive":
                how = ".relaxed.cta" if x[1] else ""
                return [
                    f"@%p2 mbarrier.arrive{how}.shared::cta.b64 _, [%r1+{8 * x[0]}];"
                ]
            case "wait":
                how = ".relaxed.cta" if x[1] else ""
                wait = f"mbarrier.try_wait.parity{how}.shared::cta.b64"
                return [
                    f"@!%p2 bra S{number};",
                    f"W{number}: {wait} %p3, [%r1+{8 * x[0]}], 0;",
                    f"@!%p3 bra W{number};",
                    f"S{number}:",
                ]
            case _:
                return [f"bar.sync {x[0]};"]

    def run(self) -> tuple[Machine, set[tuple[int, int]]]:
        """Run it; return the machine and the engine's pairs, by step of the trace."""
        on = machine(self.schedule, trace=True, races="collect")
        pairs: set[tuple[int, int]] = set()
        on.order.on_pair = lambda a, b, view: pairs.add((a.step, b.step))
        on.sms[0].smem.forget = lambda: on.sms[0].smem.written.fill(True)
        run(self.text(), threads=32 * self.warps, on=on)
        return on, pairs


@dataclass
class Node:
    """One operation of one lane."""

    step: int
    lane: Lane
    bytes: frozenset[int] = frozenset()
    writes: bool = False
    strong: bool = False
    before: list[Node] = field(default_factory=list, repr=False)


class LaneClosure:
    """Replays the operations in the order of the trace, each lane by itself."""

    def __init__(self, program: LaneProgram, on: Machine) -> None:
        self.last: dict[Lane, Node] = {}
        self.nodes: list[Node] = []
        self.given: dict[Any, list[Node]] = {}
        self.fence: dict[Lane, Node] = {}
        self.relaxed: dict[Lane, list[Node]] = {}
        self.entered: dict[int, tuple[int, int]] = {}
        self.rounds: dict[Any, list[Node]] = {}
        steps = {
            w: [s for s in program.steps if s[0] == w] for w in range(program.warps)
        }
        self.program = program
        self.walk(on, steps)

    def walk(self, on: Machine, steps: dict[int, list[Any]]) -> None:
        """Match events with steps: each warp's events come in its program order."""
        quiet = ("meet", "fence")
        for event in on.recorder.trace.events:
            warp = int(event.agent[4:])
            self.leave(warp)
            name = event.operation
            if name == "bar.sync" and event.operands["barrier"] == 0:
                self.drop(steps[warp], warp, quiet)
                self.enter(warp, (0, len([k for k in self.rounds if k[0] == 0])), event)
                continue
            if name == "mbarrier.init" or name == "mbarrier.test_wait.parity":
                if name == "mbarrier.init":
                    self.node(event.step, (warp, 0))
                continue
            self.drop(steps[warp], warp, quiet)
            step = steps[warp].pop(0)
            self.step(step, event)

    def drop(self, left: list[Any], warp: int, quiet: tuple[str, ...]) -> None:
        while left and left[0][1] in quiet:
            self.step(left.pop(0), None)

    def node(self, step: int, lane: Lane, **more: Any) -> Node:
        before = [self.last[lane]] if lane in self.last else []
        found = Node(step, lane, before=before, **more)
        self.last[lane] = found
        self.nodes.append(found)
        return found

    def enter(self, warp: int, key: Any, event: Any) -> None:
        key = ("bar", event.operands["barrier"], self.turn(event))
        mine = [self.node(-1, (warp, lane)) for lane in range(32)]
        self.rounds.setdefault(key, []).extend(mine)
        self.entered[warp] = key

    def turn(self, event: Any) -> int:
        barrier = event.operands["barrier"]
        count = sum(
            len(nodes) // 32 for key, nodes in self.rounds.items() if key[1] == barrier
        )
        return count // self.program.warps

    def leave(self, warp: int) -> None:
        if (key := self.entered.pop(warp, None)) is not None:
            for lane in range(32):
                self.node(-1, (warp, lane)).before.extend(self.rounds[key])

    def step(self, step: tuple[Any, ...], event: Any) -> None:
        warp, kind, mask, *x = step
        lanes = [(warp, lane) for lane in range(32) if mask >> lane & 1]
        at = -1 if event is None else event.step
        if kind == "bar":
            self.enter(warp, None, event)
        elif kind == "meet":
            mine = [self.node(-1, lane) for lane in lanes]
            for lane in lanes:
                self.node(-1, lane).before.extend(mine)
        elif kind == "fence":
            for lane in lanes:
                node = self.node(-1, lane)
                node.before.extend(self.relaxed.pop(lane, ()))
                self.fence[lane] = node
        elif kind in ("st", "ld"):
            for lane in lanes[-1:] if kind == "st" and not x[1] else lanes:
                word = x[0] + (lane[1] if x[1] else 0)
                touched = frozenset(range(4 * word, 4 * word + 4))
                self.node(at, lane, bytes=touched, writes=kind == "st")
        elif kind == "flag":
            self.flag(at, lanes[0], *x)
        elif kind == "arrive":
            for lane in lanes:
                self.release(("mbarrier", x[0]), lane, not x[1])
        elif kind == "wait":
            for lane in lanes:
                self.acquire(("mbarrier", x[0]), lane, not x[1])

    def flag(self, at: int, lane: Lane, how: str, flag: int) -> None:
        base, order = how.split(".")
        word = 1000 + flag
        key = ("word", flag)
        strong = order != "weak"
        if base != "st" and strong:
            self.acquire(key, lane, order == "acquire")
        touched = frozenset({word})
        self.node(at, lane, bytes=touched, writes=base != "ld", strong=strong)
        if base == "st":
            self.given[key] = []
        if base != "ld" and strong:
            self.release(key, lane, order == "release")

    def release(self, key: Any, lane: Lane, releases: bool) -> None:
        given = self.given.setdefault(key, [])
        if releases:
            given.append(self.node(-1, lane))
        elif lane in self.fence:
            given.append(self.fence[lane])
        if lane in self.fence:
            given.append(self.fence[lane])

    def acquire(self, key: Any, lane: Lane, acquires: bool) -> None:
        given = list(self.given.get(key, ()))
        if acquires:
            self.node(-1, lane).before.extend(given)
        else:
            self.relaxed.setdefault(lane, []).extend(given)

    # -- the question -------------------------------------------------------------

    def ordered(self, first: Node, second: Node) -> bool:
        seen: set[int] = set()
        stack = [second]
        while stack:
            node = stack.pop()
            if node is first:
                return True
            if id(node) not in seen:
                seen.add(id(node))
                stack.extend(node.before)
        return False

    def races(self) -> set[tuple[int, int]]:
        """Pairs of steps with a pair of lanes that nothing orders; see `Closure`."""
        touching = [n for n in self.nodes if n.bytes]
        found = set()
        for j, second in enumerate(touching):
            for i, first in enumerate(touching[:j]):
                if first.step == second.step or not first.bytes & second.bytes:
                    continue
                if not (first.writes or second.writes):
                    continue
                if (first.step, second.step) in found or self.ordered(first, second):
                    continue
                if first.strong and second.strong:
                    continue
                covered = any(
                    third.bytes & first.bytes & second.bytes
                    and third.step not in (first.step, second.step)
                    and (third.writes or not first.writes)
                    and self.ordered(first, third)
                    for third in touching[i + 1 : j]
                )
                if not covered:
                    found.add((first.step, second.step))
        return found
