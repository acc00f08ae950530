"""walk: NaN, Inf and numbers near both ends of float32, in the words of the report."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from fp4ref.commands import app
from fp4ref.errors import InputError
from fp4ref.evidence.oracle import bound
from fp4ref.tensors.losses import NonFiniteWarning
from fp4ref.tensors.product import matmul
from fp4ref.tensors.quantize import quantize
from fp4ref.walk import make_config, walk
from fp4ref.walk import report as walk_report
from fp4ref.walk.inputs import Problem, load_problem


def matrix(rows: int = 5, k: int = 64) -> np.ndarray:
    return np.random.default_rng(rows).standard_normal((rows, k)).astype(np.float32)


def walked(x: np.ndarray, w: np.ndarray, output: str = "f32"):
    """Walk without the kernel; return the report, the run, and the text."""
    problem = Problem(x, w, "t", "s")
    report, run, _ = walk(problem, config=make_config(output), backend="emulator")
    out = io.StringIO()
    assert run.trace is not None
    walk_report.render(report, run.trace, Console(file=out, width=200))
    return report, run, " ".join(out.getvalue().split())


def test_nan_is_counted_placed_and_followed() -> None:
    x, w = matrix(), matrix(6)
    x[2, 17] = x[3, 0] = w[4, 63] = np.nan
    report, run, text = walked(x, w)
    assert "x holds 2 NaN (first at row 2, k 17)" in text
    assert "w holds 1 NaN (first at row 4, k 63)" in text
    assert "y holds 15 NaN (first at row 0, column 4)" in text
    assert "the scale of its block of 16 becomes NaN (byte 0x7F)" in text
    assert "the whole row of y for a NaN in x, the whole column for one in w" in text
    nan = np.zeros((5, 6), bool)
    nan[2:4] = nan[:, 4] = True
    assert (np.isnan(run.d) == nan).all()
    assert report.ok
    assert 0 < report.bound_ratio <= 1
    assert "within it" in text
    assert "NaN where the operands have one and nowhere else" in text
    assert "BEYOND" not in text
    assert "over the finite elements" in text


@pytest.mark.parametrize("dtype", ["<u4", "<u8", "<u2"])
def test_a_signalling_nan_raises_no_warning(tmp_path: Path, dtype: str) -> None:
    """Its bits: the exponent full, the first bit of the fraction clear."""
    bits = np.zeros((2, 32), dtype)
    bits[1, 5] = {2: 0x7C01, 4: 0x7F800001, 8: 0x7FF0000000000001}[bits.itemsize]
    np.savez(tmp_path / "x.npz", x=bits.view(f"<f{bits.itemsize}"), w=matrix(2, 32))
    report, *_ = walk(load_problem(tmp_path / "x.npz"), backend="emulator")
    assert report.ok
    assert report.nonfinite["x"].first_nan == (1, 5)


def test_inf_becomes_the_largest_value_and_says_so() -> None:
    w = matrix(6)
    w[1, 20] = -np.inf
    report, run, text = walked(matrix(), w)
    assert "w holds 1 Inf (first at row 1, k 20)" in text
    assert "the global scale of its matrix becomes 1" in text
    assert "the Inf 6 x 448 = 2688" in text
    assert report.ok
    assert np.isfinite(run.d).all()
    with pytest.warns(NonFiniteWarning):
        assert quantize(w, global_scale="auto").dequantize()[1, 20] == -2688


@pytest.mark.parametrize("output", ["f32", "bf16", "f16", "nvfp4"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 3e38])
def test_all_of_one_odd_value_walks(output: str, value: float) -> None:
    report, *_ = walked(np.full((3, 32), value, np.float32), matrix(4, 32), output)
    assert report.ok
    assert report.bits_equal == report.bits_compared


def test_no_finite_element_has_no_error(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("x.npz", x=np.full((2, 32), np.nan), w=matrix(2, 32))
    done = CliRunner().invoke(app, ["walk", "x.npz", "--no-kernel", "--json"])
    assert done.exit_code == 0
    assert done.stderr == ""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} in JSON")

    report = json.loads(done.stdout, parse_constant=refuse)
    assert report["quantisation_error"] == {}
    assert report["nonfinite"]["x"]["nan"] == 64
    assert report["nonfinite"]["x"]["first_nan"] == [0, 0]
    done = CliRunner().invoke(app, ["walk", "x.npz", "--no-kernel"])
    assert "no element of y is finite" in done.stdout


def test_the_bound_sees_a_nan_too_much_and_one_too_few() -> None:
    x, w = matrix(), matrix(6)
    x[2, 17] = np.nan
    with pytest.warns(match="x holds 1 NaN"):
        qa = quantize(x)
    qb = quantize(w)
    right = matmul(qa, qb)
    assert bound(qa, qb, right).holds
    for at, value in (((0, 0), np.nan), ((2, 3), 1.0)):
        wrong = right.copy()
        wrong[at] = value
        assert bound(qa, qb, wrong).worst_ratio == np.inf


def test_an_infinite_alpha_is_refused_with_a_way_out() -> None:
    x = np.full((2, 32), 3e38, np.float32)
    with pytest.raises(InputError, match=r"is 1\.25e\+70 and infinite in float32") as e:
        walked(x, x)
    assert "Divide x or w by 2^105 or more: codes and block scales stay" in str(e.value)
    report, _, text = walked(x * np.float32(2.0**-105), x)
    assert report.ok
    assert "y holds 4 Inf" in text
    a, b = (quantize(m, global_scale="auto") for m in (x, x * np.float32(2.0**-105)))
    assert (a.codes == b.codes).all()
    assert (a.scales == b.scales).all()
    with pytest.raises(InputError, match="and infinite in float32"):
        walked(x * np.float32(2.0**-104), x)


def test_a_result_beyond_the_output_format_is_named() -> None:
    _, _, text = walked(np.full((1, 32), 300, "f4"), np.full((1, 32), 300, "f4"), "f16")
    assert "y holds 1 Inf (first at row 0, column 0)" in text
    assert "an Inf in y is a result beyond the output format" in text


def test_a_block_near_the_lower_end_comes_back_at_its_size() -> None:
    x = np.full((2, 32), 1e-38, np.float32)
    q = quantize(x, global_scale="auto")
    assert q.global_scale == np.finfo(np.float32).max / 512
    # x * G / 6 = 0.57 * 2^-9, so the scale is 2^-9, E4M3's smallest; x * G is 3.4 of
    # these, nearest to E2M1's 3; and 3 * 2^-9 / G = 3 / FLT_MAX.
    assert (q.scales == 1).all()
    assert (q.dequantize(np.float64) == 3 / float(np.finfo(np.float32).max)).all()
    report, _, text = walked(x, matrix(3, 32))
    assert report.ok
    assert "x: " not in text
    assert "below float32's normal range: y loses bits or becomes 0" in text


def test_a_block_below_that_is_lost_in_words() -> None:
    x = np.full((2, 32), 1e-44, np.float32)
    report, run, text = walked(x, matrix(3, 32))
    assert report.ok
    assert not run.d.any()
    assert "x: 4 of 4 blocks decode to zero" in text
    assert "Multiply the matrix by a power of two: it is at float32's lower end" in text
    assert "100.00% Frobenius" in text


def test_small_blocks_beside_a_huge_value_are_lost_in_words() -> None:
    x = matrix(4)
    x[0, 0] = 3e38
    _, _, text = walked(x, matrix(3))
    assert "15 of 16 blocks decode to zero" in text
    assert "The largest value, 3e+38, leaves them no room; is it right?" in text


def test_the_remedy_of_a_small_alpha_is_enough() -> None:
    x = np.full((2, 32), 1e-19, np.float32)
    _, _, text = walked(x, x)
    [n] = [w for w in text.split() if w.startswith("2^")]
    power = np.float32(2.0 ** int(n.removeprefix("2^").rstrip(",")))
    assert "normal range" not in walked(x * power, x)[2]
    assert "normal range" in walked(x * power / 2, x)[2]
