"""checkpoints: the weights of a checkpoint, and which can be used."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Final

from rich.console import Console

from fp4ref.commands.printing import print_json, print_table
from fp4ref.tensors.checkpoint import Checkpoint

_HEADINGS: Final = ("tensor", "shape", "stored as", "use")


def list_weights(path: Path, as_json: bool) -> None:
    """Print every weight, with the reason where it cannot be used."""
    layers = list(Checkpoint(path).layers.values())
    if as_json:
        print_json([asdict(layer) for layer in layers])
        return
    rows = []
    for layer in layers:
        stored = layer.dtype if layer.kind == "float" else f"{layer.dtype} {layer.kind}"
        shape = " x ".join(map(str, layer.shape)) or "one number"
        name = "".join(c if c.isprintable() else " " for c in layer.name)
        rows.append((name, shape, stored, layer.why_not or "yes"))
    print_table(Console(), _HEADINGS, rows)
    Console().print(f"{sum(not layer.why_not for layer in layers)} can be used")
