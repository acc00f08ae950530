"""beside: what runs beside the emulator, and the sentence where a GPU cannot."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from fp4ref.commands import app
from fp4ref.cuda_kernel import on_device
from fp4ref.device import driver, launch
from fp4ref.device.driver import DeviceError, Gpu
from fp4ref.errors import InputError
from fp4ref.walk import beside, make_config, numbers, random_problem, report, walk

SMALL = random_problem(20, 24, 64)
H200 = Gpu("NVIDIA H200", (9, 0), "580.159.04")
B200 = Gpu("NVIDIA B200", (10, 0), "590.1")
CANNOT = [
    (Gpu(missing="no NVIDIA driver is installed (libcuda.so)"), "no NVIDIA driver is"),
    (Gpu(missing="the NVIDIA driver is for CUDA 12.4; Update it"), "the NVIDIA driver"),
    (
        Gpu("NVIDIA A100", (8, 0), "590.1"),
        "NVIDIA A100 has compute capability 8.0, without tcgen05 and TMEM, clusters "
        "and TMA; the kernel needs 9.0, 10.0, 10.1, 10.3 or 11.0",
    ),
    (
        Gpu("RTX PRO 6000", (12, 0), "590.1"),
        "RTX PRO 6000 has compute capability 12.0, without tcgen05 and TMEM; the",
    ),
]


def walked(*words: str) -> tuple[int, str]:
    """Exit status and what is said, in one line."""
    small = ["walk", "--size", "20x24x64", *words]
    said = CliRunner().invoke(app, small, env={"COLUMNS": "200"})
    assert said.exception is None or isinstance(said.exception, SystemExit)
    return said.exit_code, " ".join(said.output.split())


@pytest.fixture
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("gpu", "sentence"), CANNOT)
def test_a_gpu_that_cannot_is_said_and_the_ptx_runs(
    gpu: Gpu, sentence: str, in_a_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside, "find_gpu", lambda: gpu)
    status, said = walked("--backend", "device")
    assert (status, said.count(sentence)) == (2, 1)
    assert "--backend ptx runs the same kernel's code on the emulated machine" in said
    assert not list(in_a_folder.iterdir())
    status, said = walked()
    assert status == 0
    assert f"on a GPU did not run: {sentence}" in said
    assert "The kernel's PTX ran on the emulated machine instead" in said


class Status(int):
    name = "CUDA_SUCCESS"


def failing(function: str, name: str) -> Any:
    """A driver of which one function fails."""
    bad = Status(1)
    bad.name = name

    def answer(each: str) -> Any:
        def call(*_: object) -> tuple[Status, int]:
            return (bad if each == function else Status(0), 1)

        call.__name__ = each
        return call

    names = ("DeviceGet", "DevicePrimaryCtxRetain", "CtxSetCurrent", "ModuleLoadData",
             "MemAlloc", "MemcpyHtoD", "MemsetD8", "MemFree")  # fmt: skip
    found = {f"cu{each}": answer(f"cu{each}") for each in names}
    found["cuModuleGetGlobal"] = lambda *_: (Status(0), 1, 4)
    return SimpleNamespace(**found)


LATE = [
    ("cuDevicePrimaryCtxRetain", "CUDA_ERROR_DEVICE_UNAVAILABLE", "the GPU is busy"),
    ("cuMemAlloc", "CUDA_ERROR_OUT_OF_MEMORY", "the GPU has too little free memory"),
]


@pytest.mark.parametrize(("function", "status", "words"), LATE)
def test_a_gpu_that_is_busy_or_full_is_said_in_words(
    function: str, status: str, words: str,
    in_a_folder: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for module in (beside, on_device, launch):
        monkeypatch.setattr(module, "find_gpu", lambda: H200)
    fake = failing(function, status)
    monkeypatch.setattr(launch, "bindings", lambda: fake)
    made = SimpleNamespace(cubin=b"", nvrtc="0.0")
    monkeypatch.setattr(on_device, "compile_soft", lambda config: made)
    exits, said = walked()
    assert exits == 0
    assert f"on a GPU did not run: {function}: {status}: {words}" in said
    exits, said = walked("--backend", "device", "--force")
    assert exits == 1
    assert said.startswith(f"{function}: {status}: {words}")


@pytest.mark.parametrize("words", [["--backend", "gpu"], ["--backend", "cuda"]])
def test_another_word_is_refused(words: list[str]) -> None:
    status, said = walked(*words)
    assert status == 2
    assert "auto" in said
    assert "device" in said


def test_what_does_not_go_together_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    status, said = walked("--no-kernel", "--backend", "ptx")
    assert (status, said) == (2, "give --no-kernel or --backend ptx, not both")
    monkeypatch.setattr(beside, "find_gpu", lambda: H200)
    with pytest.raises(InputError, match="whole grid; leave out --tiles"):
        walk(SMALL, backend="device", tiles=[(0, 0)])


def test_the_emulator_alone_has_no_kernel(in_a_folder: Path) -> None:
    for words in (["--no-kernel"], ["--backend", "emulator"]):
        status, said = walked(*words, "--json", "--force")
        assert status == 0
        found = json.loads(said)
        assert found["kernel"] is None
        assert {*found["seconds"]} == {"quantise", "matmul", "emulate", "check"}


def test_ptx_alone_looks_for_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> Gpu:
        pytest.fail("a GPU is looked for")

    monkeypatch.setattr(beside, "find_gpu", never)
    kernel = walk(SMALL, backend="ptx").report.kernel
    assert kernel is not None
    assert kernel.ok
    assert (kernel.gpu, kernel.no_gpu) == ("", "")


@pytest.mark.parametrize("gpu", [H200, B200])
@pytest.mark.parametrize("backend", ["auto", "device"])
@pytest.mark.parametrize("wrong", ["", "d", "sfd"])
def test_a_card_that_can_runs_the_kernel(
    gpu: Gpu, backend: beside.Beside, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = numbers.run

    def run_anywhere(*args: Any, backend: str, **options: Any) -> Any:
        if backend != "device":
            return right(*args, backend=backend, **options)
        found = right(*args, backend="emulator", **options)
        if wrong:
            getattr(found, wrong).view(np.uint8)[0, 0] ^= 1
        return found

    monkeypatch.setattr(beside, "find_gpu", lambda: gpu)
    monkeypatch.setattr(numbers, "run", run_anywhere)
    done = walk(SMALL, config=make_config("nvfp4"), backend=backend)
    kernel = done.report.kernel
    assert kernel is not None
    assert (kernel.gpu, kernel.gpu_ok) == (str(gpu), not wrong)
    assert done.report.ok is not bool(wrong)
    assert (done.kernel is not None) == (backend == "auto")
    assert bool(kernel.events) == (backend == "auto")
    out = io.StringIO()
    report.render(done.report, done.run.trace, Console(file=out, width=200))
    assert ("No Blackwell GPU" in out.getvalue()) == (gpu is H200)


def test_the_report_names_the_card(
    in_a_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = numbers.run
    monkeypatch.setattr(beside, "find_gpu", lambda: H200)
    monkeypatch.setattr(
        numbers,
        "run",
        lambda *args, backend, **options: right(*args, backend="emulator", **options),
    )
    status, said = walked("--backend", "device")
    assert status == 0
    assert f"on your GPU equal: D on {H200}" in said
    assert "No Blackwell GPU was used" in said
    assert f"{H200}: a card shows no events; --backend ptx has them" in said


def test_a_driver_that_loads_and_fails_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_driver() -> Any:
        raise DeviceError("the NVIDIA driver finds no GPU (CUDA_ERROR_NO_DEVICE)")

    monkeypatch.setattr("importlib.import_module", lambda name: None)
    monkeypatch.setattr(driver, "bindings", no_driver)
    assert driver.find_gpu.__wrapped__().missing == (
        "the NVIDIA driver finds no GPU (CUDA_ERROR_NO_DEVICE)"
    )
