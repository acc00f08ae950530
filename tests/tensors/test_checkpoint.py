"""checkpoint: conventions by their names, and the faults that users report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from checkpoints import compressed, modelopt, quantised, weights, write

from fp4ref.errors import InputError
from fp4ref.files.array_file import UnreadableFile
from fp4ref.tensors.checkpoint import Checkpoint

Q = quantised()
UP, GATE = "model.layers.0.mlp.up_proj", "model.layers.0.mlp.gate_proj"


def opened(tmp_path: Path, tensors: dict[str, Any]) -> Checkpoint:
    return Checkpoint(write(tmp_path / "model.safetensors", tensors))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_floats_are_read_as_they_are(tmp_path: Path, dtype: str) -> None:
    w = weights().astype(getattr(ml_dtypes, dtype, dtype))
    weight = opened(tmp_path, {"a.bias": w[0], "a.weight": w}).load("a.weight")
    assert weight.values.dtype.name == dtype
    assert (weight.values.view(np.uint8) == w.view(np.uint8)).all()
    assert (weight.quantised, weight.warnings) == (None, ())


@pytest.mark.parametrize(
    ("store", "name"), [(modelopt, "weight"), (compressed, "weight_packed")]
)
def test_nvfp4_is_read_in_its_own_convention(
    tmp_path: Path, store: Any, name: str
) -> None:
    weight = opened(tmp_path, store(UP, Q)).load(f"{UP}.{name}")
    q = weight.quantised
    assert q is not None
    assert (q.codes == Q.codes).all()
    assert (q.scales == Q.scales).all()
    assert weight.warnings == ()
    error = np.abs(weight.values - weights())
    assert error.max() < 0.02 * 0.5
    assert list(Checkpoint(tmp_path).layers) == [f"{UP}.{name}"]


def test_a_sharded_checkpoint_is_one(tmp_path: Path) -> None:
    write(tmp_path / "m-1.safetensors", modelopt(UP, Q))
    write(tmp_path / "m-2.safetensors", {"norm.weight": weights()})
    where = dict.fromkeys(modelopt(UP, Q), "m-1.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(
        json.dumps({"weight_map": where | {"norm.weight": "m-2.safetensors"}})
    )
    for path in (index, tmp_path):
        checkpoint = Checkpoint(path)
        assert set(checkpoint.layers) == {f"{UP}.weight", "norm.weight"}
        assert (checkpoint.load("norm.weight").values == weights()).all()
        assert checkpoint.load(f"{UP}.weight").quantised is not None


@pytest.mark.parametrize(
    ("shard", "why"),
    [
        ("../m.safetensors", "in the same folder"),
        ("/etc/m.safetensors", "in the same folder"),
        ("m.bin", "in the same folder"),
        (7, "in the same folder"),
        ("absent.safetensors", "1 of 1 shards are not in its folder, absent.safet"),
        ("other.safetensors", "should be in other.safetensors, which lacks it"),
    ],
)
def test_an_index_names_only_shards_beside_it(
    tmp_path: Path, shard: object, why: str
) -> None:
    write(tmp_path / "other.safetensors", {"b.weight": weights()})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a.weight": shard}}))
    with pytest.raises(UnreadableFile, match=why):
        Checkpoint(index)


def test_shards_that_were_not_fetched_are_counted(tmp_path: Path) -> None:
    write(tmp_path / "m-1.safetensors", {"a.weight": weights()})
    where = {"a.weight": "m-1.safetensors"}
    where |= dict.fromkeys(("b.weight", "c.weight"), "m-2.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": where | {"d": "m-3.safetensors"}}))
    said = (
        "2 of 3 shards are not in its folder, m-2.safetensors first, and with them 3 "
        "tensors such as 'b.weight'"
    )
    with pytest.raises(UnreadableFile, match=said):
        Checkpoint(tmp_path)


# -- faults that users report --------------------------------------------------------


def test_a_divisor_under_the_multipliers_name_is_named(tmp_path: Path) -> None:
    tensors = modelopt(UP, Q)
    tensors[f"{UP}.weight_scale_2"] = np.float32(Q.global_scale)
    with pytest.warns(UserWarning, match="the scale is the inverse"):
        weight = opened(tmp_path, tensors).load(f"{UP}.weight")
    (said,) = weight.warnings
    assert "a divisor under the other convention's name" in said


def test_a_multiplier_under_the_divisors_name_is_named(tmp_path: Path) -> None:
    tensors = compressed(UP, Q)
    tensors[f"{UP}.weight_global_scale"] = np.array([1 / Q.global_scale], np.float32)
    with pytest.warns(UserWarning, match="the scale is the inverse"):
        weight = opened(tmp_path, tensors).load(f"{UP}.weight_packed")
    assert "a multiplier under the other convention's name" in weight.warnings[0]


def test_unequal_global_scales_of_fused_layers_are_named(tmp_path: Path) -> None:
    other = quantised(seed=1)
    checkpoint = opened(tmp_path, modelopt(UP, Q) | modelopt(GATE, other))
    (said,) = checkpoint.load(f"{UP}.weight").warnings
    assert "model.layers.0.mlp: layers that are served as one have unequal" in said
    equal = opened(tmp_path, modelopt(UP, Q) | modelopt(GATE, Q))
    assert equal.load(f"{UP}.weight").warnings == ()


def refused(tmp_path: Path, tensors: dict[str, Any], name: str) -> str:
    checkpoint = opened(tmp_path, tensors)
    with pytest.raises(InputError) as caught:
        checkpoint.load(name)
    assert name in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ("weight_scale_2", "weight_scale_2 is absent"),
        ("weight_scale", "weight_scale is absent"),
    ],
)
def test_an_absent_scale_is_named(tmp_path: Path, part: str, why: str) -> None:
    tensors = modelopt(UP, Q)
    del tensors[f"{UP}.{part}"]
    assert why in refused(tmp_path, tensors, f"{UP}.weight")


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        ((32, 2), "half of the scales; NVFP4 needs (32, 4)"),
        ((128, 4), "the padded 128x4 layout"),
        ((512,), "the padded 128x4 layout"),
        ((4, 32), "NVFP4 needs (32, 4), one for 16 elements"),
    ],
)
def test_scales_of_another_size_are_named(
    tmp_path: Path, shape: tuple[int, ...], why: str
) -> None:
    tensors = modelopt(UP, Q)
    tensors[f"{UP}.weight_scale"] = np.ones(shape, ml_dtypes.float8_e4m3fn)
    assert why in refused(tmp_path, tensors, f"{UP}.weight")


@pytest.mark.parametrize("byte", [0x7F, 0xFF, 0x81])
def test_a_scale_that_is_nan_or_negative_is_named(tmp_path: Path, byte: int) -> None:
    tensors = modelopt(UP, Q)
    scales = Q.scales.copy()
    scales[3, 2] = byte
    tensors[f"{UP}.weight_scale"] = scales.view(ml_dtypes.float8_e4m3fn)
    said = refused(tmp_path, tensors, f"{UP}.weight")
    assert f"weight_scale[3, 2] is 0x{byte:02X}" in said


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf])
def test_a_global_scale_is_positive_and_finite(tmp_path: Path, scale: float) -> None:
    tensors = modelopt(UP, Q) | {f"{UP}.weight_scale_2": np.float32(scale)}
    assert "need a positive number" in refused(tmp_path, tensors, f"{UP}.weight")


@pytest.mark.parametrize(
    ("part", "value", "why"),
    [
        ("weight_scale_2", np.ones(3, np.float32), "need one F32 number"),
        ("weight_scale_2", np.float16(1), "need one F32 number"),
        ("weight_scale", np.ones((32, 4), np.uint8), "NVFP4 has F8_E4M3"),
        ("weight_global_scale", np.float32(1), "belongs to the other convention"),
    ],
)
def test_parts_of_another_type_are_named(
    tmp_path: Path, part: str, value: Any, why: str
) -> None:
    tensors = modelopt(UP, Q) | {f"{UP}.{part}": value}
    assert why in refused(tmp_path, tensors, f"{UP}.weight")


def test_codes_that_became_floats_are_named(tmp_path: Path) -> None:
    tensors = {"a.weight": Q.packed().astype(np.float32)}
    (said,) = opened(tmp_path, tensors).load("a.weight").warnings
    assert "codes or packed bytes that became floats" in said


def test_a_layer_that_stayed_in_floats_is_named(tmp_path: Path) -> None:
    left = {"model.layers.7.mlp.up_proj.weight": weights(seed=3)}
    other = {"model.layers.7.mlp.down_proj.weight": weights(seed=4)}
    checkpoint = opened(tmp_path, modelopt(UP, Q) | left | other)
    (said,) = checkpoint.load("model.layers.7.mlp.up_proj.weight").warnings
    assert f"a layer of its kind ({UP}.weight) is NVFP4: it was left out" in said
    assert checkpoint.load("model.layers.7.mlp.down_proj.weight").warnings == ()
    more = modelopt("model.layers.3.mlp.up_proj", Q)
    (said,) = (
        opened(tmp_path, modelopt(UP, Q) | left | more)
        .load("model.layers.7.mlp.up_proj.weight")
        .warnings
    )
    assert f"2 layers of its kind ({UP}.weight, ...) are NVFP4" in said


def test_what_cannot_be_quantised_says_why(tmp_path: Path) -> None:
    checkpoint = opened(
        tmp_path,
        {
            "norm.weight": np.ones(64, np.float32),
            "odd.weight": np.ones((4, 24), np.float32),
            "ids": np.ones((4, 32), np.int64),
        },
    )
    said = {name: layer.why_not for name, layer in checkpoint.layers.items()}
    assert "a weight is a matrix" in said["norm.weight"]
    assert "no multiple of 16" in said["odd.weight"]
    assert "I64 is no float" in said["ids"]
    with pytest.raises(InputError, match=r"no weight 'x'; it has norm.weight, odd"):
        checkpoint.load("x")
