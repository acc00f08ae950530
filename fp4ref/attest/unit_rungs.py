"""unit_rungs: TMEM, copies, the order of MMAs and copies, commits, CLC, and a pair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fp4ref.attest.mma_cases import Draw, M, atom, cores, rows_of
from fp4ref.attest.question import Part, Question, Words, as_bytes, of_file, one_cta
from fp4ref.device.launch import Call, Pointer
from fp4ref.hardware.instr_descriptor import InstrDescriptor
from fp4ref.hardware.tensor_memory import Shape, TensorMemory, fragment
from fp4ref.numerics import ScaleFormat, matmul_block_scaled

LANES = (("lane", M), ("column", 8))


def alloc() -> Question:
    """Columns taken and given back, in the order of ``alloc.cu``."""

    def predict() -> Words:
        tmem, found = TensorMemory(0), []
        for columns, freed in (
            *((512, (0, 512)), (256, None), (128, None), (32, (256, 128))),
            *((32, (0, 256)), (32, None)),
        ):
            column = tmem.find_free(columns)
            assert column is not None
            tmem.take(column, columns)
            found.append(column)
            if freed is not None:
                tmem.release(*freed)
        return np.array(found, np.uint32)

    part = Part("addresses", "out", 0, 6, predict)
    return of_file("alloc.cu", one_cta("alloc", 6, threads=32), (part,))


# -- tcgen05.ld and st -------------------------------------------------------------

_SHAPES: tuple[tuple[Shape, int, int, int], ...] = (
    ("32x32b", 4, 0, 0),
    ("16x64b", 4, 16, 0),
    ("16x128b", 2, 16, 0),
    ("16x256b", 1, 16, 0),
    ("16x32bx2", 4, 16, 8),
)
"""Shape, repeat, first lane of the warp, offset of the second half."""

_COLUMNS = 16


def ld_st() -> Question:
    """Five shapes with four registers, loaded and stored."""
    parts, each = [], (4 + _COLUMNS) * M
    for number, (shape, repeat, lane, split) in enumerate(_SHAPES):
        lanes, columns = fragment(shape, repeat, split)
        lanes = lanes + lane

        def loaded(lanes: np.ndarray = lanes, columns: np.ndarray = columns) -> Words:
            cells: Words = _pattern()
            found: Words = cells[_warps(lanes), np.tile(columns, (4, 1))].reshape(-1)
            return found

        def stored(lanes: np.ndarray = lanes, columns: np.ndarray = columns) -> Words:
            thread = np.arange(M, dtype=np.uint32)[:, None]
            values = 0xC3000000 | thread << 8 | np.arange(4, dtype=np.uint32)
            cells: Words = _pattern()
            cells[_warps(lanes), np.tile(columns, (4, 1))] = values
            return cells.reshape(-1)

        first = number * each
        parts += [
            Part(
                f"ld {shape}",
                "out",
                first,
                4 * M,
                loaded,
                (("thread", M), ("register", 4)),
            ),
            Part(
                f"st {shape}",
                "out",
                first + 4 * M,
                _COLUMNS * M,
                stored,
                (("lane", M), ("column", _COLUMNS)),
            ),
        ]
    return of_file("ld_st.cu", one_cta("ld_st", len(_SHAPES) * each), tuple(parts))


def _pattern() -> np.ndarray:
    """TMEM before each shape, (lanes, columns)."""
    lane = np.arange(M, dtype=np.uint32)[:, None]
    return 0xA5000000 | lane << 8 | np.arange(_COLUMNS, dtype=np.uint32)


def _warps(lanes: np.ndarray) -> np.ndarray:
    """Lanes of one warp's fragment, for all four warps."""
    return np.concatenate([lanes + 32 * warp for warp in range(4)])


# -- tcgen05.cp --------------------------------------------------------------------


def cp() -> Question:
    """32x128b.warpx4, and the same with a leading offset in the descriptor."""
    source = np.random.default_rng(11).integers(0, 1 << 32, (2, 32, 4), np.uint32)
    parts = tuple(
        Part(
            name,
            "out",
            i * 4 * M,
            4 * M,
            lambda i=i: np.tile(source[i], (4, 1)).reshape(-1),  # type: ignore[misc]
            (("lane", M), ("column", 4)),
        )
        for i, name in enumerate(("warpx4", "leading offset"))
    )
    return of_file("cp.cu", one_cta("cp", 8 * M, source), parts, tensor_core=True)


