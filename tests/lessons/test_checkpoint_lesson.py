"""The made-up checkpoint of notebook 11, its mistakes, and its pictures."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from checkpoints import write

from fp4ref.errors import InputError
from fp4ref.lessons import made_up_checkpoint as made_up
from fp4ref.lessons.checkpoint_pictures import channel_picture, error_picture
from fp4ref.tensors.checkpoint import Checkpoint
from fp4ref.tensors.checkpoint_error import checkpoint_error
from fp4ref.tensors.layer_error import LayerError, layer_error, outliers


def test_a_file_has_the_bytes_that_others_write(tmp_path: Path) -> None:
    """`checkpoints.write` is the tests' own."""
    tensors = {
        "a": made_up.weights(4, 0),
        "b": made_up.weights(3, 1).astype(ml_dtypes.bfloat16),
        "c": np.arange(16, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn),
    }
    made_up.write(tmp_path / "ours", tensors)
    write(tmp_path / "theirs", tensors)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_the_checkpoint_is_small_sound_and_sharded(tmp_path: Path) -> None:
    checkpoint = Checkpoint(made_up.make(tmp_path))
    assert len(list(tmp_path.glob("*.safetensors"))) == 2
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 500_000
    kinds = {layer.kind for layer in checkpoint.layers.values()}
    assert kinds == {"float", "modelopt", "compressed_tensors", "other"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, layer in checkpoint.layers.items():
            if not layer.why_not:
                assert checkpoint.load(name).warnings == (), name
    found = outliers(checkpoint.load(made_up.O_PROJ).values)
    assert tuple(channel.k for channel in found) == made_up.OUTLIERS
    assert checkpoint.layers[made_up.QKV].shape[0] == sum(made_up.PARTS)


SAID = {
    "a divisor where the name says multiplier": "a divisor under the other",
    "layers that are served as one, scaled apart": "have unequal global scales",
    "half of the scales": "half of the scales; NVFP4 needs",
    "quantised twice": "codes or packed bytes that became floats",
    "left in float32": "it was left out of quantisation",
    "no global scale": "weight_scale_2 is absent",
}


@pytest.mark.filterwarnings("ignore:global_scale")
@pytest.mark.parametrize("mistake", made_up.MISTAKES)
def test_each_mistake_is_found_and_only_there(tmp_path: Path, mistake: str) -> None:
    checkpoint = Checkpoint(made_up.make_wrong(tmp_path, mistake))
    try:
        said = " ".join(checkpoint.load(made_up.WRONG).warnings)
    except InputError as refused:
        said = str(refused)
    assert SAID[mistake] in said
    others = [
        name
        for name, layer in checkpoint.layers.items()
        if name not in (made_up.WRONG, made_up.WRONG.replace("gate", "up"))
        and not layer.why_not
    ]
    assert others
    for name in others:
        assert checkpoint.load(name).warnings == ()


def test_there_are_six_mistakes() -> None:
    assert set(SAID) == set(made_up.MISTAKES)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[LayerError]:
    folder = made_up.make(tmp_path_factory.mktemp("made"))
    return checkpoint_error(Checkpoint(folder))


def test_the_picture_has_a_mark_for_every_recipe(found: list[LayerError]) -> None:
    page = error_picture(found)
    floats = [layer for layer in found if layer.errors]
    marks = re.findall(r"<circle|<polygon|<rect x=[^>]+width='9'", page.html)
    assert len(marks) == 4 + sum(len(layer.errors) for layer in floats)
    title = re.search("<title>(.+)</title>", page.html)
    assert title is not None
    for layer in floats:
        assert layer.best is not None
        short = layer.name.removeprefix("model.layers.").removesuffix(".weight")
        assert f"{short}: NVFP4" in title[1]
        assert f"least {100 * (layer.best.w or 0):.2f} %, {layer.best.recipe}" in (
            page.html
        )
    assert "Stored as NVFP4, so nothing to compare: 0.mlp.gate_proj" in page.text


def test_a_picture_of_nothing_to_compare_says_so(found: list[LayerError]) -> None:
    stored = [layer for layer in found if not layer.errors]
    assert "nothing to compare" in error_picture(stored).text
    zeros = layer_error("zeros", np.zeros((4, 32), np.float32), ["cutlass"])
    assert "zeros" in error_picture([zeros]).text


def test_channels_that_stand_out_are_named() -> None:
    w = made_up.weights(32, 0)
    assert channel_picture(w, outliers(w)).text.endswith("None stands out.")
    w[:, 255] *= 40
    page = channel_picture(w, outliers(w))
    assert "k 255 is" in page.text
    assert page.html.count("<rect") == 1 + made_up.K
