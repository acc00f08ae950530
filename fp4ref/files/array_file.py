"""array_file: arrays of .npz and .npy files, looked at before they are read.

A header of a few bytes can claim 10^12 elements, and a small archive can expand to as
many. So the headers are read first, what they claim is compared with the bytes that
are there and with the memory that is free, and only then is anything allocated.
"""

from __future__ import annotations

import os
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from fp4ref.errors import InputError
from fp4ref.files.free_memory import require_memory

_ENCRYPTED = 1
_PICKLED = b"\x80"


class UnreadableFile(InputError):
    """A file cannot be opened, or does not hold what it should."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What an array's header says of it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Bytes of the data; Python's integers do not overflow."""
        return prod(self.shape) * self.dtype.itemsize


@contextmanager
def open_regular(path: str | Path) -> Iterator[IO[bytes]]:
    """Open an ordinary file: a pipe would block, a device would never end.

    Raises
    ------
    UnreadableFile
        In words why not.
    """
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise UnreadableFile(f"{path} is a folder; name a file")
        if not stat.S_ISREG(mode):
            raise UnreadableFile(
                f"{path} is a pipe or a device; copy what it gives to a file first"
            )
        opened = open(path, "rb")  # noqa: SIM115  closed below
    except UnreadableFile:
        raise
    except FileNotFoundError:
        raise UnreadableFile(f"{path}: no such file") from None
    except PermissionError:
        raise UnreadableFile(
            f"{path}: you may not read it; ask its owner, or run chmod +r"
        ) from None
    except NotADirectoryError:
        raise UnreadableFile(f"{path}: a file is named as if a folder") from None
    except OSError as error:
        raise UnreadableFile(f"{path}: {error.strerror}") from None
    except ValueError:  # a NUL in the name
        raise UnreadableFile(f"{str(path)!r} is no name of a file") from None
    with opened:
        yield opened


def read_headers(path: str | Path, kind: str, remedy: str) -> dict[str, Declared]:
    """Return what an .npz holds, by name; nothing is allocated.

    Parameters
    ----------
    kind
        What the file should be, after "is": ``"no trace"``.
    remedy
        How to make one.

    Raises
    ------
    UnreadableFile
        The file is missing or is something else; the message says what.
    """
    with _archive(path, kind, remedy) as archive:
        return {
            _name(member): _header(archive, member) for member in archive.infolist()
        }


def read_arrays(
    path: str | Path, names: Iterable[str], kind: str, remedy: str
) -> dict[str, NDArray[Any]]:
    """Read some arrays of an .npz; `kind` and `remedy` as for `read_headers`.

    Raises
    ------
    UnreadableFile
        As for `read_headers`, or an array is damaged or holds Python objects.
    InputError
        The arrays do not fit into memory.
    """
    wanted = set(names)
    with _archive(path, kind, remedy) as archive:
        chosen = {_name(m): m for m in archive.infolist() if _name(m) in wanted}
        declared = {name: _header(archive, m) for name, m in chosen.items()}
        for name, header in declared.items():
            if header.dtype.hasobject:
                raise _Wrong(f"{name} holds Python objects, which are never unpickled")
        total = sum(header.nbytes for header in declared.values())
        require_memory(2 * total, f"reading {path}", "Take a smaller file.")
        return {name: _data(archive, member) for name, member in chosen.items()}


class _Wrong(Exception):
    """Why a file is not what it should be."""


@contextmanager
def _archive(path: str | Path, kind: str, remedy: str) -> Iterator[zipfile.ZipFile]:
    """Open an archive; put any failure inside into words."""
    with open_regular(path) as opened:
        try:
            _check_magic(opened)
            with zipfile.ZipFile(opened) as archive:
                yield archive
        except (InputError, MemoryError):
            raise
        except _Wrong as wrong:
            raise UnreadableFile(f"{path} is {kind}: {wrong}; {remedy}") from None
        except Exception:  # a damaged archive raises nearly anything
            raise UnreadableFile(
                f"{path} is {kind}: it is damaged or cut short; {remedy}"
            ) from None


