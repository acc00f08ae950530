"""fp4ref plan: every number with its reason, and every broken rule."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from fp4ref import GemmConfig, plan
from fp4ref.commands import app


def asked(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["plan", *words])
    return result.exit_code, result.output


def test_every_value_and_ring_is_printed_with_its_reason() -> None:
    status, text = asked("tile_n=64", "d_format=bf16")
    assert status == 0
    p = plan(GemmConfig.nvfp4(tile_n=64, d_format="bf16"))
    words = " ".join(text.split())
    assert f"most_stages {p.most_stages}" in words
    assert all(name in text for name in ("stage_tx_bytes", "mainloop", "throttle"))
    assert f"{p.smem.end:,} bytes of shared memory, {p.tmem.end} TMEM columns" in words


def test_json_has_the_same_values() -> None:
    status, text = asked("--example", "72b", "--json")
    assert status == 0
    found = json.loads(text)
    p = plan(GemmConfig.example_72b())
    assert found["values"]["mainloop_stages"]["value"] == p.mainloop_stages == 4
    assert found["values"]["most_stages"]["why"] == p.why["most_stages"].sentence
    assert found["smem"] == {**p.smem, "end": p.smem.end}
    assert [ring["name"] for ring in found["rings"]] == [r.name for r in p.rings]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tile_n=96", "d_stages=0"], ["tile_n=96", "d_stages=0"]),
        (["tile=64"], ["'tile=64': write name=value; names are"]),
        (["stages"], ["'stages': write name=value"]),
        (["alpha=2"], ["'alpha=2': alpha is an argument of the launch"]),
        (["beta=1e400"], ["beta=inf: a number that is finite"]),
        (["stages=" + "9" * 6000], ["stages"]),
        (["--example", "70"], ["known is 72b"]),
    ],
    ids=str,
)
def test_what_cannot_be_is_said_in_words(words: list[str], said: list[str]) -> None:
    status, text = asked(*words)
    assert status == 2
    for each in said:
        assert each in text
    assert "Traceback" not in text


def test_a_scale_type_is_a_word() -> None:
    assert asked("sfd_format=UE8M0")[0] == 0
    assert asked("sfd_format=e3")[0] == 2
