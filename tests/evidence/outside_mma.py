"""outside_mma: what other emulators, and cards of others, make of one tcgen05.mma.

TIRx's numsim multiplies small integers and compares with their sums; what it refuses is
an error. The numbers here are others, as small, so that every sum is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mma_tiles import (
    A_AT,
    B_AT,
    SFA,
    SFB,
    commit_and_wait,
    descriptor,
    put_scales,
    with_tmem,
)
from numpy.typing import NDArray
from on_machine import MBAR
from outside_programs import Body, Program

from fp4ref.errors import MisalignedAddress
from fp4ref.hardware import mma_mxf8f6f4, mma_unscaled, tcgen05, tmem
from fp4ref.hardware.instr_descriptor import UnscaledInstrDescriptor

N, A_COLUMN = 16, 300
MARK = 0x5EED5EED
"""What cells of D hold before."""

Integers = NDArray[np.int64]

E4M3 = {0: 0x00, 1: 0x38, 2: 0x40, 3: 0x44}
E2M1 = {0: 0x0, 1: 0x2, 2: 0x4, 3: 0x5}
"""Codes of small integers; the sign is the top bit."""


def integers(seed: int, rows: int, k: int) -> Integers:
    """Return small integers, shape (rows, k)."""
    return np.random.default_rng(seed).integers(-3, 4, (rows, k))


def rows_of(values: Integers, kind: str) -> NDArray[np.uint8]:
    """Return each row as bytes: 32 of them hold what one MMA takes."""
    if kind in ("f16", "tf32"):
        dtype = np.float16 if kind == "f16" else np.float32
        return values.astype(dtype).view(np.uint8)
    codes, top = (E2M1, 8) if kind == "mxf4" else (E4M3, 0x80)
    found = np.vectorize(codes.__getitem__)(abs(values)) | np.where(values < 0, top, 0)
    if kind == "mxf4":
        found = found[:, ::2] | found[:, 1::2] << 4
    return np.ascontiguousarray(found.astype(np.uint8))


def put_tile(cta: Any, at: int, rows: NDArray[np.uint8]) -> None:
    """Write rows of 32 bytes in the K-major layout of the 128-byte swizzle."""
    for row, line in enumerate(rows):
        for byte in range(0, 32, 16):
            linear = at + 128 * row + byte
            cta.smem.poke(linear ^ (linear >> 7 & 7) << 4, line[byte : byte + 16])


K = {"f16": 16, "tf32": 8, "f8f6f4": 32, "mxf8f6f4": 32, "mxf4": 64}


def _operands(kind: str, m: int = 128) -> tuple[Integers, Integers]:
    return integers(5, m, K[kind]), integers(6, N, K[kind])


def _tiles(cta: Any, kind: str) -> None:
    for at, values in zip((A_AT, B_AT), _operands(kind), strict=True):
        put_tile(cta, at, rows_of(values, kind))


def _word(kind: str, m: int = 128, n: int = N, d_type: int = 1) -> int:
    types = 2 << 7 | 2 << 10 if kind == "tf32" else 0
    return d_type << 4 | types | n >> 3 << 17 | m >> 4 << 24


def f16_word(m: int, n: int) -> int:
    """The instruction descriptor of FP16 with D in float32."""
    return _word("f16", m, n)


def _mma(warp: Any, kind: str, *, d: int = 0, **options: Any) -> Any:
    """Issue one MMA of `_tiles` and wait for it."""
    given = {"a": descriptor(A_AT), "word": _word(kind), "accumulate": False} | options
    at = given.pop("a"), descriptor(B_AT)
    word, accumulate = given.pop("word"), given.pop("accumulate")
    mma_unscaled.mma(warp, d, *at, word, accumulate, kind=kind, **given)
    yield from commit_and_wait(warp)
    tcgen05.fence_after_thread_sync(warp)


def _cells(warp: Any, rows: int, lanes: Any = None) -> NDArray[np.float32]:
    lanes = range(rows) if lanes is None else lanes
    found: NDArray[np.float32] = warp.tmem.cells[list(lanes), :N].view(np.float32)
    return found


def _fill(warp: Any, cells: NDArray[Any], column: int = 0) -> None:
    for lane, line in enumerate(cells):
        at = lane * 2048 + 4 * column
        warp.tmem.poke(at, np.ascontiguousarray(line).view(np.uint8))


def _say(warp: Any, found: Any, want: Any) -> None:
    warp.machine.said.append("sum" if np.array_equal(found, want) else "other")


def _of(kind: str) -> Any:
    return {"setup": lambda cta: _tiles(cta, kind)}


def scaled_d(shift: int) -> tuple[Body, ...]:
    """D is divided by a power of two, and the product added."""
    a, b = _operands("f16")
    c = 4 * integers(7, 128, N)

    def steps(warp: Any) -> Any:
        _fill(warp, c.astype(np.float32))
        yield from _mma(warp, "f16", accumulate=True, scale_input_d=shift)
        _say(warp, _cells(warp, 128), a @ b.T + c / 2**shift)

    return (with_tmem(steps),)


def kinds_that_scale(kind: str) -> tuple[Body, ...]:
    """The same by another kind."""

    def steps(warp: Any) -> Any:
        _tiles(warp.cta, kind)
        _fill(warp, np.zeros((128, N), np.float32))
        yield from _mma(warp, kind, accumulate=True, scale_input_d=1)

    return (with_tmem(steps),)


LANES_OF_64 = [32 * (row // 16) + row % 16 for row in range(64)]


def disabled_lanes(mask: tuple[int, ...]) -> tuple[Body, ...]:
    """64 rows of A in TMEM; which rows of D are written, and is their sum right?"""
    a, b = _operands("f16", 64)

    def steps(warp: Any) -> Any:
        _fill(warp, np.full((128, N), MARK, np.uint32))
        for lane, line in zip(LANES_OF_64, rows_of(a, "f16"), strict=True):
            warp.tmem.poke(lane * 2048 + 4 * A_COLUMN, line)
        options = {"word": _word("f16", 64), "disable_output_lanes": mask}
        yield from _mma(warp, "f16", a=A_COLUMN, a_in_tmem=True, **options)
        found = _cells(warp, 64, LANES_OF_64)
        kept = (found.view(np.uint32) == MARK).all(axis=1)
        warp.machine.said += [int(row) for row in np.flatnonzero(kept)]
        _say(warp, found[~kept], (a @ b.T)[~kept])

    return (with_tmem(steps),)


def disabled_input(mask: tuple[int, ...]) -> tuple[Body, ...]:
    """D is added to, and a lane of it has never been written."""

    def steps(warp: Any) -> Any:
        for lane in (each for each in range(128) if each != 33):
            warp.tmem.poke(lane * 2048, np.zeros(4 * N, np.uint8))
        yield from _mma(warp, "f16", accumulate=True, disable_output_lanes=mask)

    return (with_tmem(steps),)


def halves_of_d(_: str) -> tuple[Body, ...]:
    """D in FP16: which half of a cell has the sum?"""
    a, b = _operands("f8f6f4")

    def steps(warp: Any) -> Any:
        yield from _mma(warp, "f8f6f4", word=_word("f8f6f4", d_type=0))
        low = (warp.tmem.cells[:, :N] & 0xFFFF).astype(np.uint16)
        _say(warp, low.view(np.float16), a @ b.T)

    return (with_tmem(steps),)


def instruction(variant: tuple[str, int]) -> tuple[Body, ...]:
    """An instruction descriptor is read; its word stands for no tile."""
    kind, word = variant

    def body(warp: Any) -> None:
        UnscaledInstrDescriptor.decode(word, kind)  # type: ignore[arg-type]
        warp.machine.said.append("taken")

    return (body,)


def collector(usages: tuple[str, ...]) -> tuple[Body, ...]:
    """MMAs one after another, of one A."""

    def steps(warp: Any) -> Any:
        at = descriptor(A_AT), descriptor(B_AT)
        for i, usage in enumerate(usages):
            mma_unscaled.mma(
                *(warp, N * i, *at, _word("f16"), False),
                collector=usage,  # type: ignore[arg-type]
            )
        yield from commit_and_wait(warp)

    return (with_tmem(steps),)


def replicas(lane: int) -> tuple[Body, ...]:
    """Scales in each quarter of the lanes; one byte of some quarter is another one."""

    def steps(warp: Any) -> Any:
        for column in (SFA, SFB):
            put_scales(warp, column, np.full((128, 4), 127))
        if lane >= 0:
            warp.tmem.poke(lane * 2048 + 4 * SFA, np.array([128], np.uint8))
        at, word = (
            (descriptor(A_AT), descriptor(B_AT)),
            1 << 23 | N >> 3 << 17 | 1 << 27,
        )
        mma_mxf8f6f4.mma(warp, 0, *at, word, SFA, SFB, False)
        yield from commit_and_wait(warp)

    return (with_tmem(steps),)


def nibbles(_: str) -> tuple[Body, ...]:
    """E2M1 of A in TMEM, eight in a word, with scales of 1."""
    a, b = _operands("mxf4")

    def steps(warp: Any) -> Any:
        for column in (SFA, SFB):
            put_scales(warp, column, np.full((128, 4), 127))
        _fill(warp, rows_of(a, "mxf4"), A_COLUMN)
        word = 1 << 7 | 1 << 10 | N >> 3 << 17 | 1 << 23 | 1 << 27
        at, options = (A_COLUMN, descriptor(B_AT)), {"kind": "mxf4", "scale_vec": "2X"}
        tcgen05.mma(warp, 0, *at, word, SFA, SFB, False, a_in_tmem=True, **options)
        yield from commit_and_wait(warp)
        tcgen05.fence_after_thread_sync(warp)
        _say(warp, _cells(warp, 128), a @ b.T)

    return (with_tmem(steps),)


def first_lane(lane: int) -> tuple[Body, ...]:
    """64 rows of D from some lane on."""
    a, b = _operands("f16", 128)

    def steps(warp: Any) -> Any:
        yield from _mma(warp, "f16", d=lane << 16, word=_word("f16", 64))
        found = _cells(warp, 64, [lane + each for each in LANES_OF_64])
        _say(warp, found, (a @ b.T)[:64])

    return (with_tmem(steps),)


def freed(again: str) -> tuple[Body, ...]:
    """Columns are stored to, and read, perhaps after they were freed and taken anew."""

    def body(warp: Any) -> Any:
        yield from tmem.alloc(warp, MBAR + 8, 32)
        tmem.st(warp, 0, np.zeros((32, 1), np.uint32))
        yield from tmem.wait_st(warp)
        if again:
            tmem.dealloc(warp, 0, 32)
            yield from tmem.alloc(warp, MBAR + 16, 32)
        tmem.ld(warp, 0, "32x32b", 1)
        yield from tmem.wait_ld(warp)
        tmem.dealloc(warp, 0, 32)

    return (body,)


def second_half(split: int) -> tuple[Body, ...]:
    """A store of low halves in two parts, the second some columns after the first."""

    def body(warp: Any) -> Any:
        yield from tmem.alloc(warp, MBAR + 8, 32)
        words = np.zeros((32, 1), np.uint32)
        try:
            tmem.st(warp, 0, words, "16x32bx2", 1, split, packed=True)
        except MisalignedAddress:
            warp.machine.said.append("misaligned")
        yield from tmem.wait_st(warp)
        tmem.dealloc(warp, 0, 32)

    return (body,)


NUMSIM = "TIRx-Harness, numsim oplib, tcgen05 "
PROGRAMS = {
    "scale of D": Program(
        f"{NUMSIM}mma, and its test enable_input_d_accumulates_with_scale",
        scaled_d,
        {0: "sum", 1: "sum"},
        _of("f16"),
    ),
    "kinds that scale D": Program(
        f"{NUMSIM}mma: scale-input-d is of f16 and tf32",
        kinds_that_scale,
        {"f16": "clean", "tf32": "clean", "f8f6f4": "error"},
    ),
    "disabled lanes, A in TMEM": Program(
        f"{NUMSIM}mma, and its test f16_ts_with_disabled_output_lane",
        disabled_lanes,
        {(0, 0, 0, 0): "sum", (2, 1, 0, 0): "1 16 sum"},
        _of("f16"),
    ),
    "input of a disabled lane": Program(
        f"{NUMSIM}gather, read_dense_window",
        disabled_input,
        {(0, 2, 0, 0): "clean", (0, 1, 0, 0): "error"},
        _of("f16"),
    ),
    "D in FP16": Program(
        f"{NUMSIM}mma, and its test f8_e4m3_ss_and_f16_destination",
        halves_of_d,
        {"low": "sum"},
        _of("f8f6f4"),
    ),
    "types of D": Program(
        f"{NUMSIM}instr_desc, decode_b16, decode_tf32, decode_f8f6f4",
        instruction,
        {
            ("f16", _word("f16", d_type=0)): "taken",
            ("f16", _word("f16") | 1 << 7 | 1 << 10): "taken",
            ("f16", _word("f16", d_type=0) | 1 << 7 | 1 << 10): "error",
            ("tf32", _word("tf32")): "taken",
            ("tf32", _word("tf32", d_type=0)): "error",
            ("f8f6f4", _word("f8f6f4", d_type=0)): "taken",
        },
    ),
    "N of an MN-major B": Program(
        f"{NUMSIM}instr_desc, decode_f8f6f4",
        instruction,
        {
            ("f8f6f4", _word("f8f6f4", 64, 8)): "taken",
            ("f8f6f4", _word("f8f6f4", 64, 16) | 1 << 16): "taken",
            ("f8f6f4", _word("f8f6f4", 64, 8) | 1 << 16): "error",
            ("f8f6f4", _word("f8f6f4", 64, 24) | 1 << 16): "error",
        },
    ),
    "uses of the collector": Program(
        f"{NUMSIM}engine-rs, collector_transition",
        collector,
        {
            ("fill", "use", "lastuse"): "clean",
            ("use",): "error",
            ("fill", "lastuse", "use"): "error",
            ("fill", "discard", "use"): "error",
        },
        _of("f16"),
    ),
    "replicas of the scales": Program(
        f"{NUMSIM}scale, mxf8_scale_values",
        replicas,
        {-1: "clean", 5: "error", 37: "error", 101: "error"},
        _of("mxf8f6f4"),
    ),
    "nibbles of A in TMEM": Program(
        f"{NUMSIM}narrow, decode_e2m1_word", nibbles, {"low first": "sum"}, _of("mxf4")
    ),
    "lanes of 64 rows": Program(
        "nymph: tcgen05_mma_all_layouts_match_hardware, on a card",
        first_lane,
        {0: "sum", 16: "sum"},
        _of("f16"),
    ),
    "freed columns": Program(
        "TIRx-Harness, numsim-core, tcgen_dealloc",
        freed,
        {"": "clean", "anew": "error"},
    ),
    "second half of a packed store": Program(
        "triton-lang/triton pull request 10321: misaligned address",
        second_half,
        {1: "misaligned", 2: "clean"},
    ),
}
