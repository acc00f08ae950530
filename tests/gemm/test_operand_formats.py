"""Every format of A and B, and every two that go together."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from narrow_operands import narrow
from raw_bits import assert_bits_equal

import fp4ref
from fp4ref import GemmConfig, plan
from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.errors import ConfigError
from fp4ref.evidence.oracle import expected
from fp4ref.gemm.partition import part_coords, scale_box
from fp4ref.numerics.elements import BLOCKS
from fp4ref.numerics.kinds import OPERAND_FORMATS, kind_of

PAIRS = [
    pair
    for pair in itertools.product(OPERAND_FORMATS, repeat=2)
    if kind_of(*pair) is not None
]
PAIR_OF_SMS = {"tile_m": 256, "cta_group": 2, "cluster_m": 2}
needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)


def config_of(a: str, b: str, **asked: Any) -> GemmConfig:
    return GemmConfig.nvfp4(operand_format=a, b_format=None if a == b else b, **asked)


def check(a: str, b: str, backend: Any, schedule: Any, **asked: Any) -> None:
    """Every bit of D, and no race, on a ragged problem."""
    config = config_of(a, b, **asked)
    step = plan(config).k_multiple
    k = 256 if step == 128 or a in BLOCKS else 192 + step
    x, y = narrow(3, (5, k), a), narrow(4, (70, k), b)
    options = {"backend": backend, "schedule": schedule}
    run = fp4ref.run(x, y, config=config, sms=2, **options)
    assert_bits_equal(run.d, expected(x, y, config=config).d)
    assert (run.verdict, run.races) == ("clean", ())


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_every_pair_of_formats_has_the_oracles_bits(pair: tuple[str, str]) -> None:
    turn = PAIRS.index(pair)
    schedule = ("eager", "late", turn)[turn % 3]
    check(*pair, "emulator", schedule, **(PAIR_OF_SMS if turn % 2 else {}))


OF_EACH_KIND = [
    ("mxfp8_e4m3", "mxfp8_e4m3"),
    ("mxfp6_e3m2", "mxfp4"),
    ("e4m3", "e5m2"),
    ("bf16", "bf16"),
]


@needs_nvrtc
@pytest.mark.parametrize("pair", OF_EACH_KIND, ids="-".join)
def test_the_compiled_kernel_of_each_kind_has_the_oracles_bits(
    pair: tuple[str, str],
) -> None:
    turn = OF_EACH_KIND.index(pair)
    schedule = ("eager", "late", turn)[turn % 3]
    check(*pair, "ptx", schedule, **(PAIR_OF_SMS if turn % 2 else {}))


@pytest.mark.soak
@needs_nvrtc
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize("sms", [{}, PAIR_OF_SMS], ids=["one", "pair"])
def test_every_compiled_kernel_has_the_oracles_bits(
    pair: tuple[str, str], sms: dict[str, Any]
) -> None:
    for schedule in ("eager", "late", 5):
        check(*pair, "ptx", schedule, **sms)


@pytest.mark.parametrize("format", OPERAND_FORMATS)
def test_small_integers_give_the_integer_product(format: str) -> None:
    """All formats hold 0, 1, 2, 4 and their negatives, and 3 of two mantissa bits."""
    rng = np.random.default_rng(7)
    choices = np.array([-3, -2, -1, 0, 1, 2, 3], np.float32)
    x, y = (rng.choice(choices, (rows, 128)) for rows in (4, 6))
    x[:, ::16] = y[:, ::16] = 6 if format in ("nvfp4", "mxfp4") else 3
    a, b = (operand(values, format) for values in (x, y))
    run = fp4ref.run(a, b, config=config_of(format, format))
    assert run.d.tolist() == (x @ y.T).tolist()


def operand(values: Any, format: str) -> Any:
    """Integers as they are: a scale of 1 for every block."""
    if format not in BLOCKS:
        zero = narrow(0, (1, 128), format)
        return values.astype(zero.dtype)
    block = BLOCKS[format]
    like = narrow(0, (1, 128), block.element)
    codes = values.astype(like.dtype).view(np.uint8)
    one = 0x38 if format == "nvfp4" else 127
    shape = (len(values), 128 // block.vec_size)
    return fp4ref.BlockScaled(codes, np.full(shape, one, np.uint8), format)


@pytest.mark.parametrize(
    ("asked", "tile_k", "tx_bytes"),
    [
        # 128 x 128 bytes of A and of B, and one scale atom of each
        ({"operand_format": "mxfp8_e4m3"}, 128, 33_792),
        # 12 of every 16 bytes of A, 8 of B: padding is not copied
        ({"operand_format": "mxfp6_e2m3", "b_format": "mxfp4"}, 128, 21_504),
        # CUTLASS's pair of E4M3 with 256 x 128 x 128
        ({"operand_format": "e4m3", **PAIR_OF_SMS}, 128, 49_152),
        ({"operand_format": "bf16"}, 64, 32_768),
    ],
)
def test_a_row_is_128_bytes_and_padding_is_not_counted(
    asked: dict[str, Any], tile_k: int, tx_bytes: int
) -> None:
    planned = plan(GemmConfig.nvfp4(**asked))
    assert (planned.tile_k, planned.k_tile_tx_bytes) == (tile_k, tx_bytes)
    assert planned.a_nbytes == 128 * 128


def test_e4m3_of_a_pair_has_the_eight_stages_of_cutlass() -> None:
    asked = GemmConfig.nvfp4(operand_format="e4m3", d_format="bf16", **PAIR_OF_SMS)
    assert plan(asked).mainloop_stages == 8


def test_without_scales_all_of_tmem_is_for_accumulators() -> None:
    asked = {"tile_n": 128, "accumulator_stages": 4}
    assert plan(GemmConfig.nvfp4(operand_format="bf16", **asked)).tmem.end == 512
    with pytest.raises(ConfigError, match="TMEM columns of 512"):
        plan(GemmConfig.nvfp4(operand_format="mxfp8_e4m3", **asked))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"b_format": "mxfp4"}, "no MMA takes both. Use b_format='nvfp4'"),
        (
            {"operand_format": "bf16", "b_format": "f16"},
            "b_format='f16' with operand_format='bf16': no MMA takes both. "
            "Use b_format='bf16'",
        ),
        ({"operand_format": "e4m3", "b_format": "e8m7"}, "b_format='e8m7': this"),
        (
            {"operand_format": "mxfp8_e5m2", "tile_k": 256},
            "tile_k=256: this kernel takes one of 128, which are the 128 bytes of a "
            "row of mxfp8_e5m2",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        plan(GemmConfig.nvfp4(**asked))
    assert said in str(error.value)


@pytest.mark.parametrize("parts", [1, 2, 4, 8])
@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("atoms", [1, 2, 4])
def test_parts_of_the_scales_are_all_of_them_once(
    atoms: int, blocks: int, parts: int
) -> None:
    """In memory part follows part; in each, atoms of a row block lie side by side."""
    box, whole = scale_box(atoms, blocks, parts), (256, atoms, blocks, 1)
    assert np.prod(box) * parts == np.prod(whole)
    corners = [part_coords((0, 8, 3, 2), i, box, whole) for i in range(parts)]
    words = [
        (x + dx, y + dy, z + dz, w)
        for x, y, z, w in corners
        for dz, dy, dx in np.ndindex(box[2], box[1], box[0])
    ]
    assert sorted(words) == [
        (x, y + 8, z + 3, 2) for x, y, z in np.ndindex(256, atoms, blocks)
    ]
    # An atom is in one piece, its words in order, whoever sent them.
    for at in range(0, len(words), 256):
        assert [word[0] for word in words[at : at + 256]] == list(range(256))
        assert len({word[1:] for word in words[at : at + 256]}) == 1
