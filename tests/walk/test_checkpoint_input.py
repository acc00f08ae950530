"""checkpoint_input: walk and error take a weight of a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from checkpoints import compressed, modelopt, quantised, weights, write
from typer.testing import CliRunner

from fp4ref.commands import app
from fp4ref.errors import InputError
from fp4ref.walk import checkpoint_problem, walk

Q = quantised()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    tensors = modelopt("a", Q) | compressed("b", Q)
    tensors |= {"c.weight": weights().astype(ml_dtypes.bfloat16), "bias": weights()[0]}
    return write(tmp_path / "model.safetensors", tensors)


def test_a_stored_weight_keeps_its_codes_in_the_machine(model: Path) -> None:
    np.save(model.parent / "x.npy", weights(6).reshape(2, 3, 64))
    problem = checkpoint_problem(model, "a.weight", model.parent / "x.npy")
    assert problem.sizes == (6, 32, 64)
    assert problem.quantised is not None
    assert (problem.quantised.codes == Q.codes).all()
    done = walk(problem, backend="emulator")
    assert done.report.ok
    assert done.report.quantisation["w global scale"] == problem.quantised.global_scale
    assert done.report.quantisation_error["w only"] < 1e-7  # values in float32
    assert any("keeps the codes and scales" in note for note in done.report.notes)


def test_floats_are_quantised(model: Path) -> None:
    problem = checkpoint_problem(model, "c.weight")
    assert problem.quantised is None
    assert problem.sizes == (128, 32, 64)
    assert problem.notes == (
        "x is random: name an .npy by --activations for real ones",
    )


def test_activations_that_do_not_fit_are_refused(model: Path) -> None:
    path = model.parent / "x.npy"
    for array, why in (
        (np.ones((4, 32), np.float32), r"the weight needs \(\.\.\., 64\)"),
        (np.ones(64, np.float32), "the weight needs"),
        (np.ones((4, 64)), "save float32 or float16"),
    ):
        np.save(path, array)
        with pytest.raises(InputError, match=why):
            checkpoint_problem(model, "c.weight", path)


def run(*arguments: str) -> tuple[int, str]:
    said = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})
    return said.exit_code, said.output


def test_without_a_tensor_the_weights_are_listed(model: Path) -> None:
    status, said = run("walk", "--checkpoint", str(model))
    assert status == 0
    for words in ("a.weight", "32 x 64", "NVFP4 modelopt", "a weight is a matrix"):
        assert words in said
    assert "3 can be used" in said
    status, said = run("walk", "--checkpoint", str(model), "--json")
    assert [each["name"] for each in json.loads(said)] == [
        *("a.weight", "b.weight_packed", "c.weight", "bias")
    ]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--checkpoint", "m", "--size", "1x1x32"], "one of a file, --size and"),
        (["--tensor", "a"], "go with --checkpoint"),
        (["--checkpoint", "absent.safetensors"], "no such file"),
    ],
)
def test_options_that_do_not_go_together(arguments: list[str], why: str) -> None:
    status, said = run("walk", *arguments)
    assert (status, why in said) == (2, True)


def test_a_walk_of_a_checkpoint(model: Path) -> None:
    status, said = run(
        *("walk", "--checkpoint", str(model), "--tensor", "b.weight_packed"),
        *("--no-kernel", "--trace", str(model.parent / "walk"), "--json"),
    )
    assert status == 0, said
    assert json.loads(said)["title"] == "b.weight_packed"
