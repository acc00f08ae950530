"""fp4ref: its names are all there, and importing it imports none of their modules."""

from __future__ import annotations

import subprocess
import sys

import pytest

import fp4ref


def after(code: str) -> set[str]:
    """Return the modules of a process that ran `code`."""
    code = f"import sys\n{code}\nprint(*sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_imports_neither_the_executor_nor_numpy() -> None:
    found = after("import fp4ref")
    assert {each for each in found if each.startswith("fp4ref")} == {"fp4ref"}
    assert not found & {"numpy", "numba", "typer"}


def test_a_product_needs_no_executor_and_check_does() -> None:
    found = after("import fp4ref\nfp4ref.quantize\nfp4ref.matmul")
    assert "fp4ref.tensors.product" in found
    assert not {each for each in found if each.startswith("fp4ref.ptx")}
    assert "fp4ref.ptx.run.loader" in after("from fp4ref import check\nassert check")


@pytest.mark.parametrize("name", fp4ref.__all__)
def test_each_name_is_what_it_says(name: str) -> None:
    found = getattr(fp4ref, name)
    assert found.__name__.rpartition(".")[2] == name
    assert name == "oracle" or callable(found)
    assert name in dir(fp4ref)


def test_a_room_is_imported_when_it_is_asked_for() -> None:
    assert "fp4ref.layout" in after("import fp4ref\nfp4ref.layout.__doc__")


@pytest.mark.parametrize("name", ["no_such_thing", "_private"])
def test_another_name_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
        getattr(fp4ref, name)
