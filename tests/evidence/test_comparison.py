"""compare: equal whatever the schedule, and the first difference named by its place."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from wide_operands import UE8M0, wide_bias, wide_c, wide_pair

import fp4ref
from fp4ref import BlockScaled, GemmConfig, compare
from fp4ref.errors import InputError
from fp4ref.evidence.comparison import Comparison
from fp4ref.evidence.hardware_events import hardware_events
from fp4ref.trace import Trace

M, N, K = 200, 150, 320
SETTINGS: dict[str, Any] = {
    "d_format": "nvfp4",
    "sfd_format": UE8M0,
    "norm_constant": 2.0,
    "c_format": "f32",
    "beta": 0.5,
    "bias": True,
}


def run(
    schedule: str | int = "eager",
    *,
    a: BlockScaled | None = None,
    b: BlockScaled | None = None,
    c: Any = None,
    bias: Any = None,
    sms: int = 2,
    ordering: Any = "ptx",
    tiles: Any = None,
    **settings: Any,
) -> fp4ref.Run:
    """Run the problem of this file, with some things replaced."""
    pair = wide_pair(0, M, N, K)
    config = GemmConfig.nvfp4(**SETTINGS | settings)
    needs_c = config.epilogue.c_format is not None
    return fp4ref.run(
        a or pair[0],
        b or pair[1],
        (wide_c(0, (M, N), "f32") if c is None else c) if needs_c else None,
        bias=wide_bias(0, N) if bias is None else bias,
        config=config,
        schedule=schedule,
        sms=sms,
        ordering=ordering,
        tiles=tiles,
    )


@pytest.fixture(scope="module")
def base() -> fp4ref.Run:
    return run()


def trace_of(r: fp4ref.Run) -> Trace:
    assert r.trace is not None
    return r.trace


@pytest.mark.parametrize(
    "changes",
    [
        {"schedule": "late"},
        {"schedule": 17},
        {"sms": 1},
        {"sms": 4, "schedule": 3},
        {"scheduler": "static"},
        {"scheduler": "static", "raster": "n", "schedule": 5},
        {"stages": 2, "schedule": 8},
        {"accumulator_stages": 1, "d_stages": 1, "c_stages": 1},
        {"scale_buffers": 1, "ordering": "shipped", "schedule": "late"},
    ],
    ids=str,
)
def test_schedules_stages_and_schedulers_make_no_difference(
    base: fp4ref.Run, changes: dict[str, Any]
) -> None:
    found = compare(base, run(**changes))
    assert found.ok, found.report()
    tiles, k_tiles, blocks = 4, 2, 4
    wanted = dict.fromkeys(("A", "B", "SFA", "SFB"), tiles * k_tiles)
    for tensor in ("SFA in TMEM", "SFB in TMEM", "accumulator"):
        wanted[tensor] = tiles * k_tiles * blocks
    wanted |= {"C": tiles * 4, "D": 2 * 5, "SFD": 1}  # D's boxes reach N = 150
    assert found.counts == wanted
    assert found.compared == sum(wanted.values())
    assert found.report().startswith("equal: ")


def test_a_run_equals_itself(base: fp4ref.Run) -> None:
    assert compare(base, base).ok
    assert compare(trace_of(base), trace_of(base)).ok


def first(a: fp4ref.Run, b: fp4ref.Run | Trace) -> tuple[Comparison, Any]:
    found = compare(a, b)
    assert not found.ok
    assert found.report().startswith("different\n")
    return found, found.first_difference


def changed(
    q: BlockScaled, *, code: Any = None, scale: Any = None
) -> tuple[BlockScaled, tuple[int, int]]:
    """Flip the low bit of one code or of one scale; return the two codes."""
    codes, scales = q.codes.copy(), q.scales.copy()
    array, at = (codes, code) if code else (scales, scale)
    old = int(array[at])
    array[at] ^= 1
    return BlockScaled(codes, scales), (old, old ^ 1)


def test_a_code_of_a_is_named_by_row_and_k(base: fp4ref.Run) -> None:
    a, codes = changed(wide_pair(0, M, N, K)[0], code=(133, 261))
    _, d = first(base, run(a=a))
    assert (d.key.tensor, d.key.m, d.key.k) == ("A", 128, 256)
    assert d.coordinates == "row 133, k 260 and 261"
    for text, code in zip(d.values, codes, strict=True):
        assert f", {code:#x} = " in text


def test_a_code_of_b_is_named_by_row_and_k(base: fp4ref.Run) -> None:
    b, codes = changed(wide_pair(0, M, N, K)[1], code=(141, 14))
    _, d = first(base, run(b=b))
    assert (d.key.tensor, d.key.n, d.key.k) == ("B", 128, 0)
    assert d.coordinates == "row 141, k 14 and 15"
    for text, code in zip(d.values, codes, strict=True):
        assert f"codes {code:#x}, " in text


@pytest.mark.parametrize(("operand", "row"), [("A", 197), ("B", 140)])
def test_a_scale_is_named_by_row_and_block(
    base: fp4ref.Run, operand: str, row: int
) -> None:
    index = "AB".index(operand)
    q, codes = changed(wide_pair(0, M, N, K)[index], scale=(row, 18))
    _, d = first(base, run(**{operand.lower(): q}))
    assert (d.key.tensor, d.key.k) == (f"SF{operand}", 256)
    assert (d.key.m, d.key.n)[index] == 128
    assert d.coordinates == f"scale of row {row}, k 288 to 303"
    assert [int(v.split()[0], 16) for v in d.values] == list(codes)


def test_an_element_of_c_is_named_by_row_and_column(base: fp4ref.Run) -> None:
    c = wide_c(0, (M, N), "f32")
    old = c[131, 77]
    c[131, 77] = new = np.float32(-3.25)
    _, d = first(base, run(c=c))
    assert (d.key.tensor, d.key.m, d.key.n) == ("C", 128, 64)
    assert d.coordinates == "row 131, column 77"
    values = np.array([int(v, 16) for v in d.values], np.uint32).view(np.float32)
    assert values.tolist() == [old, new]


@pytest.mark.parametrize(
    ("c_format", "d_format"), [("bf16", "f32"), ("f16", "bf16"), ("f32", "f16")]
)
def test_a_change_in_the_epilogue_shows_first_in_d(
    c_format: str, d_format: str
) -> None:
    settings = {"c_format": c_format, "d_format": d_format}
    c = wide_c(0, (M, N), c_format, specials=False)
    bias = wide_bias(0, N)
    one = run(c=c, bias=bias, **settings)
    bias[133] += np.float32(1e20)
    _, d = first(one, run(c=c, bias=bias, **settings))
    assert (d.key.tensor, d.key.n) == ("D", 128)
    assert re.fullmatch(r"row \d+, column 133", d.coordinates)


def test_another_norm_constant_shows_in_d_or_its_scales(base: fp4ref.Run) -> None:
    """A power of two goes into the scales alone."""
    _, d = first(base, run(norm_constant=4.0))
    assert d.key.tensor == "SFD"
    assert base.sfd is not None
    assert re.match(r"byte \d+: scale of row 0, columns 0 to 15", d.coordinates)
    assert int(d.values[0], 16) + 1 == int(d.values[1], 16)
    assert int(d.values[0], 16) == int(base.sfd[0, 0])


def test_a_scale_along_m_is_named_by_its_column_and_its_rows() -> None:
    """Of operands without scales too."""
    rng = np.random.default_rng(3)
    a, b = (
        rng.standard_normal((rows, 64)).astype(ml_dtypes.bfloat16) for rows in (40, 150)
    )
    a[:16] = b[:20] = 0
    across = {"store": "transposed", "element_wise": "smem", "d_format": "nvfp4"}
    asked = GemmConfig.nvfp4(operand_format="bf16", **across)
    one, other = (
        fp4ref.run(a, b, config=asked.replace(norm_constant=norm)) for norm in (1.0, 4)
    )
    _, d = first(one, other)
    assert (d.key.tensor, d.key.m, d.key.n) == ("SFD", 16, 32)
    assert d.coordinates == "byte 5: scale of column 32, rows 16 to 31"
    assert int(d.values[0], 16) == int(one.sfd[1, 32])


def test_a_scale_of_d_in_the_second_batch_is_named_by_its_batch() -> None:
    a, b = wide_pair(0, 40, 90, 64, 2)
    bias = np.zeros(90, np.float32)

    def batched() -> fp4ref.Run:
        config = GemmConfig.nvfp4(d_format="nvfp4", bias=True)
        return fp4ref.run(a, b, bias=bias, config=config)

    one, other = batched(), batched()
    trace = trace_of(other)
    stores = trace.select(operation="st.global")
    sfd = next(at for n, at, _ in one.meta["allocations"] if n == "SFD")
    hit = next(
        e for e in stores if any(w.start <= sfd + 1024 + 512 < w.end for w in e.writes)
    )
    where = next(w for w in hit.writes if w.start <= sfd + 1536 < w.end)
    index = hit.writes.index(where)
    delta = trace.deltas[hit.step][index].copy()
    delta[0, sfd + 1536 - where.start] ^= 0x10
    deltas = list(trace.deltas[hit.step])
    deltas[index] = delta
    trace.deltas[hit.step] = tuple(deltas)
    _, d = first(one, trace)
    assert (d.key.tensor, d.key.batch) == ("SFD", 1)
    assert "scale of row 0, columns 64 to 79" in d.coordinates


def tampered(r: fp4ref.Run, pick: Callable[[Any], bool], row: int, byte: int) -> Trace:
    """Flip one bit that an event writes; later events are as they were."""
    trace = copy.deepcopy(trace_of(r))
    event = next(e for e in trace if pick(e))
    delta = trace.deltas[event.step][0].copy()
    delta[row, byte] ^= 0x20
    trace.deltas[event.step] = (delta, *trace.deltas[event.step][1:])
    return trace


def test_an_accumulator_is_named_by_element_and_k(base: fp4ref.Run) -> None:
    lands = [e for e in trace_of(base) if e.kind == "land"]
    third = [e for e in lands if e.operation == "tcgen05.mma" and e.sm == 0][2]
    changed_trace = tampered(base, lambda e: e.step == third.step, 45, 4 * 19 + 2)
    _, d = first(base, changed_trace)
    assert (d.key.tensor, d.key.k, d.key.block) == ("accumulator", 0, 2)
    assert d.coordinates == f"row {d.key.m + 45}, column {d.key.n + 19} after k 192"
    words = [int(v.split()[0], 16) for v in d.values]
    assert words[0] ^ words[1] == 0x20 << 16


def test_a_scale_in_tmem_is_named_by_lane_and_row(base: fp4ref.Run) -> None:
    changed_trace = tampered(
        base,
        lambda e: e.kind == "land" and e.operation == "tcgen05.cp" and e.sm == 1,
        70,
        4 * 3 + 1,
    )
    _, d = first(base, changed_trace)
    assert (d.key.tensor, d.key.block) == ("SFA in TMEM", 0)
    assert d.coordinates == "lane 70, column +3: scale of tile row 102, k 16 to 31"


def test_an_element_of_d_is_named_by_row_and_column(base: fp4ref.Run) -> None:
    changed_trace = tampered(
        base,
        lambda e: (
            e.kind == "land"
            and e.agent == "tma"
            and e.operation.endswith("store")
            and e.operands["coords"][:2] == [32, 128]
        ),
        9,
        5,
    )
    _, d = first(base, changed_trace)
    assert (d.key.tensor, d.key.m, d.key.n) == ("D", 128, 32)
    assert d.coordinates == "row 137, column 42"
    assert int(d.values[0], 16) ^ int(d.values[1], 16) == 0x20


@pytest.mark.parametrize("other_first", [False, True])
def test_an_event_that_one_run_lacks_is_a_difference(
    base: fp4ref.Run, other_first: bool
) -> None:
    part = run(tiles=[(0, 0), (1, 0), (1, 1)])
    pair = (part, base) if other_first else (base, part)
    found, d = first(*pair)
    assert found.compared == sum(found.counts.values())
    assert d.coordinates == "present in one run only"
    assert (d.key.m, d.key.n) in ((0, 128), (-1, 128), (0, -1))
    assert d.values[d.values[0] != "no such event"] == "no such event"
    assert sum(e is None for e in d.events) == 1


def test_the_difference_names_step_and_source(base: fp4ref.Run) -> None:
    a, _ = changed(wide_pair(0, M, N, K)[0], code=(0, 0))
    found, d = first(base, run(a=a))
    assert d.events[0].source in found.report()
    assert "tma_loader.py" in found.report()
    assert f"step {d.events[0].step}" in found.report()


def test_other_problems_and_untraced_runs_are_refused(base: fp4ref.Run) -> None:
    a, b = wide_pair(0, 40, 40, 64)
    with pytest.raises(InputError, match="different shape"):
        compare(base, fp4ref.run(a, b))
    with pytest.raises(InputError, match="without a trace"):
        compare(base, fp4ref.run(a, b, trace=False))
    with pytest.raises(InputError, match="a is a str"):
        compare("x", base)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="different D: nvfp4 and f32"):
        compare(base, run(d_format="f32"))
    c, d = wide_pair(0, 40, 40, 64, scale_format=UE8M0)
    with pytest.raises(InputError, match="different scale_format: UE4M3 and UE8M0"):
        compare(fp4ref.run(a, b), fp4ref.run(c, d))


def test_a_trace_without_memory_is_refused() -> None:
    with pytest.raises(InputError, match="holds no memory"):
        hardware_events(Trace())


def test_every_event_holds_the_bytes_of_its_matrix(base: fp4ref.Run) -> None:
    """Boxes of A and of its scales, undone by formula."""
    a, _ = wide_pair(0, M, N, K)
    codes = np.pad(a.codes, ((0, 56), (0, 192)))
    scales = np.pad(a.scales, ((0, 56), (0, 12)))
    seen = 0
    for key, e in hardware_events(trace_of(base)).items():
        data = e.data.ravel()
        if key.tensor == "A":
            row, byte = np.divmod(np.arange(16384), 128)
            packed = data[row * 128 + ((byte // 16) ^ (row % 8)) * 16 + byte % 16]
            box = codes[key.m : key.m + 128, key.k : key.k + 256]
            wanted = (box[:, 0::2] | box[:, 1::2] << 4).ravel()
            assert (packed == wanted).all()
            seen += 1
        elif key.tensor == "SFA":
            m, s = np.indices((128, 16))
            at = m % 32 * 16 + m // 32 * 4 + s % 4 + s // 4 * 512
            box = scales[key.m : key.m + 128, key.k // 16 : key.k // 16 + 16]
            assert (data[at] == box).all()
            seen += 1
    assert seen == 16


def test_a_trace_without_a_plan_is_compared_as_well(base: fp4ref.Run) -> None:
    """Of another kernel, or an old file: places in words are the same."""
    trace, other = trace_of(base), trace_of(run("late"))
    bare = Trace(
        other.events,
        other.deltas,
        other.images,
        other.base,
        {k: v for k, v in other.meta.items() if k not in ("plan", "config")},
    )
    assert compare(trace, bare).counts == compare(base, base).counts
    a, _ = changed(wide_pair(0, M, N, K)[0], scale=(133, 17))
    wrong = trace_of(run(a=a))
    with_plan = compare(trace, wrong).first_difference
    wrong.meta = {k: v for k, v in wrong.meta.items() if k != "plan"}
    assert with_plan is not None
    assert str(compare(trace, wrong).first_difference) == str(with_plan)
