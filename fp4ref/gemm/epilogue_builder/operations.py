"""operations: CUTLASS's named fusion operations, as far as the builder looks at them.

Source: CUTLASS ``epilogue/fusion/operations.hpp``; for the nodes that take shared
memory ``sm90_callbacks_tma_warpspecialized.hpp``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Operation:
    """A fusion operation.

    Attributes
    ----------
    takes_c
        Whether C is one of its inputs.
    activation
        Whether it has an activation.
    bias
        ``"row"`` for a bias of M elements, ``"column"`` for one of N.
    per_column_scales
        Whether alpha and beta are vectors of N elements.
    aux
        ``"out"`` or ``"in"`` where a second matrix is stored or loaded.
    block_scaled
        Whether it makes the scales of D's blocks.
    """

    name: str
    takes_c: bool = True
    activation: bool = False
    bias: str = ""
    per_column_scales: bool = False
    aux: str = ""
    block_scaled: bool = False


def _of(name: str) -> Operation:
    """Read what an operation has from its name, which CUTLASS builds from parts."""
    return Operation(
        name,
        takes_c=name != "ScaledAcc",
        activation="EltAct" in name,
        bias="column" if "ColBias" in name else "row" if "RowBias" in name else "",
        per_column_scales=name.startswith("PerCol"),
        aux="in" if "DeEltAct" in name else "out" if name.endswith("Aux") else "",
        block_scaled="BlockScaleFactor" in name,
    )


OPERATIONS = {
    name: _of(name)
    for name in (
        "ScaledAcc",
        "LinearCombination",
        "LinearCombinationGroupedWgrad",
        "LinCombEltAct",
        "LinCombPerRowBias",
        "LinCombPerColBias",
        "LinCombPerRowBiasEltAct",
        "LinCombPerColBiasEltAct",
        "LinCombPerRowBiasEltActAux",
        "LinCombPerColBiasEltActAux",
        "PerRowLinCombPerRowBiasEltAct",
        "PerColLinCombPerColBiasEltAct",
        "PerColResAddPerColBiasEltAct",
        "ScaledLinCombPerRowBiasEltAct",
        "ScaledLinCombPerColBiasEltAct",
        "ScaledLinCombPerRowBiasEltActAmaxAux",
        "ScaledLinCombPerColBiasEltActAmaxAux",
        "LinCombDeEltAct",
        "LinCombDeEltActDePerRowBias",
        "LinCombBlockScaleFactor",
        "LinCombEltActBlockScaleFactor",
        "LinCombPerRowBiasBlockScaleFactor",
        "LinCombPerColBiasBlockScaleFactor",
        "LinCombPerRowBiasEltActBlockScaleFactor",
        "LinCombPerColBiasEltActBlockScaleFactor",
    )
}
"""25 of CUTLASS's 26 operations, by name."""

READY = Operation("callbacks")
"""Callbacks that are built already: a tree of nodes, of which nothing is known."""

TOP_K = "LinCombTopKSoftmaxCol"
"""The 26th, which needs a whole row in one tile."""

HEAVY_ACTIVATIONS = ("gelu", "gelu_taylor", "silu", "sigmoid", "tanh")
ACTIVATIONS = (*HEAVY_ACTIVATIONS, "relu", "leaky_relu", "hardswish", "dgelu", "drelu")
"""Activations by name. Around a heavy one SM100 does not unroll the loop of subtiles.

Source: CUTLASS ``epilogue/thread/activation.h``, ``kIsHeavy``.
"""
