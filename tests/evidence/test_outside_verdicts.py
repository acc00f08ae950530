"""What other people say of small programs, and the machine; one program a case."""

from __future__ import annotations

import pytest
from outside_verdicts import PROGRAMS

from fp4ref.evidence.fidelity import RULES, of_machine, unwitnessed


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_machine_says_what_the_authors_say(name):
    """What it decides otherwise is listed, and still so."""
    program = PROGRAMS[name]
    assert set(program.otherwise) <= set(program.says)
    for variant, says in program.says.items():
        same = program.verdict(variant) == says
        assert same is (variant not in program.otherwise), variant


def test_programs_have_both_verdicts_and_every_one_is_a_witness_or_guards_one():
    said = [says for each in PROGRAMS.values() for says in each.says.values()]
    assert said.count("error") > 40
    assert said.count("clean") > 40
    assert len({program.source for program in PROGRAMS.values()}) > 35
    named = set(of_machine().values())
    seen = {
        name for name in PROGRAMS for end in ("", ", no search") if name + end in named
    }
    assert len(seen) >= 15
    assert len(RULES) > len(named)


def test_nine_in_ten_have_a_witness_and_the_others_say_why_not():
    found, why = of_machine(), unwitnessed()
    assert len(found) - len(why) >= 0.9 * len(found)
    assert set(why) == {id for id, witness in found.items() if not witness}
    assert len(set(why.values())) <= 6
    assert "not looked for yet" not in why.values()
