"""fp4ref triage: dumps on disk, statuses and sentences."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import wrong_dumps as made
from typer.testing import CliRunner

from fp4ref import oracle
from fp4ref.commands import app
from fp4ref.layout import swizzle_scales

A, B = made.operand(7, 130, 512, None), made.operand(8, 140, 512, None)
GOOD = oracle.expected(A, B).d
ARRAYS = {"a": A.codes, "sfa": A.scales, "b": B.codes, "sfb": B.scales, "d": GOOD}


def said(*words: str):
    result = CliRunner().invoke(app, ["triage", *words])
    return result.exit_code, result.stdout, " ".join(result.stderr.split())


def save(folder: Path, **changed: np.ndarray | None) -> str:
    arrays = {k: v for k, v in (ARRAYS | changed).items() if v is not None}
    np.savez(folder / "dump.npz", **arrays)
    return str(folder / "dump.npz")


def test_a_right_dump_is_status_0(tmp_path: Path) -> None:
    code, out, _ = said(save(tmp_path))
    assert code == 0
    assert "right: every one as the model has it" in out


def test_a_wrong_one_is_status_1_with_its_name(tmp_path: Path) -> None:
    swapped = made.with_(
        A, codes=A.codes.reshape(130, -1, 2)[..., ::-1].reshape(130, -1)
    )
    code, out, _ = said(save(tmp_path, d=oracle.expected(swapped, B).d))
    assert code == 1
    assert "nibbles swapped (A or B)\n  explains" in out
    code, out, _ = said(save(tmp_path, d=GOOD + np.float32(1)), "--json")
    assert code == 1
    assert json.loads(out)["verdict"] == "none of these"


def test_a_folder_packed_codes_flat_scales_and_global_scales(tmp_path: Path) -> None:
    a, b = made.with_(A, global_scale=4.0), made.with_(B, global_scale=0.5)
    arrays = {
        **{"a_packed": a.packed(), "sfa": swizzle_scales(a.scales)},
        **{"b": b.codes, "sfb": b.scales, "d": oracle.expected(a, b).d},
        **{"global_a": np.float32(0.25), "global_b": np.float32([2])},
    }
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    path = str(tmp_path)
    code, out, _ = said(path, "--layout", "128x4", "--convention", "decode")
    assert (code, "right" in out) == (0, True)
    code, out, _ = said(path, "--layout", "128x4", "--convention", "encode")
    assert (code, "global scale (" in out) == (1, True)
    code, _, sentence = said(path, "--layout", "128x4")
    assert code == 2
    assert "say --convention encode" in sentence


@pytest.mark.parametrize(
    ("changed", "words", "sentence"),
    [
        ({"d": GOOD[:5]}, (), "d has shape (5, 140); a and b give (130, 140)"),
        ({"d": None}, (), "has no d, the dumped result"),
        ({"sfa": None}, (), "need a or a_packed, and sfa; it has"),
        ({"d": GOOD.astype(np.float64)}, (), "d is float64, which does not tell"),
        ({"d": GOOD.astype(np.int32)}, ("--output", "f32"), "d is int32; f32 takes"),
        ({"d": np.zeros((0, 0), "f4")}, (), "d has shape (0, 0)"),
        ({"a": A.codes[:, :100]}, (), "codes of shape (130, 100)"),
        ({"a": A.codes.astype("f4")}, (), "a and sfa: codes"),
        ({"sfa": A.scales[:, :7]}, (), "scales of shape (130, 7)"),
        ({"sfa": A.scales.ravel()[:9]}, (), "take 4160 bytes"),
        ({"bias": np.zeros(3, "f4")}, (), "bias has shape (3,); need (140,)"),
        ({"c": np.zeros((130, 140), "f4")}, (), "c is given and beta is 0"),
        ({"alpha": np.float64(1e300)}, (), "alpha=1e+300"),
        ({"alpha": np.float32("nan")}, (), "alpha=nan"),
        ({"global_a": np.zeros(2)}, (), "global_a is float64 (2,); need one number"),
        ({"global_a": np.zeros(1)}, ("--convention", "decode"), "a positive number"),
        ({}, ("--layout", "swizzled"), "--layout: 'swizzled'; take"),
        ({}, ("--output", "fp32"), "config d_format: 'fp32'; take"),
        ({}, ("--activation", "tanh"), "config activation: 'tanh'; take"),
        ({}, ("--norm", "0"), "norm_constant: 0; need a positive number"),
        ({}, ("--splits", "0"), "config splits: 0"),
        ({"sfd": A.scales}, ("--output", "f32"), "sfd goes with an nvfp4 D"),
    ],
)
def test_bad_input_is_one_sentence(
    tmp_path: Path, changed: dict, words: tuple[str, ...], sentence: str
) -> None:
    code, _, found = said(save(tmp_path, **changed), *words)
    assert code == 2, found
    assert sentence in found


def test_what_is_no_dump_is_one_sentence(tmp_path: Path) -> None:
    text = tmp_path / "text.npz"
    text.write_text("no")
    for path, sentence in (
        (tmp_path / "none.npz", "no such file"),
        (text, "it is no zip archive"),
        (tmp_path, "has no a.npy, sfa.npy"),
    ):
        code, _, found = said(str(path))
        assert code == 2
        assert sentence in found
