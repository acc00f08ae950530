"""recording: what the card gave, folded: corners in full, the rest as hashes of groups.

Many forms give the same outputs, such as a load from shared and from local memory. A
*stream* is one output of `COUNT` elements; each distinct one is kept once.
"""

from __future__ import annotations

import json
import lzma
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.trace import Bytes
from probes.forms.catalogue import Form
from probes.forms.inputs import COUNT, HEAD, make, mix

GROUP = 128
"""Neighbouring elements that share one hash of 16 bits."""


def hashes(stream: Bytes) -> NDArray[np.uint16]:
    """Return a hash of each `GROUP` elements: 16 bits of a sum of scattered words."""
    words = stream.view(np.uint64).reshape(COUNT // GROUP, -1)
    place = mix(np.arange(1, words.shape[1] + 1, dtype=np.uint64))
    with np.errstate(over="ignore"):
        total = mix(words ^ place).sum(axis=1, dtype=np.uint64)
    return (mix(total) >> np.uint64(48)).astype(np.uint16)


def head(stream: Bytes) -> Bytes:
    """Return the bytes of the first `HEAD` elements."""
    return stream[: stream.size // COUNT * HEAD]


def digest(form: Form) -> int:
    """CRC-32 over a form's kernel and its inputs."""
    return _crc_of_inputs(form.shape.inputs, zlib.crc32(form.text().encode()))


@cache
def _crc_of_inputs(kinds: tuple[str, ...], start: int) -> int:
    for array in make(kinds):
        start = zlib.crc32(array.tobytes(), start)
    return start


@dataclass(frozen=True)
class Recording:
    """What the card gave for every form.

    Attributes
    ----------
    meta
        Card, driver, date; ``lacking``: by form, what ptxas says for sm_90a;
        ``nowhere``: the same for those that sm_100a lacks too; ``faults``: by kernel,
        the error with which it ended.
    streams
        By form: its digest, then the stream of each output.
    heads, group_hashes
        Of every stream.
    """

    meta: dict[str, Any]
    streams: Mapping[str, tuple[int, ...]]
    heads: tuple[Bytes, ...]
    group_hashes: NDArray[np.uint16]

    def folded(self, place: int) -> tuple[bytes, bytes]:
        """Return head and hashes of a stream."""
        return self.heads[place].tobytes(), self.group_hashes[place].tobytes()

    def differences(self, form: Form, outputs: Mapping[str, Bytes]) -> list[str]:
        """Return one line for each output that is not as recorded."""
        found = []
        _, *places = self.streams[form.name]
        for name, place in zip(form.buffers, places, strict=True):
            stream, recorded = outputs[name], self.heads[place]
            width = stream.size // COUNT
            rows = (head(stream) != recorded).reshape(HEAD, width).any(axis=1)
            if rows.any():
                at = int(np.flatnonzero(rows)[0])
                mine, card = (
                    each[at * width : (at + 1) * width][::-1].tobytes().hex()
                    for each in (stream, recorded)
                )
                given = ", ".join(
                    f"{int(a[at]):#x}"
                    for a, kind in zip(
                        make(form.shape.inputs), form.shape.inputs, strict=True
                    )
                    if kind != "x128"
                )
                found.append(
                    f"{form.name}, {name}: {int(rows.sum())} corners, first {at}: "
                    f"({given}) gives {mine}, recorded {card}"
                )
            groups = hashes(stream) != self.group_hashes[place]
            if groups.any():
                first = int(np.flatnonzero(groups)[0]) * GROUP
                found.append(
                    f"{form.name}, {name}: {int(groups.sum())} groups, first at {first}"
                )
        return found


def pack(
    outputs: Mapping[str, tuple[int, list[tuple[bytes, bytes]]]], meta: dict[str, Any]
) -> dict[str, NDArray[Any]]:
    """Return the arrays of a recording.

    Parameters
    ----------
    outputs
        By form: its digest, and head and hashes of each output, as bytes.
    """
    places: dict[tuple[bytes, bytes], int] = {}
    streams = {
        name: (crc, *(places.setdefault(each, len(places)) for each in folded))
        for name, (crc, folded) in outputs.items()
    }
    text = json.dumps({"meta": meta, "streams": streams})
    every = b"".join(first for first, _ in places)
    return {
        "text": np.frombuffer(lzma.compress(text.encode()), np.uint8),
        "heads": np.frombuffer(lzma.compress(every), np.uint8),
        "head_nbytes": np.array([len(first) for first, _ in places], np.int32),
        "hashes": np.frombuffer(b"".join(h for _, h in places), np.uint16).reshape(
            len(places), COUNT // GROUP
        ),
    }


def unpack(path: Path) -> Recording:
    """Read a recording."""
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    text = json.loads(lzma.decompress(arrays["text"].tobytes()))
    every = np.frombuffer(lzma.decompress(arrays["heads"].tobytes()), np.uint8)
    ends = np.cumsum(arrays["head_nbytes"])
    return Recording(
        text["meta"],
        {name: tuple(numbers) for name, numbers in text["streams"].items()},
        tuple(np.split(every, ends[:-1])),
        arrays["hashes"],
    )


@cache
def recording() -> Recording:
    """Return the recording of the repository."""
    found = resources.files("fp4ref.data") / "transcripts" / "forms.npz"
    with resources.as_file(found) as path:
        return unpack(path)
