"""cute_facts: descriptors, registers and shapes are as CuTe's headers have them."""

from __future__ import annotations

import cute_facts
import pytest

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("question", cute_facts.QUESTIONS, ids=lambda q: q.__name__)
def test_the_machine_has_it_as_cute_has_it(tools, question):
    assert question(tools) == []


def test_both_answers_are_among_the_questions(tools):
    for name, refused in cute_facts.refused_shapes(tools).items():
        assert 0 < len(refused) < len(cute_facts.SHAPES), name
    assert 0 < len(cute_facts.refused_clusters(tools)) < len(cute_facts.CLUSTERS)


def test_a_field_in_another_place_is_found(tools, monkeypatch):
    fields, _ = cute_facts.printed(tools)
    scaled = fields["Scaled"]
    swapped = scaled | {"a_sf_id_": scaled["b_sf_id_"], "b_sf_id_": scaled["a_sf_id_"]}
    monkeypatch.setitem(fields, "Scaled", swapped)
    assert cute_facts.instruction_fields(tools)