def _check_magic(opened: IO[bytes]) -> None:
    start = opened.read(len(npy.MAGIC_PREFIX))
    opened.seek(0)
    if start == npy.MAGIC_PREFIX:
        raise _Wrong("it is an .npy, which holds one array and has no names")
    if start.startswith(_PICKLED):
        raise _Wrong("it is a pickle, which could run any code")
    if not start:
        raise _Wrong("it is empty")
    if not start.startswith(b"PK"):
        raise _Wrong("it is no zip archive")


def _check_npy_magic(opened: IO[bytes]) -> None:
    start = opened.read(len(npy.MAGIC_PREFIX))
    opened.seek(0)
    if not start:
        raise _Wrong("it is empty")
    if start.startswith(b"PK"):
        raise _Wrong("it is a zip, as numpy.savez writes; numpy.save writes one array")
    if start.startswith(_PICKLED):
        raise _Wrong("it is a pickle, which could run any code")
    if start != npy.MAGIC_PREFIX:
        raise _Wrong("it does not begin as numpy.save's files do")


def _name(member: zipfile.ZipInfo) -> str:
    return member.filename.removesuffix(".npy")


def _header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Declared:
    """Read one header, and hold it against the bytes that follow it."""
    name = _name(member)
    if member.flag_bits & _ENCRYPTED:
        raise _Wrong(f"{name} is encrypted")
    with archive.open(member) as data:
        return _declared(data, name, member.file_size)


def _declared(data: IO[bytes], name: str, nbytes: int) -> Declared:
    """Read the header of an array that is `nbytes` long with it."""
    try:
        version = npy.read_magic(data)
        if version == (1, 0):
            shape, _, dtype = npy.read_array_header_1_0(data)
        elif version == (2, 0):
            shape, _, dtype = npy.read_array_header_2_0(data)
        else:
            raise _Wrong(f"{name} has fields, or an unknown format {version}")
    except (_Wrong, MemoryError, zipfile.BadZipFile, zlib.error):
        raise
    except Exception as error:  # the header is a Python literal of any kind
        why = f"{type(error).__name__}: {error}".splitlines()[0][:80]
        raise _Wrong(f"{name} is no array of NumPy's ({why})") from None
    there = nbytes - data.tell()
    if not all(isinstance(n, int) and n >= 0 for n in shape):
        raise _Wrong(f"{name} claims the shape {shape}")
    declared = Declared(shape, dtype)
    if not dtype.hasobject and declared.nbytes != there:
        raise _Wrong(
            f"{name} claims {prod(shape):,} elements of {dtype}, {declared.nbytes:,} "
            f"bytes, and has {there:,}"
        )
    return declared


def read_npy(path: str | Path) -> NDArray[Any]:
    """Read the array of an .npy.

    Raises
    ------
    UnreadableFile
        The file is missing, is something else, is damaged or holds Python objects.
    InputError
        The array does not fit into memory.
    """
    with open_regular(path) as opened:
        try:
            size = os.fstat(opened.fileno()).st_size
            _check_npy_magic(opened)
            declared = _declared(opened, "it", size)
            if declared.dtype.hasobject:
                raise _Wrong("it holds Python objects, which are never unpickled")
            require_memory(2 * declared.nbytes, f"reading {path}", "Take less.")
            opened.seek(0)
            array: NDArray[Any] = npy.read_array(opened, allow_pickle=False)  # type: ignore[no-untyped-call, unused-ignore]
            return array
        except _Wrong as wrong:
            raise UnreadableFile(f"{path} is no .npy file: {wrong}") from None


def _data(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(member) as data:
        array: NDArray[Any] = npy.read_array(data, allow_pickle=False)  # type: ignore[no-untyped-call, unused-ignore]
        data.read(1)  # at the end the checksum is compared
    return array
