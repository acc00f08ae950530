"""transcript: what a card did, as it was recorded."""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.trace import Bytes


@dataclass(frozen=True)
class Transcript:
    """One recording.

    Attributes
    ----------
    meta
        Card, driver, date, digests of sources and calls, and the error with which a
        case ended, by name.
    """

    meta: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    @property
    def where(self) -> str:
        """Card, driver and date."""
        return "{card}, driver {driver}, {date}".format(**self.meta)

    @property
    def ptx(self) -> str:
        """What the sources compiled to."""
        return lzma.decompress(self.arrays["ptx"].tobytes()).decode()

    def output(self, case: str, name: str) -> Bytes:
        """One output of a case."""
        return self.arrays[f"{case}/{name}"]


@cache
def load(name: str) -> Transcript:
    """Return the recording of a probe, of ``tensor_map`` or of ``exhaustive``."""
    file = resources.files("fp4ref.data") / "transcripts" / f"{name}.npz"
    with file.open("rb") as stream, np.load(stream) as loaded:
        arrays = dict(loaded)
    return Transcript(json.loads(str(arrays.pop("meta"))), arrays)
