"""The page of the epilogue's builder draws what the builder says."""

from __future__ import annotations

import re

import epilogue_builder as page


def test_the_parts_of_the_picture_are_all_of_the_storage() -> None:
    storage = page.built(page.EXAMPLE_72B).storage_nbytes
    assert sum(nbytes for _, nbytes in page.parts()) == storage == 67_584
    assert f"epilogue storage, {storage:,} bytes" in page.picture()


def test_every_stage_holds_c_and_then_an_eighth_of_it() -> None:
    assert page.picture().count("C: 16,384 bytes") == 4
    assert page.picture().count("then D: 2,048 bytes") == 4


def test_every_rule_is_in_both_columns() -> None:
    text = page.rules()
    for rules in page.RULES.values():
        assert all(each in text for each in rules)


def test_the_table_has_the_figures_of_document_001() -> None:
    rows = dict(re.findall(r"- (\w+)\n  - 001: (.*?); 72b: ", page.page()))
    assert rows["fragment_size"] == "16"
    assert rows["transaction_nbytes"] == "4,096"
    assert rows["epilogue_tile"] == "`(64,32)`"
