"""layer_results: a folder with one file for each layer that was compared.

A file has the layer's table and a digest of all that the table follows from: values,
activations, recipes and this package's own code. A result whose digest differs is not
taken, nor is a file that is damaged; both are written anew.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from fp4ref.errors import InputError
from fp4ref.files.whole_file import cannot_write, check_target, write_text
from fp4ref.tensors.layer_error import Channel, LayerError, RecipeError

_FOLDERS: Final = ("tensors", "numerics")
_MOST_NAME: Final = 80


class LayerResults:
    """The folder; it is made if there is none.

    Raises
    ------
    InputError
        It cannot be made or written to.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(exist_ok=True)
        except FileExistsError:
            raise InputError(f"{folder} is a file; name a folder") from None
        except OSError as error:
            raise cannot_write(folder, error) from None
        check_target(folder / "layer.json")

    def path(self, name: str) -> Path:
        """Return a layer's file; a digest is in its name, since names are any text."""
        plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        return self.folder / f"{plain[-_MOST_NAME:]}-{digest[:12]}.json"

    def find(self, name: str) -> tuple[str, LayerError] | None:
        """Return the digest and the table of a layer, if they are there and whole."""
        try:
            held = json.loads(self.path(name).read_text("utf-8"))
            return str(held["inputs"]), _layer(held["layer"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def keep(self, inputs: str, layer: LayerError) -> None:
        """Write one layer, whole or not at all."""
        held = {"inputs": inputs, "layer": asdict(layer)}
        write_text(self.path(layer.name), json.dumps(held, indent=1) + "\n")


def digest_of(*parts: object) -> str:
    """Return a digest of arrays, texts and what else prints all that it is."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            said = f"{part.dtype} {part.shape}".encode()
            data: Any = np.ascontiguousarray(part).view(np.uint8).reshape(-1).data
        else:
            said, data = b"", repr(part).encode("utf-8", "surrogatepass")
        for each in (said, data):
            digest.update(len(each).to_bytes(8, "little"))
            digest.update(each)
    return digest.hexdigest()


@cache
def code_digest() -> str:
    """Return a digest of the code that the numbers follow from, NumPy's version too."""
    root = Path(__file__).parents[1]
    sources = [
        path for each in _FOLDERS for path in sorted((root / each).rglob("*.py"))
    ]
    tables = sorted((root / "data").glob("*.bin.gz"))
    texts = [path.read_bytes() for path in (*sources, *tables)]
    return digest_of(np.__version__, texts)


def _layer(held: dict[str, Any]) -> LayerError:
    """Return a table from its file; whatever is not as written raises."""
    n, k = held["shape"]
    errors = tuple(
        RecipeError(
            str(e["recipe"]), _number(e["w"]), _number(e["y"]), int(e["nan_blocks"])
        )
        for e in held["errors"]
    )
    outliers_w, outliers_x = (
        tuple(Channel(int(c["k"]), float(c["ratio"])) for c in held[which])
        for which in ("outliers_w", "outliers_x")
    )
    notes = tuple(map(str, held["notes"]))
    shape = (int(n), int(k))
    return LayerError(str(held["name"]), shape, errors, outliers_w, outliers_x, notes)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
