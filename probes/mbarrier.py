"""mbarrier: scripts of operations, with the raw word after each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fp4ref.device import Call, Pointer
from fp4ref.hardware import mbarrier
from fp4ref.hardware.sm import Body, Cta, Role, Warp
from probes.probe import Case, Outputs, Probe, blank, new_machine, pattern, words

INIT, ARRIVE, EXPECT_TX, COMPLETE_TX, ARRIVE_EXPECT_TX, TEST_WAIT = (
    1 << i for i in range(6)
)
MAX = mbarrier.MAX_COUNT
LIVE = mbarrier.MbarrierState(0, 2, 3, 0).encode()
UNLIKE = (
    "on silicon the word of a live mbarrier is kept by the unit that counts: ld.shared "
    "sees what was there before; the emulator keeps the word in shared memory"
)
Script = list[tuple[int, int]]
BOTH_PARITIES: Script = [(TEST_WAIT, 0), (TEST_WAIT, 1)]

LEGAL: dict[str, Script] = {
    "init": [(INIT, n) for n in (1,)],
    "init 5": [(INIT, 5)],
    "init 32": [(INIT, 32)],
    "init most": [(INIT, MAX)],
    "arrive to the end of three phases": [
        (INIT, 3),
        *BOTH_PARITIES,
        *([(ARRIVE, 1), *BOTH_PARITIES] * 9),
    ],
    "arrive with counts": [
        (INIT, 10),
        *((ARRIVE, n) for n in (3, 7, 10, 1, 9)),
    ],
    "arrive the most at once": [(INIT, MAX), (ARRIVE, MAX), (ARRIVE, MAX - 1)],
    "expected bytes": [
        (INIT, 5),
        (ARRIVE, 1),
        (EXPECT_TX, 0x123),
        (COMPLETE_TX, 0x23),
        (ARRIVE, 4),
        *BOTH_PARITIES,
        (COMPLETE_TX, 0x100),
        *BOTH_PARITIES,
    ],
    "no arrival pending, bytes pending": [
        (INIT, 1),
        (EXPECT_TX, 0x1000),
        (ARRIVE, 1),
        *BOTH_PARITIES,
        (COMPLETE_TX, 0xFFF),
        (COMPLETE_TX, 1),
        *BOTH_PARITIES,
    ],
    "bytes before they are expected": [
        (INIT, 2),
        (COMPLETE_TX, 0x100),
        (ARRIVE, 1),
        (EXPECT_TX, 0x180),
        (COMPLETE_TX, 0x80),
        (ARRIVE, 1),
        *BOTH_PARITIES,
    ],
    "no arrival pending, more bytes than expected": [
        (INIT, 1),
        (COMPLETE_TX, 0x40),
        (ARRIVE, 1),
        *BOTH_PARITIES,
        (EXPECT_TX, 0x40),
        *BOTH_PARITIES,
    ],
    "expect and arrive at once": [
        (INIT, 2),
        (ARRIVE_EXPECT_TX, 0x9000),
        (COMPLETE_TX, 0x8000),
        (ARRIVE_EXPECT_TX, 0x10),
        (COMPLETE_TX, 0x1010),
        *BOTH_PARITIES,
        (ARRIVE_EXPECT_TX, 0),
        (ARRIVE_EXPECT_TX, 0),
        *BOTH_PARITIES,
    ],
    "negative, then expect and arrive complete it": [
        (INIT, 1),
        (COMPLETE_TX, 0x20),
        (ARRIVE_EXPECT_TX, 0x20),
        *BOTH_PARITIES,
    ],
    "largest tx-counts": [
        (INIT, 1),
        (EXPECT_TX, MAX),
        (COMPLETE_TX, MAX),
        (COMPLETE_TX, MAX),
        (EXPECT_TX, MAX),
        (ARRIVE, 1),
    ],
    "nothing expected, nothing completed": [
        (INIT, 1),
        (EXPECT_TX, 0),
        (COMPLETE_TX, 0),
        (ARRIVE, 1),
    ],
}

FORBIDDEN: dict[str, Script] = {
    "one arrival too many": [(INIT, 2), (ARRIVE, 3)],
    "33 arrivals of 1": [(INIT, 1), (ARRIVE, 33)],
    "arrival while only bytes are pending": [
        (INIT, 1),
        (ARRIVE_EXPECT_TX, 0x40),
        (ARRIVE, 1),
    ],
    "tx-count of 2^20": [(INIT, 1), (EXPECT_TX, MAX), (EXPECT_TX, 1)],
    "tx-count of 2^21 - 2": [(INIT, 1), (EXPECT_TX, MAX), (EXPECT_TX, MAX)],
    "tx-count of -2^20": [(INIT, 1), (COMPLETE_TX, MAX), (COMPLETE_TX, 1)],
    "tx-count of -2^20 - 1": [(INIT, 1), (COMPLETE_TX, MAX), (COMPLETE_TX, 2)],
    "tx-count of -2^21 + 2": [(INIT, 1), (COMPLETE_TX, MAX), (COMPLETE_TX, MAX)],
    "expect 2^20 bytes": [(INIT, 1), (EXPECT_TX, MAX + 1)],
    "expect 2^21 bytes": [(INIT, 1), (EXPECT_TX, 2 * MAX + 2)],
    "complete 2^20 bytes": [(INIT, 1), (COMPLETE_TX, MAX + 1)],
    "init with 0": [(INIT, 0)],
    "init with 2^20": [(INIT, MAX + 1)],
    "init with 0, then arrive": [(INIT, 0), (ARRIVE, 1)],
    "arrive 0": [(INIT, 2), (ARRIVE, 0)],
    "arrive 2^20": [(INIT, 2), (ARRIVE, MAX + 1)],
    "init twice": [(INIT, 3), (ARRIVE, 1), (INIT, 2)],
}
"""Scripts whose last operation the emulator refuses; silicon traps, or answers."""


def _random_script(seed: int, length: int) -> Script:
    """Return a legal script, by the emulator's own rules."""
    numbers = iter(pattern(seed, 4 * length).tolist())
    count = 1 + next(numbers) % 6
    script = [(INIT, count)]
    pending, tx = count, 0
    for _ in range(length):
        kind, amount = next(numbers) % 6, next(numbers) % 0x8000
        if kind == 0 and pending:
            arrivals = 1 + amount % pending
            script.append((ARRIVE, arrivals))
            pending -= arrivals
        elif kind == 1 and pending:
            script.append((ARRIVE_EXPECT_TX, amount))
            pending, tx = pending - 1, tx + amount
        elif kind == 2:
            script.append((EXPECT_TX, amount))
            tx += amount
        elif kind == 3 or not pending:
            # Settle the bytes often, so that many phases complete.
            amount = tx if tx > 0 else amount
            script.append((EXPECT_TX, -tx) if tx < 0 else (COMPLETE_TX, amount))
            tx = 0 if tx < 0 else tx - amount
        else:
            script.append((TEST_WAIT, amount % 2))
        if pending == 0 and tx == 0:
            pending = count
    return script


