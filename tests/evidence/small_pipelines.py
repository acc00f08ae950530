"""small_pipelines: random pipelines of a few steps, right ones and faulty ones.

Shapes are those of the kernel: TMA fills a ring of stages, an MMA reads them and gives
them back by a commit, and hands an accumulator to warps that give it back by arrivals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from random import Random

from fp4ref.evidence.protocol.program import Program, ProgramBuilder, Step

NBYTES = 16


def mainloop(
    stages: int,
    tiles: int,
    *,
    copies: int = 2,
    peeks: bool = True,
    readers: int = 0,
    accumulators: int = 1,
    tiles_each: int = 1,
) -> Program:
    """Build a right pipeline.

    `copies` TMA loads fill a stage; `readers` warps read each accumulator, which takes
    `tiles_each` k-tiles.
    """
    build = ProgramBuilder()
    full = [build.barrier(f"mainloop.full[{i}]", 1) for i in range(stages)]
    empty = [build.barrier(f"mainloop.empty[{i}]", 1) for i in range(stages)]
    buffers = [
        [build.cell(f"stage {i} part {j}") for j in range(copies)]
        for i in range(stages)
    ]
    _load(build, full, empty, buffers, tiles, peeks)
    _multiply(
        build, full, empty, buffers, tiles, peeks, readers, accumulators, tiles_each
    )
    return build.program()


def _load(build, full, empty, buffers, tiles, peeks):
    stages = len(full)
    for k in range(tiles):
        stage, parity = k % stages, k // stages & 1
        peek = -1
        if peeks:
            peek = build.peek("load", empty[stage], parity ^ 1, source="load.py:1")
        build.wait("load", empty[stage], parity ^ 1, peek=peek, source="load.py:2")
        copies = buffers[stage]
        issue = build.count(
            "load",
            full[stage],
            arrivals=1,
            tx_bytes=NBYTES * len(copies),
            operation="mbarrier.arrive.expect_tx",
            source="load.py:3",
        )
        for j, cell in enumerate(copies):
            build.count(
                f"tma {k}.{j}",
                full[stage],
                tx_bytes=-NBYTES,
                writes=[cell],
                after=[issue],
                operation="cp.async.bulk",
                source="load.py:4",
            )


def _multiply(
    build, full, empty, buffers, tiles, peeks, readers, accumulators, tiles_each
):
    stages, before, accumulator = len(full), -1, -1
    ready, given, cells = [], [], []
    if readers:
        ready = [build.barrier(f"acc.full[{i}]", 1) for i in range(accumulators)]
        given = [build.barrier(f"acc.empty[{i}]", readers) for i in range(accumulators)]
        cells = [build.cell(f"D {i}") for i in range(accumulators)]
    for k in range(tiles):
        stage, parity = k % stages, k // stages & 1
        slot, turn = divmod(k // tiles_each, 1)[0] % accumulators, 0
        turn = k // tiles_each // accumulators & 1
        if readers and k % tiles_each == 0:
            build.wait("mma", given[slot], turn ^ 1, source="mma.py:1")
        peek = (
            build.peek("mma", full[stage], parity, source="mma.py:2") if peeks else -1
        )
        wait = build.wait("mma", full[stage], parity, peek=peek, source="mma.py:3")
        accumulator = build.access(
            f"tcgen05.mma {k}",
            reads=buffers[stage],
            writes=[cells[slot]] if readers else (),
            after=[wait, *([before] if before >= 0 else [])],
            operation="tcgen05.mma",
            source="mma.py:4",
        )
        before = accumulator
        build.count(
            f"tcgen05.commit {k}",
            empty[stage],
            arrivals=1,
            after=[accumulator],
            operation="tcgen05.commit",
            source="mma.py:5",
        )
        if readers and (k + 1) % tiles_each == 0:
            build.count(
                f"tcgen05.commit acc {k}",
                ready[slot],
                arrivals=1,
                after=[accumulator],
                operation="tcgen05.commit",
                source="mma.py:6",
            )
    for t in range(tiles // tiles_each if readers else 0):
        slot, turn = t % accumulators, t // accumulators & 1
        for r in range(readers):
            who = f"epilogue {r}"
            build.wait(who, ready[slot], turn, source="epilogue.py:1")
            build.access(who, reads=[cells[slot]], source="epilogue.py:2")
            build.count(who, given[slot], arrivals=1, source="epilogue.py:3")


# Faults


def _drop(step: Step, random: Random) -> Step:
    return replace(step, kind="pass", arrivals=0, tx_bytes=0)


def _parity(step: Step, random: Random) -> Step:
    return replace(step, parity=step.parity ^ 1)


def _arrivals(step: Step, random: Random) -> Step:
    return replace(step, arrivals=step.arrivals + random.choice([-1, 1]))


def _bytes(step: Step, random: Random) -> Step:
    return replace(step, tx_bytes=step.tx_bytes + random.choice([-NBYTES, NBYTES]))


def _unordered(step: Step, random: Random) -> Step:
    return replace(step, after=step.after[:-1])


FAULTS: dict[str, tuple[Callable[[Step], bool], Callable[[Step, Random], Step]]] = {
    "dropped wait": (lambda s: s.kind == "wait", _drop),
    "dropped count": (lambda s: s.kind == "count", _drop),
    "wrong parity": (lambda s: s.kind == "wait" and s.peek < 0, _parity),
    "wrong arrivals": (lambda s: s.kind == "count" and s.arrivals > 0, _arrivals),
    "wrong bytes": (lambda s: s.kind == "count" and s.tx_bytes != 0, _bytes),
    "lost order": (lambda s: bool(s.after), _unordered),
}


def plant(program: Program, random: Random) -> Program:
    """Return the program with one fault, which may be harmless."""
    name = random.choice([*FAULTS, "early", "barrier count", "two fills"])
    if name == "early":
        return _swapped(program, random)
    if name == "barrier count":
        at = random.randrange(len(program.barriers))
        barriers = list(program.barriers)
        count = max(1, barriers[at].count + random.choice([-1, 1]))
        barriers[at] = replace(barriers[at], count=count)
        return replace(program, barriers=barriers)
    if name == "two fills":
        steps = [n for n, s in enumerate(program.steps) if s.writes]
        to, source = random.choice(steps), random.choice(steps)
        step = replace(program.steps[to], writes=program.steps[source].writes)
        return program.with_step(to, step)
    wanted, change = FAULTS[name]
    places = [n for n, s in enumerate(program.steps) if wanted(s)]
    if not places:
        return program
    number = random.choice(places)
    return program.with_step(number, change(program.steps[number], random))


def _swapped(program: Program, random: Random) -> Program:
    """Let an actor do two neighbouring steps the other way round."""
    pairs = [
        (a, b)
        for steps in program.actors
        for a, b in pairwise(steps)
        if program.steps[b].peek != a and program.steps[b].arrival != a
    ]
    if not pairs:
        return program
    a, b = random.choice(pairs)
    if any({a, b} & {step.peek, step.arrival} for step in program.steps):
        return program
    first, second = program.steps[a], program.steps[b]
    changed = program.with_step(a, replace(second, after=first.after))
    return changed.with_step(b, replace(first, after=second.after))


def random_pipeline(seed: int) -> Program:
    """Return a pipeline that is small enough to try every schedule of it."""
    random = Random(seed)
    readers = random.choice([0, 0, 1, 2])
    tiles = random.choice([1, 2, 2, 3]) if readers else random.choice([2, 3, 4])
    program = mainloop(
        random.choice([1, 2]),
        tiles,
        copies=random.choice([1, 2]),
        peeks=random.random() < 0.5,
        readers=readers,
        accumulators=random.choice([1, 2]),
    )
    for _ in range(random.choice([0, 1, 1, 1, 2])):
        program = plant(program, random)
    return program
