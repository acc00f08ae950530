"""The ladder goes on past what hangs, faults and gives up, and says which is which."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from fp4ref.attest import ladder, worker
from fp4ref.attest.ladder import Ladder, rungs
from fp4ref.attest.worker import dumped
from fp4ref.commands import app
from fp4ref.device.compile import nvrtc_version
from fp4ref.device.driver import Gpu
from fp4ref.errors import DeadlockError, InputError
from fp4ref.evidence.attested import facts
from fp4ref.evidence.transcript import read

needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)


def climb(out: Path, *options: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["attest", "--out", str(out), *options])
    return done.exit_code, done.output


@needs_nvrtc
@pytest.mark.soak
def test_the_whole_ladder_goes_past_three_broken_rungs(tmp_path: Path) -> None:
    out = tmp_path / "t.json"
    status, said = climb(out, "--backend=ptx", "--seeded=hang,fault,stuck")
    assert status == 1, said
    found = read(out)
    assert found.complete
    states = {each.name: each.state for each in found.rungs}
    assert list(states) == list(facts())
    odd = {
        "seeded-hang": "hung",
        "seeded-fault": "faulted",
        "seeded-stuck": "gave up",
    }
    assert states == dict.fromkeys(states, "agrees") | odd


@needs_nvrtc
def test_a_broken_rung_and_a_whole_one(tmp_path: Path) -> None:
    out = tmp_path / "t.json"
    status, said = climb(out, "--backend=ptx", "--only=alloc", "--seeded=fault")
    assert status == 1, said
    whole, broken = read(out).rungs
    assert (whole.state, whole.how) == ("agrees", "emulated")
    assert broken.state == "faulted"
    assert "st.global.b32" in broken.detail


@needs_nvrtc
def test_a_rung_that_never_ends_is_ended() -> None:
    outcome = ladder.attempt("seeded-hang", "ptx", 3)
    assert (outcome.state, outcome.detail) == ("hung", "ended after 3 s")


@needs_nvrtc
def test_a_wait_that_gives_up_leaves_its_barriers() -> None:
    meta, _ = worker.run("seeded-stuck", "ptx")
    assert meta["state"] == "gave up"
    assert "CTA 0, thread 0, mbarrier 0x400, parity 0" in meta["detail"]
    # The first barrier awaits 1 arrival, the second 3; nobody came.
    words = meta["detail"].split("64 bits: ")[1].split()
    assert words[:2] == ["7ffff800001ffffe", "7fffe800001ffffa"]


@needs_nvrtc
def test_a_deadlock_of_the_emulated_machine_is_a_rung_that_hung(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def deadlock(_: object) -> None:
        raise DeadlockError("nothing is in flight", [])

    monkeypatch.setattr(worker.OnPtx, "run", deadlock)
    meta, words = worker.run("alloc", "ptx")
    assert (meta["state"], words) == ("hung", {})


def test_a_dump_names_every_wait() -> None:
    words = np.zeros(1 + 8 * 38, np.uint32)
    assert dumped(words) == []
    words[0] = 2
    words[1:6] = 17, 3, 96, 0x408, 1
    words[7] = 0xFFFFFFFE
    said = dumped(words)
    assert said[0] == "2 waits gave up"
    assert "line 17: CTA 3, thread 96, mbarrier 0x408, parity 1" in said[1]
    assert "00000000fffffffe" in said[1]


def test_a_process_that_dies_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder.sys, "executable", "false")
    outcome = ladder.attempt("alloc", "ptx", 30)
    assert outcome.state == "faulted"
    assert "its process ended with 1" in outcome.detail


@needs_nvrtc
def test_ctrl_c_leaves_a_valid_part(tmp_path: Path) -> None:
    out = tmp_path / "t.json"
    command = [sys.executable, "-m", "fp4ref", "attest", "--backend=ptx"]
    command += ["--only=alloc", "--seeded=hang", "--limit=60", f"--out={out}"]
    # A test run in the background ignores the signal, and so would what it starts.
    climber = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until = time.monotonic() + 60
    while not out.exists() and time.monotonic() < until:
        time.sleep(0.1)
    os.kill(climber.pid, signal.SIGINT)
    assert climber.wait(timeout=20) == 130
    found = read(out)
    assert not found.complete
    assert [each.state for each in found.rungs] == ["agrees", "not run"]


# -- bad input ---------------------------------------------------------------------


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "t.json"
    out.write_text("mine")
    status, said = climb(out, "--backend=ptx", "--only=alloc")
    assert (status, out.read_text()) == (2, "mine")
    assert "is there already; name another --out, or use --force" in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--backend=gpu"], "--backend 'gpu': say ptx or device"),
        (["--backend=ptx", "--only=mma"], "no rung 'mma'; there are alloc, ld-st"),
        (["--backend=ptx", "--seeded=crash"], "no rung 'seeded-crash'"),
        (["--read=nothing.json"], "nothing.json: No such file"),
    ],
)
def test_bad_input_is_one_sentence(
    options: list[str], words: str, tmp_path: Path
) -> None:
    status, said = climb(tmp_path / "t.json", *options)
    assert status == 2
    assert words in said.replace("\n", " ")
    assert "Traceback" not in said


def refused(monkeypatch: pytest.MonkeyPatch, gpu: Gpu, said: str = "") -> str:
    monkeypatch.setattr(ladder, "find_gpu", lambda: gpu)
    monkeypatch.setattr(ladder, "nvrtc_version", lambda: "13.5")
    done = SimpleNamespace(returncode=1, stderr=said, stdout="")
    monkeypatch.setattr(ladder.subprocess, "run", lambda *a, **k: done)
    with pytest.raises(InputError) as found:
        Ladder("device")
    assert "fp4ref attest --backend ptx climbs the same ladder" in str(found.value)
    return str(found.value)


def test_each_gpu_that_cannot_is_said_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = Gpu(
        missing="the NVIDIA driver is for CUDA 12.4; this needs one for CUDA 13.0"
    )
    assert "CUDA 12.4" in refused(monkeypatch, old)
    assert "8.0; the rungs need 10.x" in refused(
        monkeypatch, Gpu("A100", (8, 0), "580")
    )
    assert "12.0; the rungs need 10.x" in refused(
        monkeypatch, Gpu("RTX", (12, 0), "580")
    )
    b200 = Gpu("NVIDIA B200", (10, 0), "580")
    busy = "cuDevicePrimaryCtxRetain: CUDA_ERROR_DEVICE_UNAVAILABLE: the GPU is busy"
    assert "the GPU is busy" in refused(monkeypatch, b200, busy)
    full = "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY: the GPU has too little free memory"
    assert "too little free memory" in refused(monkeypatch, b200, full)


def test_no_compiler_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "nvrtc_version", lambda: None)
    with pytest.raises(InputError, match=r"NVRTC is not installed; run: pip install"):
        Ladder("ptx")


def test_a_card_asks_each_rung_as_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "find_gpu", lambda: Gpu("card", (9, 0), "580"))
    monkeypatch.setattr(ladder, "nvrtc_version", lambda: "13.5")
    monkeypatch.setattr(ladder, "attempt_check", lambda _: {"sm": 1980})
    hopper = Ladder("device")
    assert {name: hopper.how(each) for name, each in facts().items()} == {
        name: each.on_hopper for name, each in facts().items()
    }
    told = hopper.answer(facts()["alloc"])
    assert (told.state, told.how) == ("cannot", "")
    assert told.detail == "sm_90 has no TMEM"
    monkeypatch.setattr(ladder, "find_gpu", lambda: Gpu("card", (10, 0), "580"))
    blackwell = Ladder("device")
    assert {blackwell.how(each) for each in facts().values()} == {"measured"}


# -- what is asked -----------------------------------------------------------------


def test_the_seeded_rungs_are_climbed_only_when_named() -> None:
    assert not any(each.seeded for each in rungs())
    assert [each.name for each in rungs(["cp"], ["fault"])] == ["cp", "seeded-fault"]
    assert len(rungs((), ["hang"])) == len(rungs()) + 1


def test_the_list_says_what_each_rung_proves() -> None:
    done = CliRunner().invoke(app, ["attest", "--list", "--json"])
    listed = json.loads(done.output)
    assert [each["name"] for each in listed] == list(facts())
    assert all(each["proves"] for each in listed)
    said = CliRunner().invoke(app, ["attest", "--list"], terminal_width=200).output
    assert "cannot: sm_90 has no TMEM" in " ".join(said.split())
