"""Parts 1 and 3. smem_map: the byte offset of every barrier and buffer of a CTA."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fp4ref.gemm.plan.rings import RingSpec
from fp4ref.hardware.mbarrier_unit import NBYTES as BARRIER_NBYTES


@dataclass(frozen=True, slots=True)
class Buffer:
    """A row of equal buffers in shared memory.

    Attributes
    ----------
    name
        In the memory map and in CUDA.
    label
        In faults and traces.
    nbytes
        Of one stage.
    used
        Whether this configuration works on it.
    numbered
        Whether its label has the stage.
    lies_in
        Name of the buffer whose memory it has, if it has none of its own.
    """

    name: str
    label: str
    stages: int
    nbytes: int
    alignment: int
    used: bool = True
    numbered: bool = True
    lies_in: str = ""


@dataclass(frozen=True)
class SmemMap(Mapping[str, int]):
    """Byte offsets from the CTA's shared base, by name: ``smem["a"]`` or ``smem.a``.

    Barriers first, in CUTLASS's order, each ring with its full barriers and then its
    empty ones; after them the buffers.

    Attributes
    ----------
    end
        Bytes in all.
    """

    offsets: Mapping[str, int]
    end: int

    @classmethod
    def of(cls, rings: Sequence[RingSpec], buffers: Sequence[Buffer]) -> SmemMap:
        """Lay out the parts one after another."""
        parts = [
            (name, BARRIER_NBYTES * ring.stages, BARRIER_NBYTES)
            for ring in rings
            for name, _ in ring.parts()
        ]
        own = [each for each in buffers if not each.lies_in]
        parts += [(b.name, b.stages * b.nbytes, b.alignment) for b in own]
        at = 0
        offsets: dict[str, int] = {}
        for name, nbytes, alignment in parts:
            at = -(-at // alignment) * alignment
            offsets[name] = at
            at += nbytes
        shared = {b.name: offsets[b.lies_in] for b in buffers if b.lies_in}
        return cls(offsets | shared, at)

    def __getitem__(self, name: str) -> int:
        return self.offsets[name]

    def __getattr__(self, name: str) -> int:
        if name.startswith("_") or name not in self.offsets:
            raise AttributeError(f"the memory map has no {name!r}")
        return self.offsets[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets)
