"""layer_error: norms by float64, slabs and threads that change nothing."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from checkpoints import modelopt, quantised, weights, write
from typer.testing import CliRunner

from fp4ref.commands import app
from fp4ref.errors import InputError
from fp4ref.tensors import layer_error as module
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.tensors.layer_error import layer_error, outliers
from fp4ref.tensors.quantize import quantize
from fp4ref.tensors.recipes import RECIPES

W, X = weights(48, 64), weights(8, 64, seed=9)


def norm(values: np.ndarray) -> float:
    return float(np.sqrt((values.astype(np.float64) ** 2).sum()))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_errors_are_relative_norms(dtype: str) -> None:
    w = W.astype(getattr(ml_dtypes, dtype, dtype))
    wide = w.astype(np.float64)
    for each in layer_error("w", w, x=X).errors:
        recipe = RECIPES[each.recipe]
        auto = None if recipe.global_scale == "none" else "auto"
        q = quantize(w, recipe.formats[0], each.recipe, auto)
        off = q.dequantize(np.float64) - wide
        assert each.w == pytest.approx(norm(off) / norm(wide), rel=1e-5)
        y = norm(X @ off.T) / norm(X @ wide.T)
        assert each.y == pytest.approx(y, rel=1e-4)
        assert each.nan_blocks == 0


def test_slabs_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The global scale is the tensor's, in the library's own direction."""
    whole = layer_error("w", W).errors
    monkeypatch.setattr(module, "SLAB_ELEMENTS", 5 * 64)
    for one, many in zip(whole, layer_error("w", W).errors, strict=True):
        assert many.w == pytest.approx(one.w, rel=1e-12)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_slabs_have_the_bytes_of_the_whole(
    monkeypatch: pytest.MonkeyPatch, name: str, dtype: str
) -> None:
    """On values whose 4-or-6, ties and factors hang on the last bit of G."""
    recipe = RECIPES[name]
    auto = None if recipe.global_scale == "none" else "auto"
    monkeypatch.setattr(module, "SLAB_ELEMENTS", 16 * 64)
    seen: list[BlockScaled] = []

    def keep(*arguments: Any, **options: Any) -> BlockScaled:
        seen.append(quantize(*arguments, **options))
        return seen[-1]

    monkeypatch.setattr(module, "quantize", keep)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        grid = rng.choice(np.array([0.5, 1, 1.5, 2, 2.5, 3, 3.5, 5, 6]), (40, 64))
        w = (grid * rng.uniform(0.5, 1) * 2.0 ** rng.integers(-3, 4, (40, 1))).astype(
            getattr(ml_dtypes, dtype, dtype)
        )
        seen.clear()
        layer_error("w", w, [name], threads=1)
        whole = quantize(w, recipe.formats[0], name, auto)
        assert [len(each.codes) for each in seen] == [16, 16, 8]
        for part in ("codes", "scales"):
            joined = np.concatenate([getattr(each, part) for each in seen])
            assert (joined == getattr(whole, part)).all()
        assert {each.global_scale for each in seen} == {whole.global_scale}


def test_threads_of_blas_change_nothing() -> None:
    code = (
        "import numpy as np; from fp4ref.tensors.layer_error import layer_error;"
        "w, x = np.random.default_rng(0).standard_normal((2, 512, 1024), np.float32);"
        "print(layer_error('w', w, ['cutlass', 'mx_floor'], x=x[:100]))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"OPENBLAS_NUM_THREADS": threads},
            capture_output=True,
            check=True,
        ).stdout
        for threads in "13"
    }
    assert len(said) == 1


def test_the_smallest_error_is_the_best() -> None:
    found = layer_error("w", W, ["mx_ceil", "cutlass", "four_over_six_mse_448_tie_six"])
    assert found.best is not None
    assert found.best.recipe.startswith("four")
    assert found.best.w == min(each.w or 1 for each in found.errors)


