"""json_values: what is planned or asked, in values that JSON has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from fp4ref.gemm.fusion.node import Node


def json_values(value: Any) -> Any:
    """Return tables as lists, records as objects, members of an enum by name.

    A formula is its C++ type.
    """
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Node):
        return repr(value)
    if is_dataclass(value):
        return {
            each.name: json_values(getattr(value, each.name)) for each in fields(value)
        }
    if isinstance(value, Mapping):
        return {name: json_values(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [json_values(each) for each in value]
    return value
