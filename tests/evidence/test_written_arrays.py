"""What nodes of a tree leave is compared too: by name, byte and place in D."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fp4ref
from fp4ref import GemmConfig, compare
from fp4ref.errors import TraceError
from fp4ref.evidence.hardware_events import hardware_events
from fp4ref.gemm.fusion.expression import (
    Value,
    acc,
    alpha,
    amax,
    aux,
    build,
    c,
    col_amax,
    col_sum,
    relu_mask,
    row_amax,
    row_sum,
    total,
)
from fp4ref.trace import RecordedResult, Trace

M, N, K = 40, 50, 64
TREE = (
    alpha * acc
    | relu_mask("p")
    | aux("y", "bf16")
    | amax("D")
    | row_amax("n")
    | col_amax("m")
    | row_sum("r")
    | col_sum("c")
    | total("t")
)


def run(
    tree: Value = TREE, mode: dict[str, Any] | None = None, **more: Any
) -> fp4ref.Run:
    rng = np.random.default_rng(3)
    a, b = (fp4ref.quantize(rng.standard_normal((n, K), np.float32)) for n in (M, N))
    config = GemmConfig(epilogue=build(tree, d="f16")).replace(**(mode or {}))
    return fp4ref.run(a, b, config=config, **more)


@pytest.fixture(scope="module")
def base() -> fp4ref.Run:
    return run()


def changed(r: fp4ref.Run, slot: str, at: int, bit: int) -> tuple[Trace, int]:
    """A trace whose last write to a byte of an array is another; and its step."""
    assert r.trace is not None
    whole = r.trace
    trace = Trace(whole.events, [*whole.deltas], whole.images, whole.base, whole.meta)
    start = next(a for name, a, _ in trace.meta["allocations"] if name == slot)
    for event in reversed(trace.events):
        for i, where in enumerate(event.writes):
            if where.space == "gmem" and where.start <= start + at < where.end:
                place = start + at - where.start
                row, byte = divmod(place, where.pitch) if where.rows > 1 else (0, place)
                if byte < where.nbytes:
                    deltas = list(trace.deltas[event.step])
                    deltas[i] = deltas[i].copy()
                    deltas[i][row, byte] ^= 1 << bit
                    trace.deltas[event.step] = tuple(deltas)
                    return trace, event.step
    raise AssertionError(f"nothing wrote byte {at} of {slot}")


NAMES = ("mask p", "aux y", "amax D", "amax n", "amax m", "sum r", "sum c", "sum t")


def test_equal_arrays_are_counted(base: fp4ref.Run) -> None:
    found = compare(base, run(schedule="late"))
    assert found.ok, found.report()
    assert {name: found.counts[name] for name in NAMES} == dict.fromkeys(NAMES, 1)
    assert found.counts["D"] == 2, "an array of a user's name is no box of D"


# Rows of the mask take 16 bytes, those of y 112, of 50 columns.
PLACES = [
    ("mask_p", 16 * 33 + 5, 6, "mask p at m 33, n 46, batch 0", "row 33, column 46"),
    (
        "aux_y",
        112 * 37 + 2 * 9 + 1,
        2,
        "aux y at m 37, n 9, batch 0",
        "row 37, column 9",
    ),
    ("amax_D", 2, 0, "amax D", "rows 0 to 39, columns 0 to 49"),
    ("amax_n", 4 * 49, 1, "amax n at n 49", "rows 0 to 39, column 49"),
    ("amax_m", 4 * 39, 1, "amax m at m 39", "row 39, columns 0 to 49"),
    (
        "sum_r",
        4 * (2 * 50 + 7),
        3,
        "sum r at m 32, n 7, batch 0",
        "rows 32 to 39, column 7",
    ),
    (
        "sum_c",
        4 * (4 * 3 + 2),
        3,
        "sum c at m 3, n 32, batch 0",
        "row 3, columns 32 to 47",
    ),
    (
        "sum_t",
        4 * (2 * 4 + 2),
        3,
        "sum t at m 32, n 32, batch 0",
        "rows 32 to 39, columns 32 to 47",
    ),
]


@pytest.mark.parametrize(("slot", "at", "bit", "name", "words"), PLACES)
def test_a_byte_is_named_by_its_place_and_its_writer(
    base: fp4ref.Run, slot: str, at: int, bit: int, name: str, words: str
) -> None:
    """A maximum is of no batch: it is taken of all."""
    other, step = changed(base, slot, at, bit)
    d = compare(base, other).first_difference
    assert d is not None
    assert str(d.key) == name
    assert d.coordinates == f"byte {at}: {words}"
    assert d.values[0] != d.values[1]
    event = d.events[0]
    assert event is not None
    assert event.step == step
    nodes = {"mask_p": "relu_mask.py", "aux_y": "aux_store.py", "amax_D": "scalar_max"}
    assert nodes.get(slot, ".py") in event.source


# Rows of M: those of the mask take 16 bytes, those of y 80, of 40 rows of D.
OF_M = [
    ("D", 80 * 9 + 2 * 37, "D at m 32, n 0, batch 0", "row 37, column 9"),
    ("mask_p", 16 * 46 + 4, "mask p at m 33, n 46, batch 0", "row 33, column 46"),
    ("aux_y", 80 * 9 + 2 * 37, "aux y at m 37, n 9, batch 0", "row 37, column 9"),
    ("amax_n", 4 * 49, "amax n at n 49", "rows 0 to 39, column 49"),
    ("amax_m", 4 * 39, "amax m at m 39", "row 39, columns 0 to 49"),
    (
        "sum_r",
        4 * (3 * 7 + 2),
        "sum r at m 32, n 7, batch 0",
        "rows 32 to 39, column 7",
    ),
    (
        "sum_c",
        4 * (40 * 2 + 3),
        "sum c at m 3, n 32, batch 0",
        "row 3, columns 32 to 47",
    ),
]
ROWS_OF_M: tuple[dict[str, Any], ...] = (
    {"store": "transposed", "element_wise": "smem"},
    {"store": "transposed", "swap_ab": True},
)


@pytest.mark.parametrize("mode", ROWS_OF_M, ids=" ".join)
def test_rows_of_m_have_the_names_of_d(mode: dict[str, Any]) -> None:
    """Memory has rows and columns exchanged; what is said of them is of D."""
    first = run(mode=mode)
    for slot, at, name, words in OF_M:
        other, _ = changed(first, slot, at, 1)
        d = compare(first, other).first_difference
        assert d is not None
        assert str(d.key) == name
        assert d.coordinates.endswith(words)


def test_c_in_rows_of_m_has_the_names_of_d() -> None:
    tree = alpha * acc + c
    source = np.ones((M, N), np.float16)
    other = source.copy()
    other[37, 9] = 2
    pair = (run(tree, mode=ROWS_OF_M[1], c=x) for x in (source, other))
    d = compare(*pair).first_difference
    assert d is not None
    assert str(d.key) == "C at m 32, n 0, batch 0"
    assert d.coordinates == "row 37, column 9"


def test_what_b_times_a_leaves_has_the_names_of_d() -> None:
    """The kernel's A is B: its rows, and the lanes of an accumulator, are columns."""
    rng = np.random.default_rng(3)
    a, b = (fp4ref.quantize(rng.standard_normal((n, K), np.float32)) for n in (M, 200))
    config = GemmConfig(epilogue=build(alpha * acc, d="f16")).replace(**ROWS_OF_M[1])
    whole = fp4ref.run(a, b, config=config, tiles=[(1, 0)]).trace
    assert whole is not None
    trace = Trace(whole.events, [*whole.deltas], whole.images, whole.base, whole.meta)
    multiplied = (e for e in whole if (e.kind, e.operation) == ("land", "tcgen05.mma"))
    step = [e.step for e in multiplied][-1]
    deltas = [delta.copy() for delta in trace.deltas[step]]
    deltas[0][9, 4 * 37] ^= 1
    trace.deltas[step] = tuple(deltas)
    names = [str(key) for key in hardware_events(whole)]
    assert names[0] == "A at m 0, n 128, k 0, batch 0"
    assert names[-1] == "D at m 32, n 128, batch 0"
    d = compare(whole, trace).first_difference
    assert d is not None
    assert str(d.key) == "accumulator at m 0, n 128, k 0, K-block 3, batch 0"
    assert d.coordinates == "row 37, column 137 after k 256"


