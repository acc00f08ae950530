"""recipes: every one against a form of its own, in C++ with NVIDIA's conversions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from outside_recipes import outside
from tie_inputs import all_scale_ties, all_ties

from fp4ref.errors import InputError
from fp4ref.numerics.elements import BLOCKS, ScaleFormat
from fp4ref.tensors.losses import NonFiniteWarning, UnderflowWarning
from fp4ref.tensors.quantize import automatic_global_scale, quantize
from fp4ref.tensors.recipes import RECIPES
from fp4ref.tensors.recipes.recipe import Recipe

F32 = NDArray[np.float32]
NAMES = list(RECIPES)
GIVEN = float(np.float32(97.3))
"""A global scale that is no power of two."""
MIDDLES = np.array([0, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6, 7, 8], np.float32)


def ties(count: int, vec: int, rng: np.random.Generator) -> F32:
    """Products of every scale with every boundary of E2M1, and an ulp beside it."""
    scale = np.float32(2) ** rng.integers(-12, 12, (count, 1))
    scale = scale * (1 + rng.integers(0, 8, (count, 1)) / np.float32(8))
    x = (scale * rng.choice(MIDDLES, (count, vec))).astype(np.float32)
    moved = x.view(np.int32) + rng.integers(-1, 2, x.shape).astype(np.int32)
    moved = np.where(rng.random(x.shape) < 0.5, x.view(np.int32), np.maximum(moved, 0))
    signs = rng.choice(np.array([-1, 1], np.float32), x.shape)
    return moved.astype(np.int32).view(np.float32) * signs


def edges(count: int, vec: int, rng: np.random.Generator) -> F32:
    """Blocks about the smallest and the largest scales, of zeros, and of specials."""
    amax = rng.choice(
        [0, 2.0**-149, 2.0**-126, 6 * 2.0**-10, 6 * 2.0**-9, 6 * 2.0**-6, 2688, 3e38],
        (count, 1),
    )
    near = 1 + rng.integers(-2, 3, (count, 1)) * 2.0**-23
    x = (amax * near * rng.uniform(-1, 1, (count, vec))).astype(np.float32)
    x[:, 0] = (amax * near)[:, 0]
    x[rng.random(x.shape) < 0.1] = -0.0
    special = rng.choice(
        [np.nan, -np.nan, np.inf, -np.inf, 1], x.shape, p=[0.02] * 4 + [0.92]
    )
    return np.where(rng.random((count, 1)) < 0.2, special, x).astype(np.float32)


def scale_ties(count: int, vec: int, rng: np.random.Generator) -> F32:
    """Blocks whose scale, with the global scale 97.3 or 1, is a tie of E4M3."""
    middle = (rng.integers(8, 16, (count, 1)) + 0.5) / 8 * 2.0 ** rng.integers(-6, 8)
    amax = (middle * 6 / rng.choice([1, GIVEN], (count, 1))).astype(np.float32)
    near = amax.view(np.int32) + rng.integers(-1, 2, amax.shape).astype(np.int32)
    x = rng.uniform(-1, 1, (count, vec)).astype(np.float32) * amax
    x[:, 0] = near.view(np.float32)[:, 0]
    return x


def patterns(count: int, vec: int, rng: np.random.Generator) -> F32:
    """Any bits at all, NaNs quietened as a conversion would."""
    bits = rng.integers(0, 1 << 32, (count, vec), np.uint32)
    exponent = rng.integers(1, 255, (count, 1)).astype(np.uint32) << np.uint32(23)
    close = bits & np.uint32(0x81FFFFFF) ^ exponent
    bits = np.where(rng.random((count, 1)) < 0.7, close, bits)
    with np.errstate(invalid="ignore"):
        return bits.view(np.float32) * np.float32(1)


def ordinary(count: int, vec: int, rng: np.random.Generator) -> F32:
    return rng.standard_normal((count, vec), np.float32)


MAKERS: tuple[Callable[[int, int, np.random.Generator], F32], ...]
MAKERS = (ties, scale_ties, edges, patterns, ordinary)


def scale_formats(recipe: Recipe, format: str) -> list[ScaleFormat]:
    legal = BLOCKS[format].scale_formats
    return [each for each in legal if each in recipe.scale_formats]


def settings(recipe: Recipe) -> Iterator[dict[str, Any]]:
    """Formats of FP4 and levels of scales that a recipe has."""
    for format in recipe.formats:
        if BLOCKS[format].element != "e2m1":
            continue
        for scale_format in scale_formats(recipe, format):
            yield {"format": format, "scale_format": scale_format}
            if recipe.global_scale != "none":
                two = {"format": format, "scale_format": scale_format}
                yield two | {"global_scale": GIVEN}
                if scale_format is ScaleFormat.UE4M3:
                    yield two | {"global_scale": "auto"}


def narrow(x: F32, dtype: str) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        return x.astype(getattr(ml_dtypes, dtype, dtype))


def compare(recipe: Recipe, x: NDArray[Any], options: dict[str, Any]) -> None:
    """Codes and scales equal, byte for byte; codes of a NaN scale do not count."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        q = quantize(x, recipe=recipe.name, **options)
    wide = x.astype(np.float32)
    given = options.get("global_scale")
    largest = float(np.abs(wide).max()) if given == "auto" else 0.0
    encode = decode = None
    if given == "auto":
        encode, decode, _ = automatic_global_scale(wide, recipe)
    elif given is not None:
        encode = float(np.float32(given))
        decode = float(np.float32(1) / np.float32(given))
    given_scales, ours, blocks = q.scales, q.codes, wide.reshape(-1, q.vec_size)
    if recipe.rows > 1:
        given_scales, ours, blocks = squares(recipe.rows, q.scales, q.codes, wide)
    codes, scales = outside(
        recipe.name,
        blocks,
        encode=encode,
        decode=decode,
        ue8m0=q.scale_format is ScaleFormat.UE8M0,
        range=recipe.range,
        largest=largest if np.isfinite(largest) else 0.0,
        dtype=x.dtype.name,
        drop=recipe.nan == "drop",
    )
    where = f"{recipe.name} {options} {x.dtype}"
    differ = np.flatnonzero(given_scales.ravel() != scales)
    assert not differ.size, f"{where}: scale of block {differ[:3]}, {blocks[0, :3]}"
    ours = ours.reshape(codes.shape)
    wrong = (ours != codes) & (scales != q.scale_format.nan_code)[:, None]
    assert not wrong.any(), (
        f"{where}: {int(wrong.sum())} codes, first at {np.argwhere(wrong)[0]}: x "
        f"{blocks[wrong][:3]}, {ours[wrong][:3]} {codes[wrong][:3]}"
    )


