"""launch_arguments: the arguments of a whole tree, by slot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fp4ref.errors import InputError
from fp4ref.gemm.fusion.arguments import Argument, Shape
from fp4ref.gemm.fusion.node import Node
from fp4ref.gemm.params import Field
from fp4ref.hardware.global_memory import GlobalMemory


def arguments_of(tree: Node) -> dict[str, Argument]:
    """Return the arguments of a tree's nodes by slot, in order of evaluation."""
    return {each.slot: each for node in tree.walk() for each in node.arguments}


def fields_of(tree: Node) -> tuple[Field, ...]:
    """Return the fields of a tree's arguments in a kernel's parameter block."""
    return tuple(each.field for each in arguments_of(tree).values())


def place(
    tree: Node, gmem: GlobalMemory, given: Mapping[str, Any], shape: Shape
) -> dict[str, Any]:
    """Upload what the tree reads, and make room for what it writes; values by slot.

    Raises
    ------
    InputError
        Something is missing or misshaped, or nothing takes it.
    """
    require_known(tree, given)
    wanted = arguments_of(tree)
    return {
        slot: each.place(gmem, given.get(each.name), shape)
        for slot, each in wanted.items()
    }


def require_known(tree: Node, given: Mapping[str, Any]) -> None:
    """Raise `InputError` for an argument that no node takes."""
    names = sorted({each.name for each in arguments_of(tree).values()})
    for name in given:
        if name not in names:
            takes = ", ".join(names) or "nothing"
            raise InputError(f"arguments: {name!r:.60}; this kernel takes {takes}")


def results(
    tree: Node, gmem: GlobalMemory, values: Mapping[str, Any], shape: Shape
) -> dict[str, Any]:
    """Return what the tree's nodes left, by the user's name."""
    found = {
        each.name: each.result(gmem, values[slot], shape)
        for slot, each in arguments_of(tree).items()
    }
    return {name: value for name, value in found.items() if value is not None}