def test_the_values_are_codes_and_numbers(base: fp4ref.Run) -> None:
    other, _ = changed(base, "aux_y", 112 * 4 + 2 * 3 + 1, 7)
    d = compare(base, other).first_difference
    assert d is not None
    stored = base.aux["y"][4, 3]
    codes = [int(value.split()[0], 16) for value in d.values]
    assert codes == [int(stored.view(np.uint16)), int((-stored).view(np.uint16))]
    assert float(d.values[0].split()[2]) == pytest.approx(float(stored), rel=1e-4)
    mask, _ = changed(base, "mask_p", 16, 0)
    d = compare(base, mask).first_difference
    assert d is not None
    bit = int(base.aux["p"][1, 0])
    assert d.values == (str(bit), str(1 - bit))


def test_what_pads_a_row_is_not_compared(base: fp4ref.Run) -> None:
    """Elements 50 to 55 of a row of y are stored, and belong to nobody."""
    other, _ = changed(base, "aux_y", 112 * 4 + 2 * 50, 7)
    assert compare(base, other).ok


def test_a_result_of_one_run_only_is_a_difference(base: fp4ref.Run) -> None:
    other = run(alpha * acc | aux("y", "f32"))
    for pair in ((base, other), (other, base)):
        d = compare(*pair).first_difference
        assert d is not None
        assert str(d.key) in ("mask p", "aux y")
    d = compare(run(alpha * acc | aux("y", "bf16")), other).first_difference
    assert d is not None
    assert d.coordinates == "layouts differ"
    assert d.values == ("1 x 40 x 50 of bf16", "1 x 40 x 50 of f32")


def test_a_file_keeps_the_layout(base: fp4ref.Run, tmp_path: Any) -> None:
    assert base.trace is not None
    again = Trace.load(base.trace.save(tmp_path / "a"))
    assert RecordedResult.all_of(again.meta) == RecordedResult.all_of(base.trace.meta)
    assert compare(base, again).ok


@pytest.mark.parametrize(
    "row",
    [
        {"element": "f32"},
        {"element": "f32", "extents": [1, 0, 1], "row_nbytes": 4, "part": [1, 1, 1]},
        {"element": "f32", "extents": [1, 1], "row_nbytes": 4, "part": [1, 1, 1]},
        {"element": "f32", "extents": [1, 1, 1], "row_nbytes": "4", "part": [1, 1, 1]},
        7,
    ],
    ids=str,
)
def test_an_altered_layout_is_refused(row: Any) -> None:
    with pytest.raises(TraceError, match="the results in this trace"):
        RecordedResult.all_of({"results": {"aux_y": row}})
    with pytest.raises(TraceError, match="the results in this trace"):
        RecordedResult.all_of({"results": row})


def test_a_plain_run_has_none() -> None:
    a = fp4ref.quantize(np.ones((32, 64), np.float32))
    found = fp4ref.run(a, a)
    assert "results" not in found.meta