def _settled(script: Script) -> Script:
    """Add what makes the tx-count 0, which a CTA must leave behind."""
    tx = 0
    for op, operand in script:
        if op in (EXPECT_TX, ARRIVE_EXPECT_TX):
            tx += operand
        elif op == COMPLETE_TX:
            tx -= operand
    if tx == 0:
        return script
    return [*script, (COMPLETE_TX, tx) if tx > 0 else (EXPECT_TX, -tx)]


def _case(name: str, script: Script, refusal: str = "") -> Case:
    flat = [number for step in script for number in step]
    call = Call(
        "mbarrier_script",
        {
            "script": words(flat),
            "words": blank(8 * len(script)),
            "results": blank(4 * len(script)),
        },
        (
            Pointer("script"),
            Pointer("words"),
            Pointer("results"),
            np.uint32(len(script)),
        ),
        smem_nbytes=16,
    )
    return Case(name, call, ("words", "results"), refusal)


def cases() -> Iterator[Case]:
    """Named scripts, then random ones."""
    for name, script in LEGAL.items():
        yield _case(name, _settled(script))
    for seed in range(12):
        yield _case(f"random {seed}", _settled(_random_script(seed, 40)))
    live = Call("live_word", {"out": blank(24)}, (Pointer("out"),), smem_nbytes=16)
    yield Case("live word", live, ("out",), unlike=UNLIKE)
    for name, script in FORBIDDEN.items():
        yield _case(name, script, "MbarrierFault")


def emulate(case: Case) -> Outputs:
    """The same script by `fp4ref.hardware.mbarrier`."""
    call = case.call
    if call.entry == "live_word":
        return {"out": np.array([LIVE, LIVE, 1], np.uint64).view(np.uint8)}
    script = call.buffers["script"].view(np.uint32).reshape(-1, 2).tolist()
    machine, _ = new_machine(call)
    shown: list[int] = []
    answers: list[int] = []

    def role(warp: Warp) -> Body:
        at = warp.cta.smem_base
        for op, operand in script:
            answer = 0
            match op:
                case 1:
                    mbarrier.init(warp, at, operand)
                case 2:
                    mbarrier.arrive(warp, at, operand)
                case 4:
                    mbarrier.expect_tx(warp, at, operand)
                case 8:
                    mbarrier.complete_tx(warp, at, operand)
                case 16:
                    mbarrier.arrive_expect_tx(warp, at, operand)
                case _:
                    answer = mbarrier.test_wait(warp, at, operand)
            shown.append(int.from_bytes(warp.smem.data[:8].tobytes(), "little"))
            answers.append(int(answer))
        yield from ()

    def kernel(cta: Cta) -> Sequence[Role]:
        return [role]

    machine.launch(kernel, call.grid, smem_nbytes=call.smem_nbytes)
    return {
        "words": np.array(shown, np.uint64).view(np.uint8),
        "results": np.array(answers, np.uint32).view(np.uint8),
    }


PROBE = Probe("mbarrier", tuple(cases()), emulate)
