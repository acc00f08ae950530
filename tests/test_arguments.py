"""Every public function refuses a wrong argument by its name, and nothing else."""

from __future__ import annotations

import re
from typing import Any

import pytest
from argument_kinds import PUBLIC, RESULTS, name_of, parameters
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wrong_arguments import NOT, Public

import fp4ref
from fp4ref import layout, numerics, viz
from fp4ref.errors import InputError

CALLED_ALIKE = {"a": "A|a", "b": "B|b", "c": "C|c"}
"""Operands that a message may write as in the formula D = A @ B.T + C."""


def call(public: Public, arguments: dict[str, Any]) -> Any:
    """Call with a starred parameter in its place."""
    if "layouts" in arguments:
        return public.call(arguments["layouts"])
    return public.call(**arguments)


def refusal(public: Public, arguments: dict[str, Any]) -> str:
    """What the call is refused with; '' if it is taken."""
    try:
        call(public, arguments)
    except InputError as error:
        return str(error)
    return ""


def names(message: str, argument: str) -> bool:
    pattern = CALLED_ALIKE.get(argument, argument)
    return re.search(rf"(?<![\w'\"])({pattern})(?!\w)", message) is not None


@pytest.mark.parametrize("module", [fp4ref, numerics, layout, viz])
def test_every_public_function_is_in_the_table(module: Any) -> None:
    tabled = [public.call for public in PUBLIC]
    for name in module.__all__:
        assert name in RESULTS or getattr(module, name) in tabled, name


@pytest.mark.parametrize("public", PUBLIC, ids=name_of)
def test_every_argument_is_in_the_table(public: Public) -> None:
    left_out = {"progress", "title"}
    if not isinstance(public.call, layout.Layout):
        assert parameters(public) - left_out == set(public.kinds)


@pytest.mark.parametrize("public", PUBLIC, ids=name_of)
def test_a_good_call_is_taken(public: Public) -> None:
    call(public, public.good)


@pytest.mark.parametrize("public", PUBLIC, ids=name_of)
def test_a_wrong_argument_is_refused_by_its_name(public: Public) -> None:
    tried = 0
    for name, value, arguments in public.bad_calls():
        tried += 1
        message = refusal(public, arguments)
        assert names(message, name), (name, value, message or "taken")
    assert tried >= 15 * len(public.kinds) - 30


@settings(
    max_examples=40,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
@pytest.mark.parametrize("public", PUBLIC, ids=name_of)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_any_value_in_any_place_is_taken_or_refused(
    public: Public, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(public.kinds)))
    kind = data.draw(st.sampled_from(sorted(NOT)))
    value = data.draw(st.sampled_from(NOT[kind]))
    message = refusal(public, public.good | {name: value})
    assert not message or names(message, name), (name, value, message)