def squares(
    rows: int, scales: NDArray[np.uint8], *matrices: NDArray[Any]
) -> list[NDArray[Any]]:
    """One scale of each square, whose rows must agree; and the squares, flat."""
    tall = scales.reshape(-1, rows, scales.shape[1])
    assert (tall == tall[:, :1]).all(), "the rows of a square have unequal scales"
    flat = [
        each.reshape(-1, rows, each.shape[1] // 16, 16)
        .swapaxes(1, 2)
        .reshape(-1, rows * 16)
        for each in matrices
    ]
    return [tall[:, 0], *flat]


@pytest.mark.parametrize("name", NAMES)
def test_it_agrees_on_ties_edges_and_patterns(name: str, rotating_seed: int) -> None:
    recipe, rng = RECIPES[name], np.random.default_rng(rotating_seed)
    for options in settings(recipe):
        vec = BLOCKS[options["format"]].vec_size
        for make in MAKERS:
            x = make(256, vec, rng).reshape(64, -1)
            for dtype in ("float32", "bfloat16", "float16"):
                if options.get("global_scale") == "auto":
                    x = np.where(np.isfinite(x), x, np.float32(1))
                    x[0, 0] = max(abs(x[0, 0]), np.float32(1e-30))
                compare(recipe, narrow(x, dtype), options)


@pytest.mark.parametrize("name", NAMES)
def test_it_agrees_on_every_tie(name: str) -> None:
    """Of codes under each scale, and of scales, with the numbers on either side."""
    recipe, count = RECIPES[name], 0
    for options in settings(recipe):
        vec = BLOCKS[options["format"]].vec_size
        for x in (all_ties(vec, 1.0), all_ties(vec, 2.0**-7), all_scale_ties(vec)):
            tall = np.repeat(x, recipe.rows, axis=0)  # each row a square of its own
            for dtype in recipe.dtypes:
                with np.errstate(all="ignore"):
                    kept = narrow(tall, dtype)
                compare(recipe, kept, options)
                count += kept.size
    assert count > 20_000


@pytest.mark.rotating(4)
@pytest.mark.parametrize("name", NAMES)
def test_it_agrees_on_a_million_numbers(name: str, rotating_seed: int) -> None:
    recipe, rng = RECIPES[name], np.random.default_rng(rotating_seed)
    options = next(settings(recipe))
    vec = BLOCKS[options["format"]].vec_size
    for make in MAKERS:
        x = make(2**18 // vec, vec, rng).reshape(512, 512)
        compare(recipe, narrow(x, recipe.dtypes[-1]), options)
        if "float32" in recipe.dtypes:
            compare(recipe, x, options)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(16))
@pytest.mark.parametrize(
    "name", ["cutlass", "mx_floor", "mx_even", "mx_ceil", "mx_rceil"]
)
def test_every_pattern_is_an_element(name: str, part: int) -> None:
    """All 2^32; a block has 32 of two neighbouring binades, so that none vanishes."""
    recipe = RECIPES[name]
    low = np.arange(1 << 14, dtype=np.uint32)[:, None]
    middle = np.arange(32, dtype=np.uint32) << np.uint32(19)
    for high in range(16 * part, 16 * part + 16):
        for start in range(0, 1 << 19, 1 << 14):
            bits = np.uint32(high << 24) | middle | (low + np.uint32(start))
            with np.errstate(invalid="ignore"):
                x = bits.view(np.float32) * np.float32(1)  # quiet NaNs
            compare(recipe, x.reshape(1 << 9, -1), {"format": "mxfp4"})


# -- what is said of each ------------------------------------------------------------


def first_block(name: str, x: list[float], **options: Any) -> Any:
    recipe = RECIPES[name]
    vec = BLOCKS[recipe.formats[0]].vec_size
    row = np.zeros((1, vec), np.float32)
    row[0, : len(x)] = x
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return quantize(row, recipe.formats[0], name, **options)


def test_every_recipe_says_whose_it_is() -> None:
    for name, recipe in RECIPES.items():
        assert name == recipe.name
        assert recipe.source
        assert recipe.version
        assert recipe.beside
        assert recipe.summary
        assert set(recipe.formats) <= set(BLOCKS)


@pytest.mark.parametrize("name", NAMES)
def test_nan_and_inf_never_pass_in_silence(name: str) -> None:
    recipe = RECIPES[name]
    vec = BLOCKS[recipe.formats[0]].vec_size
    for special in (np.nan, -np.nan, np.inf, -np.inf):
        x = np.full((vec, 2 * vec), 6, np.float32)
        x[np.arange(vec), np.arange(vec)] = special  # at every position of a block
        with pytest.warns(NonFiniteWarning, match="NaN"):
            q = quantize(x, recipe.formats[0], name)
        nan = np.isnan(q.dequantize())
        mx = recipe.global_scale == "none"
        if (np.isnan(special) and recipe.nan == "propagate") or mx:
            assert nan[:, :vec].all()
        else:
            assert not nan.any()
        assert not nan[:, vec:].any()


def test_a_square_and_its_transpose_have_the_same_values() -> None:
    """What 16 x 16 is for; and the last rows are a square of their own."""
    x = np.random.default_rng(0).standard_normal((64, 64), np.float32)
    q, t = (quantize(m, recipe="transformer_engine_2d") for m in (x, x.T.copy()))
    assert (q.codes == t.codes.T).all()
    assert (q.dequantize() == t.dequantize().T).all()
    plain, turned = (quantize(m, recipe="transformer_engine") for m in (x, x.T.copy()))
    assert (plain.dequantize() != turned.dequantize().T).any()
    rest = quantize(x[:40], recipe="transformer_engine_2d").scales
    alone = quantize(x[32:40], recipe="transformer_engine_2d").scales
    assert (rest[32:] == alone).all()
    assert (alone == alone[0]).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_policy_is_the_callers(name: str) -> None:
    format = RECIPES[name].formats[0]
    x = np.full((2, 64), 3, np.float32)
    x[1, 5] = np.nan
    with pytest.raises(InputError, match=r"the first, nan, at \(1, 5\)"):
        quantize(x, format, name, nonfinite="raise")
    with pytest.warns(NonFiniteWarning):
        dropped = quantize(x, format, name, nonfinite="drop")
    assert np.isfinite(dropped.dequantize()).all()
    assert dropped.codes[1, 5] == 7
    with pytest.warns(NonFiniteWarning):
        kept = quantize(x, format, name, nonfinite="propagate")
    assert np.isnan(kept.dequantize()[1, :16]).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_tensor_of_zeros_stays_zero(name: str) -> None:
    recipe = RECIPES[name]
    auto = "auto" if recipe.formats[0] == "nvfp4" else None
    q = quantize(np.zeros((4, 64), np.float32), recipe.formats[0], name, auto)
    assert q.global_scale in (None, 1.0)
    assert (q.dequantize() == 0).all()
    assert (q.scales != q.scale_format.nan_code).all()


def test_a_library_has_only_its_formats() -> None:
    x = np.ones((1, 32), np.float32)
    with pytest.raises(InputError, match="'torchao' with format 'mxfp4'; its source"):
        quantize(x, "mxfp4", "torchao")
    with pytest.raises(InputError, match="'vllm' with format 'mxfp8_e4m3'"):
        quantize(x, "mxfp8_e4m3", "vllm")
    with pytest.raises(InputError, match="has one level of scales"):
        quantize(x, "mxfp4", "mx_even", 2.0)
    with pytest.raises(InputError, match="'modelopt' with UE8M0 scales"):
        quantize(x, recipe="modelopt", scale_format="ue8m0")


def test_the_direction_of_a_global_scale_is_named() -> None:
    x = np.array([[0.75] * 16], np.float32)
    encode = quantize(x, recipe="modelopt", global_scale=3584.0)
    decode = quantize(
        x, recipe="modelopt", global_scale=1 / 3584, global_scale_convention="decode"
    )
    assert encode.scales.tolist() == decode.scales.tolist() == [[0x7E]]
    assert encode.global_scale == pytest.approx(decode.global_scale, rel=1e-7)
    with pytest.raises(InputError, match="global_scale_convention"):
        quantize(x, global_scale=2.0, global_scale_convention="times")  # type: ignore[arg-type]


def test_what_a_recipe_loses_is_said() -> None:
    x = np.full((1, 16), 1e-4, np.float32)
    with pytest.warns(UnderflowWarning, match="1 of 1 blocks decode to zero"):
        assert not quantize(x, recipe="torchao").dequantize().any()
