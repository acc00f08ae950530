"""Stage counts, the maps of SMEM and TMEM, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from fp4ref import GemmConfig, ScaleFormat
from fp4ref.errors import ConfigError, InputError
from fp4ref.gemm.config import Tile
from fp4ref.gemm.descriptors import operand_descriptor, scale_descriptor
from fp4ref.gemm.plan import plan
from fp4ref.lessons.record import compiled

SMEM_NBYTES = 232_448


@pytest.mark.parametrize(
    ("settings", "stages", "nbytes"),
    [
        ({"d_format": "bf16"}, 5, 201_728),
        ({"d_format": "bf16", "c_format": "bf16"}, 5, 218_112),
        ({"d_format": "bf16", "tile_n": 64}, 7, 218_112),
        ({}, 5, 218_112),
    ],
)
def test_stage_counts_and_bytes_are_those_of_cutlass_builds(
    settings: dict[str, Any], stages: int, nbytes: int
) -> None:
    config = GemmConfig.nvfp4(**settings)
    assert (plan(config).mainloop_stages, plan(config).smem.end) == (stages, nbytes)


def test_example_72b_has_four_stages() -> None:
    config = GemmConfig.example_72b()
    assert (
        plan(config).mainloop_stages,
        config.epilogue.c_stages,
        config.epilogue.d_stages,
    ) == (4, 4, 2)
    assert (config.epilogue.d_format, config.epilogue.sfd_format) == (
        "nvfp4",
        ScaleFormat.UE8M0,
    )
    assert (config.epilogue.norm_constant, config.epilogue.beta) == (2.0, 0.0)
    # An empty struct takes 1,024 bytes in CUTLASS.
    assert plan(config).smem.end == compiled("sm100_72b", "kernel_nbytes") - 1024


def test_changes_to_example_72b_are_taken() -> None:
    assert GemmConfig.example_72b(raster="n", c_stages=2).tiles.raster == "n"


@pytest.mark.parametrize(
    ("tile_n", "tx_bytes", "stage_nbytes"),
    [(64, 28_672, 28_800), (128, 36_864, 36_992)],
)
def test_a_stage_expects_the_bytes_that_cutlass_4_2_2_expects(
    tile_n: int, tx_bytes: int, stage_nbytes: int
) -> None:
    planned = plan(GemmConfig.nvfp4(tile_n=tile_n))
    assert (planned.stage_tx_bytes, planned.stage_nbytes) == (tx_bytes, stage_nbytes)


def epilogue_of_cutlass(c_subtile: int, alignment: int) -> int:
    """Bytes of four C stages in which D lies, an empty struct, and the ring's barriers.

    Both structs are as long as a multiple of their alignment.
    """
    tensors = -(-(4 * c_subtile + 1) // alignment) * alignment
    return -(-(tensors + 4 * 16) // alignment) * alignment


def test_the_epilogue_of_example_72b_is_as_large_as_cutlass_has_it() -> None:
    example = GemmConfig.example_72b()
    assert epilogue_of_cutlass(16_384, 1024) == 67_584
    assert compiled("sm100_72b", "epilogue_nbytes") == 67_584
    assert compiled("sm100_72b", "mainloop_barrier_nbytes") == 16
    assert (plan(example).epilogue_nbytes, plan(example).most_stages) == (67_584, 4)
    assert compiled("sm100_72b", "mainloop_stages") == 4
    apart = GemmConfig.example_72b(reuse_smem_c=False)
    assert (plan(apart).epilogue_nbytes, plan(apart).most_stages) == (69_632, 4)


def test_without_reuse_of_c_bf16_loses_a_stage() -> None:
    bf16 = GemmConfig.nvfp4(d_format="bf16", c_format="bf16", c_stages=4)
    assert epilogue_of_cutlass(8_192, 512) == 33_792
    assert (SMEM_NBYTES - 160 - 33_792) // (36_864 + 16) == 5
    assert (plan(bf16).epilogue_nbytes, plan(bf16).most_stages) == (49_152, 4)
    reuse = plan(bf16.replace(reuse_smem_c=True))
    assert (reuse.epilogue_nbytes, reuse.most_stages) == (33_792, 5)


def test_without_epilogue_memory_six_stages_are_the_ceiling() -> None:
    assert (SMEM_NBYTES - 160) // plan(GemmConfig()).stage_nbytes == 6
    assert plan(GemmConfig.nvfp4(d_format="nvfp4", d_stages=1)).mainloop_stages == 6


EVERY_SETTING = [
    dict(
        zip(("tile_n", "d_format", "c_format", "c_stages", "d_stages"), v, strict=True)
    )
    for v in itertools.product(
        (64, 128),
        ("f32", "bf16", "f16", "nvfp4"),
        (None, "f32", "bf16", "f16"),
        (1, 2, 4),
        (1, 2, 3),
    )
]


def placed(config: GemmConfig) -> list[tuple[str, int, int]]:
    """Name, offset and bytes of every part of shared memory, by its contents."""
    planned = plan(config)
    stages, m = planned.mainloop_stages, planned.smem
    c_bits = {None: 0, "f32": 32, "bf16": 16, "f16": 16}[config.epilogue.c_format]
    d_bits = {"f32": 32, "bf16": 16, "f16": 16, "nvfp4": 4}[config.epilogue.d_format]
    sizes = {
        "mainloop_full": 8 * stages,
        "mainloop_empty": 8 * stages,
        "c_full": 8 * config.epilogue.c_stages,
        "c_empty": 8 * config.epilogue.c_stages,
        "load_order": 8,
        "clc_full": 8 * config.tiles.clc_stages,
        "clc_empty": 8 * config.tiles.clc_stages,
        "accumulator_full": 8 * config.mainloop.accumulator_stages,
        "accumulator_empty": 8 * config.mainloop.accumulator_stages,
        "throttle_full": 8 * config.tiles.clc_stages,
        "throttle_empty": 8 * config.tiles.clc_stages,
        "clc_response": 16 * config.tiles.clc_stages,
        "tmem_pointer": 4,
        "d_subtile": config.epilogue.d_stages * 128 * 32 * d_bits // 8,
        "c_subtile": config.epilogue.c_stages * 128 * 32 * c_bits // 8,
        "a": stages * 128 * 128,
        "b": stages * config.tile.n * 128,
        "sfa": stages * 2048,
        "sfb": stages * 2048,
    }
    assert set(m) == set(sizes)
    return [(name, m[name], nbytes) for name, nbytes in sizes.items()]


@pytest.mark.parametrize("settings", EVERY_SETTING, ids=lambda s: str(astuple_of(s)))
def test_parts_of_shared_memory_are_aligned_and_do_not_overlap(
    settings: dict[str, Any],
) -> None:
    config = GemmConfig.nvfp4(**settings)
    parts = sorted((at, nbytes, name) for name, at, nbytes in placed(config) if nbytes)
    for (at, nbytes, name), (following, _, other) in itertools.pairwise(parts):
        assert at + nbytes <= following, (name, other)
    assert parts[-1][0] + parts[-1][1] == plan(config).smem.end <= SMEM_NBYTES
    for at, _, name in parts:
        alignment = dict.fromkeys(("d_subtile", "c_subtile", "a", "b"), 1024)
        alignment |= {"sfa": 128, "sfb": 128}
        assert at % alignment.get(name, 16 if name == "clc_response" else 4) == 0, name
        if name.endswith(("full", "empty")) or name == "load_order":
            assert at % 8 == 0


def astuple_of(settings: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(settings.values())


@pytest.mark.parametrize(
    "settings", EVERY_SETTING[::7], ids=lambda s: str(astuple_of(s))
)
def test_one_stage_more_than_the_most_is_refused(settings: dict[str, Any]) -> None:
    most = plan(GemmConfig.nvfp4(**settings)).most_stages
    assert plan(GemmConfig.nvfp4(**settings, stages=most)).mainloop_stages == most
    with pytest.raises(ConfigError, match=f"At most {most} stages fit"):
        plan(GemmConfig.nvfp4(**settings, stages=most + 1))


def test_tmem_columns_are_those_of_cutlass_with_one_scale_buffer() -> None:
    small = plan(GemmConfig.nvfp4(tile_n=64, scale_buffers=1)).tmem
    assert small.accumulators == (0x000, 0x040)
    assert (small.sfa, small.sfb, small.end) == ((0x080,), (0x090,), 0x0A0)
    large = plan(GemmConfig.nvfp4(scale_buffers=1)).tmem
    assert large.accumulators == (0x000, 0x080)
    assert (large.sfa, large.sfb, large.end) == ((0x100,), (0x110,), 0x120)


def test_a_second_scale_buffer_lies_behind_the_first() -> None:
    tmem = plan(GemmConfig()).tmem
    assert (tmem.sfa, tmem.sfb, tmem.end) == ((256, 288), (272, 304), 320)


def test_the_descriptors_hold_the_fields_of_the_text() -> None:
    """128-byte swizzle, groups of 8 rows 1024 bytes apart; scales: none, 128 bytes."""
    word = operand_descriptor(0x4400)
    assert word == 0x440 | 1 << 16 | 64 << 32 | 1 << 46 | 2 << 61
    assert scale_descriptor(0x2C400) == 0x2C40 | 1 << 16 | 8 << 32 | 1 << 46


@pytest.mark.parametrize(
    ("tile_n", "scale_format", "idesc"),
    [
        (128, ScaleFormat.UE4M3, 1 << 7 | 1 << 10 | 16 << 17 | 1 << 27),
        (64, ScaleFormat.UE8M0, 1 << 7 | 1 << 10 | 8 << 17 | 1 << 23 | 1 << 27),
    ],
)
def test_the_instruction_descriptor_has_shape_and_types(
    tile_n: int, scale_format: ScaleFormat, idesc: int
) -> None:
    assert plan(GemmConfig.nvfp4(tile_n=tile_n)).idesc(scale_format) == idesc


def test_the_clc_consumers_are_the_warps_that_read_answers() -> None:
    assert plan(GemmConfig()).clc_consumers == 224
    assert plan(GemmConfig.nvfp4(c_format="f32")).clc_consumers == 224
    assert plan(GemmConfig.nvfp4(c_format="f32", beta=1.0)).clc_consumers == 256


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"tile_n": 96}, "tile_n=96: this kernel takes one of 64, 128"),
        ({"tile_n": 128.0}, "tile_n=128.0: this kernel takes"),
        ({"tile_n": True}, "tile_n=True"),
        ({"d_format": "fp8"}, "one of f32, bf16, f16, e4m3, e5m2, nvfp4"),
        ({"c_format": "nvfp4"}, "one of None, f32, bf16, f16, e4m3, e5m2"),
        ({"activation": "tanh"}, "one of None, gelu, relu, silu"),
        ({"activation": ["relu"]}, "one of None, gelu, relu, silu"),
        ({"scheduler": "stream-k"}, "one of clc, static"),
        ({"raster": "z"}, "one of m, n"),
        ({"scale_buffers": 3}, "one of 1, 2"),
        ({"bias": "yes"}, "bias='yes'"),
        ({"sfd_format": "ue4m3"}, "ScaleFormat.UE4M3 or ScaleFormat.UE8M0"),
        ({"stages": 1}, "stages=1: the ring needs at least 2; 5 fit"),
        ({"stages": -3}, "stages=-3: the ring needs at least 2"),
        ({"stages": 2.5}, "stages=2.5: an integer"),
        ({"stages": "4"}, "stages='4': an integer"),
        ({"stages": True}, "stages=True: an integer"),
        ({"stages": 20}, "At most 5 stages fit"),
        ({"c_stages": 0}, "c_stages=0: an integer of at least 1"),
        ({"d_stages": 0}, "d_stages=0"),
        ({"clc_stages": "2"}, "clc_stages='2'"),
        ({"accumulator_stages": 0}, "accumulator_stages=0"),
        ({"d_stages": 30}, "leaves room for 0 mainloop stages"),
        ({"clc_stages": 4000}, "a CTA has 232448 bytes"),
        ({"accumulator_stages": 4}, "need 576 TMEM columns"),
        ({"accumulator_stages": 2**40}, "more than the 512 TMEM columns"),
        ({"norm_constant": 0}, "norm_constant=0: a positive number"),
        ({"norm_constant": -1.0}, "norm_constant=-1.0: a positive number"),
        ({"norm_constant": float("nan")}, "norm_constant=nan"),
        ({"norm_constant": 1e39}, "finite in float32"),
        ({"norm_constant": 1e-60}, "norm_constant=1e-60: a positive"),
        ({"norm_constant": "2"}, "norm_constant='2'"),
        ({"beta": 1e300, "c_format": "f32"}, "beta="),
        ({"beta": 1.0}, "beta=1.0 without C. Use beta=0"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_with_the_rule(
    settings: dict[str, Any], rule: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(GemmConfig.nvfp4(**settings))
    assert rule in str(caught.value)
    assert isinstance(caught.value, InputError)


@pytest.mark.parametrize("field", ["stages", "c_stages", "clc_stages"])
def test_a_count_beyond_any_memory_is_refused_in_words(field: str) -> None:
    for value, shown in ((10**20, "1" + "0" * 20), (10**5000, "(int, too long)")):
        with pytest.raises(ConfigError) as caught:
            plan(GemmConfig.nvfp4(**{field: value}))
        said = f"{field}={shown}: far more than any memory holds. Use {field}="
        most = int(str(caught.value).removeprefix(said))
        assert plan(GemmConfig.nvfp4(**{field: most}))
        with pytest.raises(ConfigError):
            plan(GemmConfig.nvfp4(**{field: most + 1}))


def test_every_field_is_kept_as_given() -> None:
    config = GemmConfig.nvfp4(tile_n=64, stages=3, beta=0.5, c_format="f16")
    assert (config.tile, plan(config).tile_k) == (Tile(128, 64), 256)
    assert (config.epilogue.beta, plan(config).mainloop_stages) == (0.5, 3)
    assert plan(config).loads_c
