"""original_recipes: the library's own code and ours, on all ties and 10^6 numbers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.typing import NDArray
from original_recipes import ORIGINALS, Scale
from test_recipes import MAKERS, narrow
from tie_inputs import all_scale_ties, all_ties

from fp4ref.numerics.elements import BLOCKS
from fp4ref.tensors.quantize import automatic_global_scale, quantize
from fp4ref.tensors.recipes import RECIPES

F32 = NDArray[np.float32]


def compare(name: str, x: NDArray[np.generic], level: str) -> int:
    """Compare finite numbers; return how many."""
    recipe = RECIPES[name]
    wide = x.astype(np.float32)
    given = None if recipe.global_scale == "none" or level == "one" else "auto"
    encode, decode = (
        (1.0, 1.0) if given is None else automatic_global_scale(wide, recipe)[:2]
    )
    scale = Scale(encode, decode, float(np.abs(wide).max()), given is not None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        q = quantize(x, recipe.formats[0], name, given)
        codes, scales = ORIGINALS[name].quantise(x, scale)
    differ = np.argwhere(q.scales != scales)
    assert not differ.size, (
        f"{len(differ)} scales of {scales.size}, first at {differ[0]}: "
        f"{q.scales[tuple(differ[0])]:02X} {scales[tuple(differ[0])]:02X}, "
        f"{wide.reshape(*scales.shape, -1)[tuple(differ[0])]}"
    )
    # The reference of TransformerEngine has no code for -0, where its kernel's cvt has.
    folded = [np.where(each == 8, 0, each) for each in (q.codes, codes)]
    wrong = np.argwhere(folded[0] != folded[1])
    assert not wrong.size, (
        f"{len(wrong)} codes of {codes.size}, first at {wrong[0]}: x "
        f"{wide[tuple(wrong[0])]!r}, ours {q.codes[tuple(wrong[0])]}, its "
        f"{codes[tuple(wrong[0])]}"
    )
    return int(codes.size)


@pytest.mark.outside
@pytest.mark.filterwarnings("ignore")  # the libraries' own
@pytest.mark.parametrize("name", list(ORIGINALS))
def test_the_original_has_our_bytes(name: str, rotating_seed: int) -> None:
    if reason := ORIGINALS[name].why_not():
        pytest.skip(reason)
    recipe, rng = RECIPES[name], np.random.default_rng(rotating_seed)
    vec = BLOCKS[recipe.formats[0]].vec_size
    one = not name.startswith(("transformer_engine", "four"))
    levels = ["one", "auto"] if one else ["auto"]
    dtypes = [d for d in ("float32", "bfloat16", "float16") if d in recipe.dtypes]
    count = 0
    for level in levels:
        for scale in (1.0, 1e-3):
            count += compare(name, all_ties(vec, scale), level)
        count += compare(name, all_scale_ties(vec), level)
        for make in MAKERS:
            x = make(2**18 // vec, vec, rng).reshape(512, 512)
            for dtype in dtypes:
                kept = narrow(x, dtype)
                with np.errstate(all="ignore"):
                    usual = np.isfinite(kept) & (abs(kept) < 1e30)
                kept = np.where(usual, kept, kept.dtype.type(1))
                count += compare(name, kept, level)
    print(f"{name}: {count:,} numbers")
    assert count > 1_000_000
