"""registry: every node that has a file in this folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from inspect import isabstract
from pkgutil import iter_modules
from typing import Any

from fp4ref.gemm.fusion.node import Node, Unary

_ROOM, _, _MYSELF = __name__.rpartition(".")


def _is_node(value: Any, module: str) -> bool:
    own = isinstance(value, type) and value.__module__ == module
    return own and issubclass(value, Node) and not isabstract(value)


def _found() -> Iterator[type[Node]]:
    for each in iter_modules(sys.modules[_ROOM].__path__):
        if each.name != _MYSELF:
            module = f"{_ROOM}.{each.name}"
            for value in vars(import_module(module)).values():
                if _is_node(value, module):
                    yield value


@cache
def nodes() -> Mapping[str, type[Node]]:
    """Return the nodes by class name."""
    return {node.__name__: node for node in _found()}


@cache
def activations() -> Mapping[str, type[Unary]]:
    """Return the nodes that a configuration can ask for as its activation, by name."""
    return {
        node.activation: node
        for node in nodes().values()
        if issubclass(node, Unary) and node.activation
    }
