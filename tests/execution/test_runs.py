"""run: results, what is said about them, and every kind of bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from raw_bits import assert_bits_equal
from wide_operands import UE4M3, UE8M0, integer_product, wide_bias, wide_c, wide_pair

import fp4ref
from fp4ref import BlockScaled, GemmConfig, ScaleFormat
from fp4ref.errors import ConfigError, InputError, ReadWhileInFlight


def zeros(
    rows: int,
    k: int,
    lead: tuple[int, ...] = (),
    *,
    format: str = "nvfp4",
    scale_format: ScaleFormat | None = None,
) -> BlockScaled:
    vec = 16 if format == "nvfp4" else 32
    return BlockScaled(
        np.zeros((*lead, rows, k), np.uint8),
        np.zeros((*lead, rows, k // vec), np.uint8),
        format=format,
        scale_format=scale_format,
    )


A, B = zeros(4, 64), zeros(5, 64)
IN_CLUSTER = GemmConfig.nvfp4(cluster_n=2)
C = np.zeros((4, 5), np.float32)
WITH_C = {"c_format": "f32", "beta": 1.0}
E4M3 = ml_dtypes.float8_e4m3fn
BF16 = np.zeros((4, 64), ml_dtypes.bfloat16)


def of(a_format: str, b_format: str | None = None) -> GemmConfig:
    return GemmConfig.nvfp4(operand_format=a_format, b_format=b_format)


BAD: list[tuple[str, Callable[[], Any], str]] = [
    (
        "A is an array",
        lambda: fp4ref.run(A.codes, B),
        "a is an ndarray; need a BlockScaled",
    ),
    (
        "B is missing",
        lambda: fp4ref.run(A, None),
        "b is a NoneType; need a BlockScaled",
    ),
    (
        "K differs",
        lambda: fp4ref.run(A, zeros(5, 96)),
        "K and the batch dimension must",
    ),
    (
        "batches differ",
        lambda: fp4ref.run(zeros(4, 64, (2,)), zeros(5, 64, (3,))),
        "K and the batch dimension must agree",
    ),
    ("one is batched", lambda: fp4ref.run(zeros(4, 64, (1,)), B), "must agree"),
    (
        "four dimensions",
        lambda: fp4ref.run(zeros(4, 64, (2, 3)), zeros(5, 64, (2, 3))),
        "give (M, K) or (L, M, K)",
    ),
    (
        "K = 80",
        lambda: fp4ref.run(zeros(4, 80), zeros(5, 80), config=IN_CLUSTER),
        "in a cluster K must be a multiple of 32, because TMA's row pitch of K / 2 "
        "bytes is a multiple of 16. Pad with code 0 and scale 0 to 96",
    ),
    (
        "K = 464",
        lambda: fp4ref.run(zeros(4, 464), zeros(5, 464), config=IN_CLUSTER),
        "Pad with code 0 and scale 0 to 480",
    ),
    (
        "MXFP4",
        lambda: fp4ref.run(zeros(4, 64, format="mxfp4"), zeros(5, 64, format="mxfp4")),
        "A is mxfp4; this kernel takes nvfp4. Set operand_format='mxfp4'",
    ),
    (
        "bfloat16 for NVFP4",
        lambda: fp4ref.run(BF16, BF16),
        "A is bf16; this kernel takes nvfp4. Set operand_format='bf16'",
    ),
    (
        "B of another format",
        lambda: fp4ref.run(BF16, B, config=of("bf16")),
        "B is nvfp4; this kernel takes bf16. Make B anew in bf16",
    ),
    (
        "B of the wrong one of two formats",
        lambda: fp4ref.run(*[BF16.astype(E4M3)] * 2, config=of("e4m3", "e5m2")),
        "B is e4m3; this kernel takes e5m2. Set b_format='e4m3'",
    ),
    (
        "float32",
        lambda: fp4ref.run(BF16.astype(np.float32), B),
        "need a BlockScaled. Make one with fp4ref.quantize",
    ),
    (
        "bfloat16 with K = 36",
        lambda: fp4ref.run(BF16[:, :36], BF16[:, :36], config=of("bf16")),
        "K must be a multiple of 8, because TMA's row pitch of 2 * K bytes is a "
        "multiple of 16. Pad with code 0 to 40",
    ),
    (
        "MXFP6 with K = 64",
        lambda: fp4ref.run(
            *[zeros(4, 64, format="mxfp6_e2m3")] * 2, config=of("mxfp6_e2m3")
        ),
        "K must be a multiple of 128, because TMA takes whole boxes of 128 padded "
        "elements. Pad with code 0 and scale 0 to 128",
    ),
    (
        "two scale formats",
        lambda: fp4ref.run(A, zeros(5, 64, scale_format=UE8M0)),
        "A has UE4M3 scales and B UE8M0",
    ),
    (
        "a backend",
        lambda: fp4ref.run(A, B, backend="gpu"),
        "take 'emulator', 'ptx', 'device'",
    ),
    ("a schedule", lambda: fp4ref.run(A, B, schedule="soon"), "'timed' or an int"),
    ("no schedule", lambda: fp4ref.run(A, B, schedule=None), "'timed' or an int"),
    ("a float seed", lambda: fp4ref.run(A, B, schedule=1.5), "'timed' or an int"),
    ("a boolean seed", lambda: fp4ref.run(A, B, schedule=True), "or an integer seed"),
    ("an ordering", lambda: fp4ref.run(A, B, ordering="x"), "take 'ptx', 'shipped'"),
    ("no SM", lambda: fp4ref.run(A, B, sms=0), "at least 1"),
    ("minus one SM", lambda: fp4ref.run(A, B, sms=-1), "at least 1"),
    ("half an SM", lambda: fp4ref.run(A, B, sms=1.5), "sms: "),
    ("SMs in words", lambda: fp4ref.run(A, B, sms="2"), "sms: "),
    (
        "a dictionary",
        lambda: fp4ref.run(A, B, config={"tile_n": 64}),
        "need a GemmConfig",
    ),
    (
        "C without a format",
        lambda: fp4ref.run(A, B, C),
        "config.epilogue.c_format is None; set it",
    ),
    (
        "beta without C",
        lambda: fp4ref.run(A, B, config=GemmConfig.nvfp4(**WITH_C)),
        "beta=1.0 needs c; pass c= of shape (4, 5)",
    ),
    (
        "C transposed",
        lambda: fp4ref.run(A, B, C.T, config=GemmConfig.nvfp4(**WITH_C)),
        "c is float32 (5, 4); c_format is 'f32': give float32 (4, 5)",
    ),
    (
        "C in float64",
        lambda: fp4ref.run(
            A, B, C.astype(np.float64), config=GemmConfig.nvfp4(**WITH_C)
        ),
        "c is float64 (4, 5); c_format is 'f32': give float32 (4, 5)",
    ),
    (
        "C as a list",
        lambda: fp4ref.run(A, B, C.tolist(), config=GemmConfig.nvfp4(**WITH_C)),
        "c is a list; need an ndarray",
    ),
    (
        "C in the other 16 bits",
        lambda: fp4ref.run(
            A,
            B,
            C.astype(np.float16),
            config=GemmConfig.nvfp4(c_format="bf16", beta=1.0),
        ),
        "c is float16 (4, 5); c_format is 'bf16': give bfloat16 (4, 5), or its bits",
    ),
    (
        "C with the bytes turned round",
        lambda: fp4ref.run(A, B, C.astype(">f4"), config=GemmConfig.nvfp4(**WITH_C)),
        "c is >f4",
    ),
    (
        "bias alone",
        lambda: fp4ref.run(A, B, bias=np.zeros(5, np.float32)),
        "pass bias= and set config.epilogue.bias, or neither",
    ),
    (
        "config.epilogue.bias alone",
        lambda: fp4ref.run(A, B, config=GemmConfig.nvfp4(bias=True)),
        "neither",
    ),
    (
        "a short bias",
        lambda: fp4ref.run(
            A, B, bias=np.zeros(4, np.float32), config=GemmConfig.nvfp4(bias=True)
        ),
        "bias is float32 (4,); give float32 (5,)",
    ),
    (
        "bias in float64",
        lambda: fp4ref.run(A, B, bias=np.zeros(5), config=GemmConfig.nvfp4(bias=True)),
        "bias is float64 (5,); give float32 (5,)",
    ),
    (
        "bias as a list",
        lambda: fp4ref.run(A, B, bias=[0.0] * 5, config=GemmConfig.nvfp4(bias=True)),
        "bias is a list; need an ndarray",
    ),
    *(
        (
            f"tile {tile!r}",
            lambda tile=tile: fp4ref.run(A, B, tiles=[tile]),
            "give (m, n) or (m, n, batch) inside 1 x 1 tiles and 1 batches",
        )
        for tile in (
            (1, 0),
            (0, 1),
            (-1, 0),
            (0, 0, 1),
            (0,),
            (0, 0, 0, 0),
            0,
            (0.5, 0),
            "00",
        )
    ),
    ("tiles is a number", lambda: fp4ref.run(A, B, tiles=3), "a list of (m, n)"),
    (
        "tiles of a static schedule",
        lambda: fp4ref.run(
            A, B, tiles=[(0, 0)], config=GemmConfig.nvfp4(scheduler="static")
        ),
        "use scheduler='clc'",
    ),
    (
        "an infinite alpha",
        lambda: fp4ref.run(
            BlockScaled(A.codes, A.scales, global_scale=1e-30),
            BlockScaled(B.codes, B.scales, global_scale=1e-30),
        ),
        "or pass alpha=",
    ),
    (
        "the state of an untraced run",
        lambda: fp4ref.run(A, B, trace=False).state(0),
        "call run(..., trace=True)",
    ),
    (
        "a step that is not there",
        lambda: fp4ref.run(A, B).state(10**6),
        "outside this trace; steps run from -1",
    ),
]


@pytest.mark.parametrize(
    ("call", "rule"), [b[1:] for b in BAD], ids=[b[0] for b in BAD]
)
def test_bad_input_is_refused_in_words(call: Callable[[], Any], rule: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert rule in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_bad_configuration_is_bad_input() -> None:
    with pytest.raises(ConfigError):
        fp4ref.run(A, B, config=GemmConfig.nvfp4(stages=20))


def test_one_scale_buffer_breaks_the_rules_of_the_text() -> None:
    """PTX orders no copy after an earlier MMA; compiled kernels rely on it."""
    a, b = wide_pair(0, 8, 8, 1024)
    config = GemmConfig.nvfp4(scale_buffers=1)
    with pytest.raises(ReadWhileInFlight, match=r"tcgen05\.cp"):
        fp4ref.run(a, b, config=config, schedule="late")
    shipped = fp4ref.run(a, b, config=config, schedule="late", ordering="shipped")
    assert_bits_equal(shipped.d, integer_product(a, b) + np.float32(0))


def test_the_types_of_d_are_those_of_the_format() -> None:
    a, b = wide_pair(0, 8, 24, 64)
    for d_format, dtype in {
        "f32": np.float32,
        "bf16": ml_dtypes.bfloat16,
        "f16": np.float16,
        "nvfp4": np.uint8,
    }.items():
        run = fp4ref.run(a, b, config=GemmConfig.nvfp4(d_format=d_format), trace=False)
        assert run.d.dtype == dtype
        assert run.d.shape == run.written.shape == (8, 24)
        assert (run.sfd is not None) == (d_format == "nvfp4")
        if run.sfd is not None:
            assert run.sfd.shape == (8, 2)


def test_a_batch_of_one_keeps_its_dimension() -> None:
    a, b = wide_pair(0, 4, 20, 32, 1)
    run = fp4ref.run(a, b, config=GemmConfig.nvfp4(d_format="nvfp4"), trace=False)
    assert run.d.shape == run.written.shape == (1, 4, 20)
    assert run.sfd is not None
    assert run.sfd.shape == (1, 4, 2)


@pytest.mark.parametrize("c_format", ["f32", "bf16", "f16"])
def test_one_c_serves_every_batch(c_format: Any) -> None:
    a, b = wide_pair(0, 30, 20, 64, 2)
    c = wide_c(1, (30, 20), c_format)
    config = GemmConfig.nvfp4(c_format=c_format, beta=2.0)
    shared = fp4ref.run(a, b, c, config=config, trace=False)
    apart = fp4ref.run(a, b, np.stack([c, c]), config=config, trace=False)
    assert_bits_equal(shared.d, apart.d)


def test_bf16_c_may_come_as_bits() -> None:
    a, b = wide_pair(0, 30, 20, 64)
    c = wide_c(1, (30, 20), "bf16")
    config = GemmConfig.nvfp4(c_format="bf16", beta=2.0)
    one = fp4ref.run(a, b, c, config=config, trace=False)
    other = fp4ref.run(a, b, c.view(np.uint16), config=config, trace=False)
    assert_bits_equal(one.d, other.d)


def test_a_c_that_lies_column_by_column_is_read_right() -> None:
    a, b = wide_pair(0, 30, 20, 64)
    c = wide_c(1, (30, 20), "f32")
    config = GemmConfig.nvfp4(c_format="f32", beta=2.0)
    one = fp4ref.run(a, b, c, config=config, trace=False)
    other = fp4ref.run(a, b, np.asfortranarray(c), config=config, trace=False)
    assert_bits_equal(one.d, other.d)


def test_numpy_integers_are_integers() -> None:
    a, b = wide_pair(0, 30, 20, 64)
    one = fp4ref.run(a, b, sms=np.int64(3), schedule=np.int64(5))
    other = fp4ref.run(a, b, sms=3, schedule=5)
    assert one.meta == other.meta
    assert one.trace is not None
    assert other.trace is not None
    assert one.trace.events == other.trace.events


@pytest.mark.parametrize("schedule", ["eager", "late", 3])
def test_a_run_repeats_event_by_event(schedule: str | int) -> None:
    a, b = wide_pair(0, 130, 20, 96)
    traces = [fp4ref.run(a, b, schedule=schedule).trace for _ in range(2)]
    assert traces[0] is not None
    assert traces[1] is not None
    assert traces[0].events == traces[1].events


def test_two_seeds_run_in_another_order() -> None:
    a, b = wide_pair(0, 130, 20, 96)
    one, other = (fp4ref.run(a, b, schedule=s).trace for s in (1, 2))
    assert one is not None
    assert other is not None
    assert [e.operation for e in one] != [e.operation for e in other]


def test_progress_counts_up_to_all_tiles() -> None:
    a, b = wide_pair(0, 260, 140, 32)
    seen: list[tuple[int, int]] = []
    fp4ref.run(a, b, trace=False, progress=lambda *at: seen.append(at))
    assert [total for _, total in seen] == [6] * len(seen)
    done = [at for at, _ in seen]
    assert done == sorted(done)
    assert done[-1] == 6


def test_progress_of_chosen_tiles_counts_these() -> None:
    a, b = wide_pair(0, 260, 140, 32)
    seen: list[tuple[int, int]] = []
    fp4ref.run(
        a, b, tiles=[(2, 1), (0, 0)], trace=False, progress=lambda *at: seen.append(at)
    )
    assert seen[-1] == (2, 2)


def test_the_counts_are_those_of_the_loops() -> None:
    """3 x 2 tiles, 2 k-tiles of 4 blocks, 4 subtiles."""
    a, b = wide_pair(0, 300, 200, 512)
    stats = fp4ref.run(a, b, trace=False).stats
    assert stats["tcgen05.mma"] == 6 * 2 * 4
    assert stats["tcgen05.cp"] == 6 * 2 * 8
    assert stats["tcgen05.commit"] == 6 * (2 + 1)
    assert stats["tcgen05.ld"] == 6 * 4 * 4
    assert stats["cp.async.bulk.tensor.3d.load"] == 6 * 2 * 2
    assert stats["cp.async.bulk.tensor.4d.load"] == 6 * 2 * 2
    assert stats["cp.async.bulk.tensor.3d.store"] == 6 * 4
    assert stats["tile"] == 6


def test_meta_says_what_ran() -> None:
    a, b = wide_pair(0, 30, 20, 64, scale_format=UE8M0)
    config = GemmConfig.nvfp4(d_format="nvfp4", scheduler="static", stages=3)
    run = fp4ref.run(a, b, alpha=0.5, config=config, schedule=9, sms=3)
    assert run.trace is not None
    assert run.trace.meta == run.meta
    assert run.meta["shape"] == {"m": 30, "n": 20, "k": 64, "l": 1}
    assert run.meta["scale_format"] == "UE8M0"
    assert (run.meta["alpha"], run.meta["stages"], run.meta["sms"]) == (0.5, 3, 3)
    assert (run.meta["schedule"], run.meta["ordering"]) == ("seed 9", "ptx")
    names = [name for name, _, _ in run.meta["allocations"]]
    assert names == ["A", "B", "SFA", "SFB", "D", "SFD"]


def test_beta_zero_does_not_read_c() -> None:
    """An Inf in C times 0 would be NaN."""
    a, b = wide_pair(0, 30, 20, 64, specials=False)
    c = np.full((30, 20), np.inf, np.float32)
    run = fp4ref.run(a, b, c, config=GemmConfig.nvfp4(c_format="f32"), trace=True)
    assert_bits_equal(run.d, integer_product(a, b))
    assert run.trace is not None
    assert not any(
        e.operands["tensor"] == "C"
        for e in run.trace.select(operation="cp.async.bulk.tensor")
    )


def test_minus_zero_leaves_as_plus_zero() -> None:
    """beta * C is always an fma, so alpha * acc = -0 becomes +0."""
    a, b = wide_pair(0, 4, 4, 32, specials=False)
    run = fp4ref.run(
        BlockScaled(a.codes * 0, a.scales),
        b,
        alpha=-1.0,
        trace=False,
    )
    assert not run.d.view(np.uint32).any()


def test_the_default_alpha_divides_the_global_scales_out() -> None:
    a, b = wide_pair(0, 6, 7, 64, specials=False)
    a, b = (
        BlockScaled(q.codes, q.scales, scale_format=UE4M3, global_scale=g)
        for q, g in ((a, 3.0), (b, 7.0))
    )
    run = fp4ref.run(a, b, trace=False)
    alpha = np.float32(1.0 / 21.0)
    assert_bits_equal(run.d, alpha * integer_product(a, b))
    assert run.meta["alpha"] == float(alpha)


def test_a_bias_is_added_to_columns() -> None:
    a, b = wide_pair(0, 6, 40, 64, specials=False)
    bias = wide_bias(4, 40)
    zero = BlockScaled(a.codes & 8, a.scales)
    run = fp4ref.run(
        zero, b, bias=bias, config=GemmConfig.nvfp4(bias=True), trace=False
    )
    assert_bits_equal(run.d, np.tile(bias, (6, 1)))


def test_a_shipped_run_lists_what_it_relied_on() -> None:
    rng = np.random.default_rng(1)
    q = fp4ref.quantize(rng.standard_normal((128, 1024)).astype(np.float32))
    config = fp4ref.GemmConfig.nvfp4(scale_buffers=1)
    shipped = fp4ref.run(q, q, config=config, ordering="shipped", schedule="late")
    assert shipped.advisories
    assert not fp4ref.run(q, q).advisories
