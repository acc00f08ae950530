"""fp4ref epilogue: every value with its reason, and words for what cannot be."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from fp4ref.commands import app
from fp4ref.gemm.epilogue_builder import EpilogueRequest, build_epilogue


def asked(*words: str) -> tuple[int, str]:
    wide = {"COLUMNS": "400"}  # a row of the table is one line
    result = CliRunner().invoke(app, ["epilogue", *words], env=wide)
    return result.exit_code, result.output


def test_every_value_is_printed_with_its_reason_and_its_source() -> None:
    status, text = asked("--c", "f32", "--d", "nvfp4")
    assert status == 0
    why = build_epilogue(
        EpilogueRequest(arch="sm100", tile=(128, 128, 256), c="f32", d="nvfp4")
    ).why
    assert all(name in text for name in why)
    assert "67,584" in text
    assert all(f"{each.sentence} ({each.source})" in text for each in why.values())


def test_json_has_a_sentence_and_a_source_for_each_value() -> None:
    status, text = asked("--c", "f32", "--d", "nvfp4", "--json")
    assert status == 0
    values = json.loads(text)["values"]
    assert values["stages_c"]["value"] == 4
    for each in values.values():
        assert set(each) == {"value", "why", "source"}
        assert all(str(part) for part in each.values())
        assert (
            ".inl" in each["source"]
            or ".hpp" in each["source"]
            or ("builders" in each["source"])
        )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tile", "128,128"], "--tile '128,128': 3 whole numbers"),
        (["--tile", "128,128,x"], "3 whole numbers"),
        (["--tile", "9" * 40 + ",1,1"], "far more than a tile has"),
        (["--tile", "5000,128,64"], "tile: 5000; need a whole number"),
        (["--cluster", "17,1"], "cluster: 17"),
        (["--epilogue-tile", ""], "--epilogue-tile '': 2 whole numbers"),
        (["--align-d", "0"], "align_d: 0"),
        (["--d", "void"], "SM100's epilogue needs the type of D"),
        (["--d", "nvfp4", "--operation", "LinCombEltAct"], "makes no scales"),
        (["--operation", "Softmax"], "'Softmax'; take 'ScaledAcc'"),
        (["--operation", "BinaryMask"], "'BinaryMask'; take 'ScaledAcc'"),
    ],
    ids=str,
)
def test_what_cannot_be_is_said_in_words(words: list[str], said: str) -> None:
    status, text = asked(*words)
    assert status == 2
    assert said in " ".join(text.split())
    assert "Traceback" not in text


def test_a_refusal_names_the_nearest_subtile() -> None:
    status, text = asked(
        *("--arch", "sm90", "--tile", "128,256,64", "--epilogue-tile", "64,60"),
        *("--schedule", "TmaWarpSpecializedCooperative"),
    )
    assert status == 2
    assert '"Unsupported tile shape"' in text
    assert "The nearest is 128,64" in text
