"""microscope_page: one block through every recipe, in a page of its own.

The block is one of the made-up checkpoint of notebook 11 in which the recipes part; its
tensor is given by its largest magnitude.
"""

from __future__ import annotations

import numpy as np

from fp4ref import viz
from fp4ref.lessons.made_up_checkpoint import qkv_weights
from fp4ref.tensors.one_block import WAYS, look, whole_scale

_BACK = '<p><a href="quantisers.html">Back to recipes and checkpoints</a></p>'
_LOOKED_AT = 200
"""Blocks among which the one is chosen."""


def block() -> tuple[np.ndarray, float]:
    """Return the block with most different results, and its tensor's magnitude."""
    w = qkv_weights()
    largest = float(np.abs(w).max())
    scales = {name: whole_scale(way, largest=largest) for name, way in WAYS.items()}

    def results(x: np.ndarray) -> int:
        seen = [look(x, way, scales[name]) for name, way in WAYS.items()]
        return len({(s.scales.tobytes(), s.codes.tobytes()) for s in seen})

    blocks = list(w.reshape(-1, 16)[:_LOOKED_AT])
    return max(blocks, key=results), largest


def page() -> str:
    """Return the microscope's page."""
    x, largest = block()
    shown = viz.quantiser(x, recipe="modelopt", largest=largest, view="recipes")
    return shown.page().replace("</main>", f"{_BACK}</main>")
