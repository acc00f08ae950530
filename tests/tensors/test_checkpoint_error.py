"""checkpoint_error: one table whoever had which layer; what is done is kept."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoints import modelopt, quantised, weights, write
from typer.testing import CliRunner

from fp4ref.commands import app
from fp4ref.errors import InputError
from fp4ref.fan_out import INSTALL
from fp4ref.tensors import checkpoint_error as module
from fp4ref.tensors import layer_results
from fp4ref.tensors.checkpoint import Checkpoint
from fp4ref.tensors.checkpoint_error import checkpoint_error, compare_layer
from fp4ref.tensors.layer_results import LayerResults

RECIPES = ["cutlass", "mx_floor"]


def layer(index: int) -> str:
    return f"model.layers.{index}.mlp.up_proj.weight"


def sharded(folder: Path, layers: int, n: int = 32, k: int = 64) -> Path:
    """A made-up checkpoint in three files."""
    folder.mkdir()
    where: dict[str, str] = {}
    for shard in range(3):
        file = f"m-{shard}.safetensors"
        mine = {layer(i): weights(n, k, seed=i) for i in range(shard, layers, 3)}
        write(folder / file, mine)
        where |= dict.fromkeys(mine, file)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": where}))
    return folder


def run(*arguments: object) -> tuple[int, str]:
    said = CliRunner().invoke(app, ["error", *map(str, arguments)])
    return said.exit_code, said.output


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The layers that are compared, and not taken from a folder."""
    names: list[str] = []
    real = module.layer_error

    def counted(name: str, *args: Any, **options: Any) -> Any:
        names.append(name)
        return real(name, *args, **options)

    monkeypatch.setattr(module, "layer_error", counted)
    return names


def test_a_second_run_takes_what_is_done(tmp_path: Path, compared: list[str]) -> None:
    path, kept = sharded(tmp_path / "c", 6), tmp_path / "kept"
    options = [path, "--recipe", "cutlass", "--json"]
    plain = run(*options)
    assert (plain[0], len(compared)) == (0, 6)
    assert run(*options, "--results", kept) == plain
    assert len(list(kept.iterdir())) == 6
    compared.clear()
    assert run(*options, "--results", kept) == plain
    assert compared == []
    LayerResults(kept).path(layer(4)).unlink()
    assert run(*options, "--results", kept) == plain
    assert compared == [layer(4)]


