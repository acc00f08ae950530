"""smoke: the ladder's steps, each of one idea, and an exit status that can fail."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from fp4ref.commands import app
from fp4ref.evidence import oracle
from fp4ref.gemm.ladder import ladder
from fp4ref.gemm.plan.rules import broken


def test_the_steps_are_legal_and_differ():
    assert ladder()[0].asked == {}
    assert all(not broken(each.config) for each in ladder())
    assert len({each.config for each in ladder()}) == len(ladder())
    assert all(each.idea.endswith(".") for each in ladder())


def test_one_step_is_right_in_every_bit():
    found = CliRunner().invoke(app, ["smoke", "plain", "--json"])
    assert found.exit_code == 0, found.output
    outcomes = json.loads(found.output)
    assert [each["backend"] for each in outcomes] == ["emulator", "ptx"]
    assert {each["wrong_bits"] for each in outcomes} == {0}
    assert {each["bits"] for each in outcomes} == {256 * 256 * 32}


def test_one_wrong_bit_is_exit_status_1(monkeypatch: pytest.MonkeyPatch):
    right = oracle.expected

    def wrong(*given, **options):
        found = right(*given, **options)
        d = found.d.copy()
        d.view(np.uint32)[-1, -1] ^= 1
        return replace(found, d=d)

    monkeypatch.setattr(oracle, "expected", wrong)
    given = ["smoke", "plain", "--backend", "emulator"]
    found = CliRunner().invoke(app, given)
    assert found.exit_code == 1
    assert "2,097,151 of 2,097,152 bits" in found.output
    assert "0 of 1 runs right" in found.output


@pytest.mark.parametrize("words", [["nothing"], ["plain", "--backend", "cuda"]])
def test_bad_input_is_exit_status_2(words):
    found = CliRunner().invoke(app, ["smoke", *words])
    assert found.exit_code == 2
