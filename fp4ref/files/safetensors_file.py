"""safetensors_file: tensors of a .safetensors file, looked at before they are read.

    8 bytes     length of the header, little-endian
    header      JSON: name -> {"dtype", "shape", "data_offsets"}, and "__metadata__"
    the rest    the tensors' bytes, row-major, without gaps or overlaps

Nothing is executed and nothing is allocated before the header agrees with the bytes
that are there. The format is so small that reading it here is less than a dependency,
and lets every fault say what and where. Source: the safetensors README.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fp4ref.files.array_file import UnreadableFile, open_regular
from fp4ref.files.free_memory import require_memory

MOST_HEADER_NBYTES: Final = 100_000_000
"""The format's own bound."""

DTYPES: Final[Mapping[str, Any]] = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E8M0": ml_dtypes.float8_e8m0fnu,
    "I64": np.int64,
    "I32": np.int32,
    "I16": np.int16,
    "I8": np.int8,
    "U64": np.uint64,
    "U32": np.uint32,
    "U16": np.uint16,
    "U8": np.uint8,
    "BOOL": np.bool_,
}
"""Types that are read; any other is refused with the tensor's name."""

_FORMATS: Final = (
    (b"GGUF", "a GGUF file, whose blocks have their scales inside; convert it to "
     "safetensors, or unpack the codes and use nibble_order='split'"),
    (b"PK", "a zip, as torch.save writes: it may hold a pickle, which could run any "
     "code; convert it to safetensors"),
    (b"\x80", "a pickle, which could run any code; convert it to safetensors"),
    (b"\x89HDF", "an HDF5 file; convert it to safetensors"),
    (b"\x93NUMPY", "an .npy; name it by --activations, or save safetensors"),
    (b"version https://git-lfs", "a pointer of Git LFS; run git lfs pull"),
    (b"<", "a web page; the download went wrong"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stored:
    """What a header says of one tensor.

    Attributes
    ----------
    start, end
        Bytes of the file.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    path: Path
    start: int
    end: int

    def read(self) -> NDArray[Any]:
        """Read the tensor.

        Raises
        ------
        UnreadableFile
            The file is gone or has changed.
        InputError
            It does not fit into memory.
        """
        require_memory(
            2 * (self.end - self.start), f"{self.path}: {self.name}", "Take less."
        )
        with open_regular(self.path) as opened:
            opened.seek(self.start)
            data = opened.read(self.end - self.start)
        if len(data) != self.end - self.start:
            raise UnreadableFile(f"{self.path}: {self.name} is cut short")
        return np.frombuffer(data, DTYPES[self.dtype]).reshape(self.shape)


class _Wrong(Exception):
    """Why a file is no safetensors file."""


def read_stored(path: str | Path) -> dict[str, Stored]:
    """Return the tensors of one file by name, in its order; none is read.

    Raises
    ------
    UnreadableFile
        The file is missing, is something else, or is damaged; the message says what
        and where.
    """
    with open_regular(path) as opened:
        try:
            return _tensors(opened, Path(path))
        except _Wrong as wrong:
            raise UnreadableFile(f"{path} is no safetensors file: {wrong}") from None


def _tensors(opened: IO[bytes], path: Path) -> dict[str, Stored]:
    size = os.fstat(opened.fileno()).st_size
    start = opened.read(32)
    for magic, what in _FORMATS:
        # A header's length can have these bytes too, but a brace follows it.
        if start.startswith(magic) and start[8:9] != b"{":
            raise _Wrong(f"it is {what}")
    if size < 8:
        raise _Wrong(f"{size} bytes; the length of the header alone takes 8")
    length = int.from_bytes(start[:8], "little")
    if length > min(MOST_HEADER_NBYTES, size - 8):
        raise _Wrong(
            f"its first 8 bytes claim a header of {length:,} bytes; the file has "
            f"{size - 8:,} more, and a header at most {MOST_HEADER_NBYTES:,}. It is "
            "cut short, or is something else"
        )
    opened.seek(8)
    header = _json(opened.read(length))
    found = {
        name: _stored(name, entry, path, 8 + length)
        for name, entry in header.items()
        if name != "__metadata__"
    }
    _check_metadata(header.get("__metadata__", {}))
    _check_whole(found, 8 + length, size)
    return found


def _json(text: bytes) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise _Wrong(f"its header names {_short(twice)} twice")
        return dict(pairs)

    if not text.startswith(b"{"):
        raise _Wrong(f"its header starts with {text[:8]!r}, and not with a brace")
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=unique)
    except UnicodeDecodeError as error:
        raise _Wrong(f"byte {8 + error.start} of its header is no UTF-8") from None
    except json.JSONDecodeError as error:
        raise _Wrong(f"byte {8 + error.pos}: its header is no JSON") from None
    except (RecursionError, ValueError):
        raise _Wrong("its header is nested too deep, or a number too long") from None
    assert isinstance(header, dict)
    return header


def _stored(name: str, entry: Any, path: Path, data_start: int) -> Stored:
    """Check one entry of a header."""
    where = f"tensor {_short(name)}"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise _Wrong(f"{where}: need dtype, shape and data_offsets, and only these")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise _Wrong(f"{where}: dtype {_short(dtype)}; known are {', '.join(DTYPES)}")
    for what, numbers in (("shape", shape), ("data_offsets", offsets)):
        whole = isinstance(numbers, list) and all(
            isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 1 << 63
            for n in numbers
        )
        if not whole:
            raise _Wrong(
                f"{where}: {what} {_short(numbers)}; need whole numbers from 0"
            )
    if len(offsets) != 2 or len(shape) > 32:
        raise _Wrong(f"{where}: two data_offsets, and at most 32 dimensions")
    begin, end = offsets
    nbytes = prod(shape) * np.dtype(DTYPES[dtype]).itemsize
    if end - begin != nbytes:
        raise _Wrong(
            f"{where}: {tuple(shape)} of {dtype} are {nbytes:,} bytes, and its "
            f"data_offsets {begin}..{end} hold {end - begin:,}"
        )
    return Stored(name, dtype, tuple(shape), path, data_start + begin, data_start + end)


def _check_metadata(metadata: Any) -> None:
    if not isinstance(metadata, dict) or not all(
        isinstance(value, str) for value in metadata.values()
    ):
        raise _Wrong("its __metadata__ is no object of texts")


def _check_whole(found: Mapping[str, Stored], start: int, size: int) -> None:
    """Raise unless the tensors fill the file, one after the other."""
    at = start
    for each in sorted(found.values(), key=lambda t: (t.start, t.end)):
        if each.start != at:
            how = "overlaps the tensor before" if each.start < at else "leaves a gap"
            raise _Wrong(
                f"tensor {_short(each.name)} starts at byte {each.start} and {how}, "
                f"which ends at {at}"
            )
        at = each.end
    if at != size:
        why = "it is cut short" if at > size else "bytes follow the last tensor"
        raise _Wrong(f"its tensors end at byte {at:,}, the file at {size:,}: {why}")


def _short(value: Any) -> str:
    """Give a value in few characters that command no terminal."""
    return f"{str(value)!r:.80}"


def read_sharded(path: str | Path) -> dict[str, Stored]:
    """Return the tensors of a file, of an index of shards, or of a folder with either.

    Raises
    ------
    UnreadableFile
        As for `read_stored`; or a shard lacks a tensor that the index promises, or the
        index names a file outside its own folder.
    """
    path = Path(path)
    if path.is_dir():
        index = path / "model.safetensors.index.json"
        files = sorted(path.glob("*.safetensors"))
        if index.exists():
            path = index
        elif len(files) == 1:
            (path,) = files
        elif not files:
            raise UnreadableFile(
                f"{path} is a folder without a .safetensors file; name another"
            )
        else:
            raise UnreadableFile(
                f"{path} holds {len(files)} .safetensors files and no "
                f"{index.name}; name one file"
            )
    if path.suffix != ".json":
        return read_stored(path)
    weight_map = _weight_map(path)
    names = sorted(set(weight_map.values()))
    if absent := [name for name in names if not (path.parent / name).exists()]:
        lost = [tensor for tensor, shard in weight_map.items() if shard in absent]
        raise UnreadableFile(
            f"{path}: {len(absent)} of {len(names)} shards are not in its folder, "
            f"{absent[0]} first, and with them {len(lost)} tensors such as "
            f"{_short(lost[0])}. Fetch them, or name a shard that is there"
        )
    shards = {name: read_stored(path.parent / name) for name in names}
    for tensor, shard in weight_map.items():
        if tensor not in shards[shard]:
            raise UnreadableFile(
                f"{path}: {_short(tensor)} should be in {shard}, which lacks it"
            )
    return {tensor: shards[shard][tensor] for tensor, shard in weight_map.items()}


def _weight_map(path: Path) -> dict[str, str]:
    with open_regular(path) as opened:
        text = opened.read(MOST_HEADER_NBYTES)
    try:
        index = _json(text.lstrip())
    except _Wrong as wrong:
        raise UnreadableFile(f"{path} is no index of shards: {wrong}") from None
    found = index.get("weight_map")
    if not isinstance(found, dict) or not found:
        raise UnreadableFile(f"{path} is no index of shards: it has no weight_map")
    for shard in found.values():
        plain = isinstance(shard, str) and shard.endswith(".safetensors")
        if not plain or Path(shard).name != shard or "\\" in shard or "\0" in shard:
            raise UnreadableFile(
                f"{path}: shard {_short(shard)}; need the name of a .safetensors file "
                "in the same folder"
            )
    return found