def test_ctrl_c_says_what_is_kept_and_a_second_run_goes_on(
    tmp_path: Path, compared: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, kept = sharded(tmp_path / "c", 6), tmp_path / "kept"
    options = [path, "--recipe", "cutlass", "--json"]
    counted = module.layer_error

    def stopped(name: str, *args: Any, **options: Any) -> Any:
        if len(compared) == 2:
            raise KeyboardInterrupt
        return counted(name, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(module, "layer_error", stopped)
        status, said = run(*options, "--results", kept)
    assert status != 0
    assert f"{kept} keeps 2 layers; the same command goes on" in said
    compared.clear()
    status, said = run(*options, "--results", kept)
    assert (status, len(compared)) == (0, 4)
    assert [layer["name"] for layer in json.loads(said)] == list(
        Checkpoint(path).layers
    )


def one_value(path: Path, tmp_path: Path) -> dict[str, Any]:
    w = weights(seed=4)
    w[3, 3] += 1
    shard = {layer(i): weights(seed=i) for i in (1, 4)}
    write(path / "m-1.safetensors", shard | {layer(4): w})
    return {}


def other_recipes(path: Path, tmp_path: Path) -> dict[str, Any]:
    return {"recipes": [*RECIPES, "modelopt"]}


def activations(path: Path, tmp_path: Path) -> dict[str, Any]:
    np.save(tmp_path / "x.npy", weights(8, 64, seed=9))
    return {"activations": tmp_path / "x.npy"}


@pytest.mark.parametrize(
    ("change", "again"),
    [(one_value, [4]), (other_recipes, "all"), (activations, "all")],
)
def test_results_of_something_else_are_not_taken(
    change: Any, again: Any, tmp_path: Path, compared: list[str]
) -> None:
    path, kept = sharded(tmp_path / "c", 6), tmp_path / "kept"
    options: dict[str, Any] = {"recipes": RECIPES, "results": kept}
    checkpoint_error(Checkpoint(path), **options)
    options |= change(path, tmp_path)
    compared.clear()
    found = checkpoint_error(Checkpoint(path), **options)
    wanted = range(6) if again == "all" else again
    assert compared == [
        name for name in Checkpoint(path).layers if name in map(layer, wanted)
    ]
    assert found == checkpoint_error(Checkpoint(path), **(options | {"results": None}))


def test_results_of_other_code_are_not_taken(
    tmp_path: Path, compared: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, kept = sharded(tmp_path / "c", 3), tmp_path / "kept"
    checkpoint_error(Checkpoint(path), recipes=RECIPES, results=kept)
    compared.clear()
    monkeypatch.setattr(module, "code_digest", lambda: "another")
    checkpoint_error(Checkpoint(path), recipes=RECIPES, results=kept)
    assert len(compared) == 3


def test_the_code_is_every_file_that_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    real = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda p: read.append(p) or real(p))
    layer_results.code_digest.__wrapped__()
    names = {f"{path.parent.name}/{path.name}" for path in read}
    assert {"tensors/quantize.py", "recipes/mx.py", "numerics/elements.py"} <= names
    assert "data/rcp_approx_sm90_delta.bin.gz" in names


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", "3", '{"inputs": 1, "layer": {"shape": 5}}', "\udc80"]
)
def test_a_damaged_result_is_written_anew(
    damage: str, tmp_path: Path, compared: list[str]
) -> None:
    path, kept = sharded(tmp_path / "c", 3), tmp_path / "kept"
    wanted = checkpoint_error(Checkpoint(path), recipes=RECIPES, results=kept)
    file = LayerResults(kept).path(layer(1))
    whole = file.read_bytes()
    file.write_bytes(damage.encode("utf-8", "surrogateescape"))
    compared.clear()
    assert checkpoint_error(Checkpoint(path), recipes=RECIPES, results=kept) == wanted
    assert compared == [layer(1)]
    assert file.read_bytes() == whole


def test_ctrl_c_leaves_whole_files_and_a_second_run_goes_on(
    tmp_path: Path, compared: list[str]
) -> None:
    path, kept = sharded(tmp_path / "c", 6), tmp_path / "kept"

    def stop(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"recipes": RECIPES, "results": kept}
    with pytest.raises(KeyboardInterrupt):
        checkpoint_error(Checkpoint(path), progress=stop, **options)
    assert [f.suffix for f in kept.iterdir()] == [".json"] * 2
    compared.clear()
    checkpoint_error(Checkpoint(path), **options)
    assert len(compared) == 4


def test_names_of_any_kind_are_files_in_the_folder(tmp_path: Path) -> None:
    names = ["../../up", "a/b", "a" * 300, "\N{GREEK SMALL LETTER ALPHA}", "a:b", "a_b"]
    path = write(tmp_path / "m.safetensors", dict.fromkeys(names, weights()))
    kept = tmp_path / "kept"
    found = checkpoint_error(Checkpoint(path), recipes=RECIPES, results=kept)
    assert [each.name for each in found] == names
    assert len(list(kept.iterdir())) == len(names)
    assert {each.name for each in tmp_path.iterdir()} == {"m.safetensors", "kept"}


def test_nvfp4_is_kept_with_its_note(tmp_path: Path) -> None:
    path = write(tmp_path / "m.safetensors", modelopt("a", quantised()))
    for _ in range(2):
        (found,) = checkpoint_error(Checkpoint(path), results=tmp_path / "kept")
        assert found.errors == ()
        assert "stored as NVFP4" in found.notes[-1]


def test_a_worker_of_another_version_refuses(tmp_path: Path) -> None:
    path = sharded(tmp_path / "c", 1)
    task = module.LayerTask(str(path), layer(0), None, None, 1, "other", "")
    with pytest.raises(InputError, match="another version of fp4ref"):
        compare_layer(task)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--results", "m"], "m is a file; name a folder"),
        (["--results", "no/such"], "no such folder; make it first"),
        (["--workers", "0"], "workers: 0"),
        (["--workers", "2", "--scheduler", "tcp://a:1"], "not both"),
    ],
)
def test_bad_options_have_status_two(
    options: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = sharded(tmp_path / "c", 1)
    (tmp_path / "m").touch()
    status, said = run(path, *options)
    assert (status, why in said) == (2, True), said
    status, said = run(*options[:2])
    assert (status, "go with a checkpoint" in said) == (2, True), said


@pytest.mark.soak
def test_four_workers_one_ended_give_the_bytes_of_one(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason=INSTALL)
    path = sharded(tmp_path / "c", 40, 256, 512)
    np.save(tmp_path / "x.npy", weights(33, 512, seed=99))
    options = {"activations": tmp_path / "x.npy"}
    ended: list[int] = []

    def end_one(done: int, total: int) -> None:
        if done == 10:
            process = multiprocessing.active_children()[0]
            assert process.pid is not None
            ended.append(process.pid)
            os.kill(process.pid, signal.SIGKILL)

    many, one = tmp_path / "many", tmp_path / "one"
    spread = checkpoint_error(
        Checkpoint(path), workers=4, progress=end_one, results=many, **options
    )
    assert ended
    assert spread == checkpoint_error(Checkpoint(path), results=one, **options)
    for file in one.iterdir():
        assert (many / file.name).read_bytes() == file.read_bytes()


@pytest.mark.soak
def test_ctrl_c_in_a_terminal_ends_all_processes(tmp_path: Path) -> None:
    """A terminal sends it to every process of the group."""
    pytest.importorskip("distributed", reason=INSTALL)
    path, kept = sharded(tmp_path / "c", 40, 256, 512), tmp_path / "kept"
    command = [sys.executable, "-m", "fp4ref", "error", str(path), "--workers", "2"]
    with subprocess.Popen(
        [*command, "--results", str(kept)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        while not kept.is_dir() or not list(kept.glob("*.json")):
            time.sleep(0.2)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")
    assert {file.suffix for file in kept.iterdir()} == {".json"}
    time.sleep(5)  # the last of them ends a moment later
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