def cp_shapes() -> Question:
    """The shapes that are not for scales, from core matrices, each to eight columns."""
    source = np.arange(1024, dtype=np.uint32)
    # Eight rows of 16 bytes are together; 128 bytes further is the second half of K.
    rows = source.reshape(16, 2, 8, 4).transpose(0, 2, 1, 3).reshape(M, 8)
    lane = np.arange(M)

    def landed(row: np.ndarray, words: int, lanes: np.ndarray = lane) -> Words:
        found = np.full((M, 8), 0xEEEEEEEE, np.uint32)
        found[lanes, :words] = rows[row, :words]
        return found.reshape(-1)

    shapes: dict[str, Callable[[], Words]] = {
        "128x256b": lambda: landed(lane, 8),
        "4x256b": lambda: landed(np.arange(4), 8, np.arange(0, M, 32)),
        "128x128b": lambda: landed(lane, 4),
        "64x128b 02_13": lambda: landed(lane % 64, 4),
        "64x128b 01_23": lambda: landed(lane // 64 * 32 + lane % 32, 4),
    }
    parts = tuple(
        Part(name, "out", i * 8 * M, 8 * M, predicted, LANES)
        for i, (name, predicted) in enumerate(shapes.items())
    )
    return of_file("cp_shapes.cu", one_cta("cp_shapes", 40 * M, source), parts)


# -- order, commit -----------------------------------------------------------------

_LINKS = 16


def order() -> Question:
    """Chains of MMAs with no wait between, on one set of scales and on sixteen."""
    draw = Draw(12)
    a, b = draw.codes("e2m1", 64), draw.codes("e2m1", 64, 8)
    sfb = draw.scales(0x20, 0x50, 4, 8)
    sfa = [draw.scales(0x18, 0x58, 4) for _ in range(_LINKS)]

    def chain(alternates: bool) -> Words:
        scales = [sfa[link if alternates else 0] for link in range(_LINKS)]
        d = matmul_block_scaled(
            np.tile(a, _LINKS),
            np.tile(b, _LINKS),
            np.hstack(scales),
            np.tile(sfb, _LINKS),
            scale_format=ScaleFormat.UE4M3,
            vec_size=16,
        )
        return d.view(np.uint32).reshape(-1)

    image = cores(rows_of(a, "e2m1", True)) + cores(rows_of(b, "e2m1", True))
    image += atom(sfb, 0) + b"".join(atom(each, 0) for each in sfa)
    parts = (
        Part("chain", "out", 0, 8 * M, lambda: chain(False), LANES),
        Part("alternating scales", "out", 8 * M, 8 * M, lambda: chain(True), LANES),
    )
    idesc = InstrDescriptor(M, 8, ScaleFormat.UE4M3).encode()
    source = np.frombuffer(image, np.uint32)
    call = one_cta("order", 16 * M, source, idesc, smem_nbytes=20 << 10)
    return of_file("order.cu", call, parts, ordering="shipped", tensor_core=True)


def commit() -> Question:
    """Arrivals of commits: how many, and in which order."""

    def ones(count: int) -> Words:
        return np.ones(count, np.uint32)

    parts = (
        Part("arrivals", "out", 0, 3, lambda: np.array([1, 0, 1], np.uint32)),
        Part("order", "out", 3, 8, lambda: ones(8)),
    )
    source = np.random.default_rng(13).integers(0, 1 << 32, 128, np.uint32)
    return of_file("commit.cu", one_cta("commit", 11, source), parts, tensor_core=True)


# -- CLC ---------------------------------------------------------------------------

_GRID = (64, 16, 1)
"""More CTAs than the SMs of a card, one on each: each takes most of the memory."""


def clc() -> Question:
    """Each CTA of a grid is done once, whoever takes it over."""
    count = _GRID[0] * _GRID[1]
    parts = (
        Part(
            "each once",
            "out",
            0,
            count,
            lambda: np.ones(count, np.uint32),
            (("ctaid.y", _GRID[1]), ("ctaid.x", _GRID[0])),
        ),
        Part("answers", "out", count, 2, lambda: np.array([0, 1], np.uint32)),
        Part("bytes", "out", count + 2, 1, lambda: np.zeros(1, np.uint32)),
    )
    call = replace(
        one_cta("clc", count + 3, threads=32, smem_nbytes=200 << 10), grid=_GRID
    )
    call = replace(call, buffers={"out": np.zeros(4 * (count + 3), np.uint8)})
    return of_file("clc.cu", call, parts, sms=3)


# -- a pair ------------------------------------------------------------------------


def pair() -> Question:
    """One MMA of two CTAs: M = 256, N = 16.

    The scales of B differ between the CTAs, to see from where each takes them.
    """
    draw = Draw(14)
    a, b = draw.codes("e2m1", 64, 2 * M), draw.codes("e2m1", 64, 16)
    sfa = draw.scales(1, 0x7E, 4, 2 * M)
    sfb = draw.scales(1, 0x7E, 4, 16), draw.scales(1, 0x7E, 4, 16)

    def predict(rank: int) -> Words:
        rows = slice(rank * M, (rank + 1) * M)
        d = matmul_block_scaled(
            a[rows],
            b,
            sfa[rows],
            sfb[rank],
            scale_format=ScaleFormat.UE4M3,
            vec_size=16,
        )
        return d.view(np.uint32).reshape(-1)

    image = b""
    for rank in range(2):
        rows = slice(rank * M, (rank + 1) * M)
        image += cores(rows_of(a[rows], "e2m1", True))
        image += cores(rows_of(b[rank * 8 : rank * 8 + 8], "e2m1", True))
        image += atom(sfa[rows], 0) + atom(sfb[rank], 0)
    parts = tuple(
        Part(
            name,
            "out",
            rank * 16 * M,
            16 * M,
            lambda rank=rank: predict(rank),  # type: ignore[misc]
            (("row", M), ("column", 16)),
        )
        for rank, name in enumerate(("even CTA", "odd CTA"))
    )
    idesc = InstrDescriptor(2 * M, 16, ScaleFormat.UE4M3).encode()
    call = Call(
        "pair",
        {
            "in": as_bytes(np.frombuffer(image, np.uint32)),
            "out": np.full(4 * 32 * M, 0xEE, np.uint8),
        },
        (Pointer("in"), np.uint32(idesc), Pointer("out")),
        grid=(2, 1, 1),
        block=(M, 1, 1),
        cluster=(2, 1, 1),
        smem_nbytes=16 << 10,
    )
    return of_file("pair.cu", call, parts, tensor_core=True, sms=2)
