"""storage: bytes of shared memory of an epilogue, as C++ lays its structures out.

::

    CollectiveStorageWithC      C, then D
    CollectiveStorageWithoutC   D
    CollectiveStorageReuseC     one memory, C's and then D's

    SharedStorage               tensors: collective, then the fusion's nodes
                                tensor maps, with arrays of pointers
                                pipeline: two barriers for each stage of C

Source: CUTLASS ``sm90_epilogue_tma_warpspecialized.hpp`` and
``sm100_epilogue_tma_warpspecialized.hpp``, ``SharedStorage``.
"""

from __future__ import annotations

from typing import NamedTuple

SOURCE = "{arch}_epilogue_tma_warpspecialized.hpp: SharedStorage"
BARRIERS_NBYTES = 16
"""A full and an empty barrier of one stage."""
TENSOR_MAP_NBYTES = 128


class Part(NamedTuple):
    """A structure: its bytes, and what it is aligned to. An empty one has a byte."""

    nbytes: int
    alignment: int = 1


EMPTY = Part(1)


def rounded(nbytes: int, alignment: int) -> int:
    """Return the first multiple of `alignment` from `nbytes` on."""
    return -(-nbytes // alignment) * alignment


def one_after_another(*parts: Part) -> Part:
    """Return the structure that has the parts as its members."""
    end = 0
    for part in parts:
        end = rounded(end, part.alignment) + part.nbytes
    alignment = max(part.alignment for part in parts)
    return Part(rounded(end, alignment), alignment)


def union(*parts: Part) -> Part:
    """Return the structure in which the parts share one memory."""
    alignment = max(part.alignment for part in parts)
    return Part(rounded(max(part.nbytes for part in parts), alignment), alignment)


def collective_storage(c: Part, d: Part, *, source: bool, reuse: bool) -> Part:
    """Return the memory of C and D.

    Parameters
    ----------
    c, d
        All stages of a matrix.
    source
        Whether there is a C.
    reuse
        Whether D takes C's memory.
    """
    if not source:
        return union(d)
    return union(c, d) if reuse else one_after_another(c, d)


def kind(*, source: bool, reuse: bool) -> str:
    """Return CUTLASS's name of the memory of C and D."""
    if not source:
        return "CollectiveStorageWithoutC"
    return "CollectiveStorageReuseC" if reuse else "CollectiveStorageWithC"


def tensor_maps(count: int) -> Part:
    """Return the memory of tensor maps that a kernel changes."""
    return Part(count * TENSOR_MAP_NBYTES, TENSOR_MAP_NBYTES)


def pipeline(stages: int) -> Part:
    """Return the memory of the load pipeline's barriers."""
    return Part(stages * BARRIERS_NBYTES, 8)
