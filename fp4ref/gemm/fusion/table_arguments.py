"""table_arguments: a table of a launch, whose rows D's take in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fp4ref.arguments import require_array
from fp4ref.errors import InputError
from fp4ref.gemm.fusion.arguments import Argument, Shape, row_nbytes
from fp4ref.gemm.params import Kind
from fp4ref.hardware.global_memory import GlobalMemory


@dataclass(frozen=True)
class TableArgument(Argument):
    """Rows of N elements of BF16, as many as the user gives."""

    @property
    def sentence(self) -> str:
        """What it is."""
        return f"rows of N elements of bf16, {self.name}"

    def place(self, gmem: GlobalMemory, given: Any, shape: Shape) -> int:
        """Upload it, its rows padded to whole accesses."""
        table = _table(given, self.name, shape)
        padded = np.zeros((len(table), row_nbytes("bf16", shape[2])), np.uint8)
        padded[:, : 2 * shape[2]] = np.ascontiguousarray(table).view(np.uint8)
        return gmem.upload(self.slot, padded)


@dataclass(frozen=True)
class TableRowsArgument(Argument):
    """How many rows a table has."""

    kind = Kind.U32

    @property
    def sentence(self) -> str:
        """What it is."""
        return f"rows of the table {self.name}"

    def place(self, gmem: GlobalMemory, given: Any, shape: Shape) -> int:
        """Count them."""
        return len(_table(given, self.name, shape))


def _table(given: Any, name: str, shape: Shape) -> NDArray[Any]:
    """Return a table of P rows of N elements."""
    what = f"{name}: the tree takes bfloat16 (P, {shape[2]}) with a row or more"
    if given is None:
        raise InputError(f"{what}, and nothing was passed; pass it in arguments")
    table = require_array(given, name)
    if table.dtype == np.uint16:
        table = table.view(ml_dtypes.bfloat16)
    fits = table.ndim == 2 and len(table) > 0 and table.shape[1] == shape[2]
    if table.dtype != ml_dtypes.bfloat16 or not fits:
        raise InputError(f"{what}, and got {table.dtype} {table.shape}")
    return table
