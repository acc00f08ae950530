"""walk: the main job, its input files and its report."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from fp4ref import GemmConfig
from fp4ref.errors import InputError
from fp4ref.walk import load_problem, make_config, random_problem, walk
from fp4ref.walk import report as walk_report


@pytest.fixture(scope="module")
def real_walk():
    return walk(load_problem())


def test_the_default_input_is_the_layer_of_a_real_transformer() -> None:
    problem = load_problem()
    assert problem.sizes == (256, 384, 1536)
    assert "all-MiniLM-L6-v2" in problem.source
    assert float(np.abs(problem.x).max()) == 17.5
    assert problem.text.startswith("A small brown dog")


def test_the_real_layer_has_the_error_that_was_found_for_it(real_walk) -> None:
    report, *_ = real_walk
    assert round(report.quantisation_error["x and w"], 4) == 0.0267
    assert round(report.quantisation_error["x only"], 4) == 0.0196
    assert round(report.quantisation_error["w only"], 4) == 0.0227


def test_every_bit_and_the_bound_hold(real_walk) -> None:
    report, run, _ = real_walk
    assert report.ok
    assert report.bits_equal == report.bits_compared == 256 * 384
    assert 0 < report.bound_ratio <= 1
    assert run.written.all()


def test_the_counts_follow_from_the_sizes(real_walk) -> None:
    report, *_ = real_walk
    tiles, k_tiles, stage_bytes, stages = 6, 6, 36_864, 5
    m = report.machine
    assert report.tiles_run == report.tiles_in_all == tiles
    assert m["tcgen05.mma"] == tiles * k_tiles * 4
    assert m["tcgen05.cp"] == tiles * k_tiles * 8
    assert m["tcgen05.commit"] == tiles * (k_tiles + 1)
    assert m["tma_load_bytes"] == tiles * k_tiles * stage_bytes
    assert m["tma_store_bytes"] == 4 * 256 * 384
    assert m["macs"] == 256 * 384 * 1536
    # Three tiles on each of two SMs: 18 k-tiles through a ring of five stages.
    assert m["ring_wraps"] == 2 * ((3 * k_tiles - 1) // stages)


def test_the_compiled_kernel_agrees_at_every_hardware_event(real_walk) -> None:
    kernel = real_walk[0].kernel
    assert kernel.ok
    assert kernel.events == {
        **dict.fromkeys(("A", "B", "SFA", "SFB"), 36),
        **dict.fromkeys(("SFA in TMEM", "SFB in TMEM", "accumulator"), 144),
        "D": 24,
    }
    python, cuda = kernel.pairs[0].splitlines()[1:]
    assert "tma.load(warp, params.a" in python
    assert "tma_load(" in cuda


def test_a_kernel_that_differs_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    from fp4ref.hardware import tma
    from fp4ref.hardware.sm import Warp

    right = tma.store

    def wrong(warp: Warp, tensor_map, coords, src) -> None:
        if warp.kernel_source:
            coords = [coords[0] ^ 32, *coords[1:]]
        right(warp, tensor_map, coords, src)

    monkeypatch.setattr(tma, "store", wrong)
    report, run, _ = walk(random_problem(40, 128, 64))
    assert not report.ok
    assert report.bits_equal == report.bits_compared
    assert report.kernel.first_difference.startswith("D at m 0")
    out = io.StringIO()
    walk_report.render(report, run.trace, Console(file=out, width=100))
    assert "DIFFERENT" in out.getvalue()


def test_scales_along_m_are_counted_too() -> None:
    across = {"store": "transposed", "element_wise": "smem", "d_format": "nvfp4"}
    config = GemmConfig.nvfp4(**across)
    report, _, _ = walk(random_problem(40, 50, 64), config=config, backend="emulator")
    assert report.bits_equal == report.bits_compared == 40 * 50 + 3 * 50


def test_a_wrong_result_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    from fp4ref.walk import numbers as module

    problem = random_problem(40, 32, 64)
    wrong = module.expected

    def off_by_one_bit(*args, **kwargs):
        want = wrong(*args, **kwargs)
        want.d.view(np.uint32)[3, 5] ^= 1
        return want

    monkeypatch.setattr(module, "expected", off_by_one_bit)
    report, run, _ = walk(problem)
    assert not report.ok
    assert report.bits_equal == report.bits_compared - 1
    out = io.StringIO()
    walk_report.render(report, run.trace, Console(file=out, width=100))
    assert "DIFFERENT" in out.getvalue()


def test_a_part_of_a_big_problem_is_checked_alone() -> None:
    report, run, _ = walk(random_problem(400, 300, 96), tiles=[(2, 1)])
    assert report.ok
    assert (report.tiles_run, report.tiles_in_all) == (1, 12)
    assert report.bits_compared == 128 * 128
    assert not run.written[:256].any()
    assert run.written[256:384, 128:256].all()


def test_a_quantised_output_is_checked_with_its_scales() -> None:
    report, *_ = walk(random_problem(130, 48, 64), config=make_config("nvfp4"))
    assert report.ok
    assert report.bits_compared == 130 * 48 + 130 * 3


@pytest.mark.parametrize("name", ["f32", "bf16", "f16", "nvfp4"])
def test_every_output_walks(name: str) -> None:
    report, *_ = walk(random_problem(20, 40, 32), config=make_config(name))
    assert report.ok


def test_example_72b_walks() -> None:
    problem = random_problem(128, 128, 2048)
    report, *_ = walk(problem, config=make_config("f32", "72b"))
    assert report.ok
    assert report.frames_seen == report.frames_expected


def test_the_report_fits_a_narrow_terminal_and_has_all_parts(real_walk) -> None:
    report, run, _ = real_walk
    out = io.StringIO()
    walk_report.render(report, run.trace, Console(file=out, width=80))
    text = out.getvalue()
    assert max(len(line) for line in text.splitlines()) <= 80
    for part in ("Quantised", "2.67%", "ring", "integer model", "float64", "rests on"):
        assert part in text
    assert "…" not in text


def test_the_picture_loads_nothing_from_outside(real_walk) -> None:
    report, run, _ = real_walk
    svg = walk_report.to_svg(report, run.trace)
    assert svg.startswith("<svg")
    assert "url(" not in svg.replace("url(#", "")
    assert "@font-face" not in svg


def test_float_and_bfloat16_inputs_are_read(tmp_path: Path) -> None:
    x = np.arange(64, dtype=np.float32).reshape(2, 32)
    np.savez(tmp_path / "a.npz", x=x.astype(np.float64), w=x)
    bits = (x.view(np.uint32) >> 16).astype(np.uint16)
    np.savez(tmp_path / "b.npz", x_bf16=bits, w_bf16=bits)
    for name in ("a.npz", "b.npz"):
        problem = load_problem(tmp_path / name)
        assert np.array_equal(problem.x, x)
        assert problem.x.dtype == np.float32


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "holds nothing; it needs x"),
        ({"x": np.zeros((2, 32))}, "it needs w"),
        ({"x": np.zeros((2, 32)), "w": np.zeros(3)}, "give a matrix"),
        ({"x": np.zeros((2, 32)), "w": np.zeros((2, 64))}, "the same K"),
        ({"x": np.zeros((2, 32), int), "w": np.zeros((2, 32))}, "x is int64"),
    ],
)
def test_a_file_without_two_matrices_is_refused(
    tmp_path: Path, arrays: dict[str, np.ndarray], message: str
) -> None:
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(InputError, match=message):
        load_problem(tmp_path / "bad.npz")


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04broken"])
def test_a_file_that_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"is no \.npz file"):
        load_problem(tmp_path / "bad.npz")


def test_a_missing_file_and_a_bad_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load_problem(tmp_path / "none.npz")
    with pytest.raises(InputError, match=r"say one of f32, .*e5m2, nvfp4"):
        make_config("int8")
    with pytest.raises(InputError, match="known is 72b"):
        make_config("f32", "79")
    with pytest.raises(InputError, match="every size is at least 1"):
        random_problem(0, 1, 32)


def test_a_size_beyond_memory_is_refused() -> None:
    with pytest.raises(InputError, match="take smaller sizes"):
        random_problem(99_999_999, 999_999, 99_999)