def test_outlier_channels_are_named() -> None:
    w = W.copy()
    w[:, 5] *= 40
    w[7, 33] = -9
    assert [c.k for c in outliers(w)] == [33, 5]
    assert outliers(w)[1].ratio == pytest.approx(40, rel=0.5)
    assert outliers(W) == ()
    assert outliers(np.zeros((4, 32), np.float32)) == ()


def test_nan_is_counted_and_does_not_spread() -> None:
    w = W.copy()
    w[3, 3], w[4, 60] = np.nan, np.inf
    found = layer_error("w", w, x=X)
    assert "2 NaN or Inf in w" in found.notes[0]
    for each in found.errors:
        assert each.w is None or np.isfinite(each.w)
        propagates = RECIPES[each.recipe].nan == "propagate"
        assert (each.nan_blocks > 0) == propagates


def test_zeros_have_no_relative_error() -> None:
    (found,) = layer_error("w", np.zeros((4, 32), np.float32), ["modelopt"]).errors
    assert found.w is None
    assert layer_error("w", np.zeros((4, 32), np.float32), ["modelopt"]).best is None


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="recipe: 'quark'"):
        layer_error("w", W, ["quark"])
    with pytest.raises(InputError, match=r"need \(N, K\)"):
        layer_error("w", W, x=X[:, :32])
    odd = layer_error("w", W[:, :48])  # 48 is no multiple of 32
    assert not any(each.recipe.startswith("mx") for each in odd.errors)


def run(*arguments: str) -> tuple[int, str]:
    said = CliRunner().invoke(app, ["error", *arguments], env={"COLUMNS": "200"})
    return said.exit_code, said.output


def test_the_command_compares_and_draws(tmp_path: Path) -> None:
    w = W.copy()
    w[:, 5] *= 40
    tensors = modelopt("a", quantised()) | {"b.weight": w}
    path = write(tmp_path / "model.safetensors", tensors)
    np.save(tmp_path / "x.npy", X)
    svg = tmp_path / "error.svg"
    options = ["--recipe", "cutlass", "--recipe", "mx_floor", "--svg", str(svg)]
    status, said = run(str(path), *options, "--activations", str(tmp_path / "x.npy"))
    assert status == 0, said
    assert "outlier channels of w: k 5" in said
    assert "stored as NVFP4: the floats it was made of are not here" in said
    assert "best" in said
    picture = svg.read_text("utf-8")
    assert picture.startswith("<svg")
    assert "url(" not in picture.replace("url(#", "")  # its own clips
    assert "font-face" not in picture
    status, said = run(str(path), "--tensor", "b.weight", "--json")
    (layer,) = json.loads(said)
    assert [e["recipe"] for e in layer["errors"]] == list(RECIPES)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["absent.safetensors"], "no such file"),
        (["--tensor", "a"], "go with a checkpoint"),
        (["--recipe", "quark"], "recipe: 'quark'"),
    ],
)
def test_bad_input_has_status_two(arguments: list[str], why: str) -> None:
    status, said = run(*arguments)
    assert (status, why in said) == (2, True)


@pytest.mark.soak
def test_a_layer_of_4096_by_4096_over_all_recipes() -> None:
    """CPU time, because the machine may be shared; memory of the whole process."""
    rng = np.random.default_rng(0)
    w = (rng.standard_normal((4096, 4096), np.float32) * 0.02).astype(
        ml_dtypes.bfloat16
    )
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = layer_error("w", w)
    seconds = time.process_time() - start
    print(f"{seconds:.1f} s of CPU time for {len(found.errors)} recipes")
    assert seconds < 60
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 << 20


def test_the_median_of_the_largest_numbers_is_one() -> None:
    x = np.full((4, 64), 3e38, np.float32)
    assert outliers(x) == ()
    x[:, :40] = 1e37
    assert [channel.k for channel in outliers(x)] == [40, 41, 42]
