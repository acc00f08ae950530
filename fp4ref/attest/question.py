"""question: what a rung asks of a card, and what the model says must come out.

The same CUDA text, launch and inputs go to every backend. The answer is cut into parts,
each with the rules of the fidelity table that it shows; `fp4ref.evidence.attested` has
that table. The prediction of a part comes from `fp4ref.numerics` and the layouts, or
from the oracle, never from what runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.cuda_kernel.on_device import SOFT_SMEM_NBYTES, SOFT_THREADS
from fp4ref.cuda_kernel.sources import expand, kernel_root
from fp4ref.device.launch import Call, Parameter, Pointer
from fp4ref.hardware.machine_state import Ordering

Words = NDArray[np.uint32]
FOLDER = "kernel/attest"


@dataclass(frozen=True, slots=True)
class Part:
    """Some words of an output buffer.

    Attributes
    ----------
    first, count
        Which words of 32 bits.
    axes
        How to name a word: names and extents, the slowest first; ``row 3, column 1``.
    predict
        Makes the words that must come out; None if no model says.
    """

    name: str
    buffer: str
    first: int
    count: int
    predict: Callable[[], Words] | None
    axes: tuple[tuple[str, int], ...] = ()

    def of(self, buffers: Mapping[str, NDArray[np.uint8]]) -> Words:
        """Cut the part out of what a launch left."""
        words = np.ascontiguousarray(buffers[self.buffer]).view(np.uint32)
        return words[self.first : self.first + self.count].copy()

    def where(self, index: int) -> str:
        """Say which word this is."""
        if not self.axes:
            return f"word {index}"
        place = np.unravel_index(index, tuple(extent for _, extent in self.axes))
        return ", ".join(
            f"{name} {int(at)}" for (name, _), at in zip(self.axes, place, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Question:
    """One launch and its parts.

    Attributes
    ----------
    text
        Makes the CUDA source, with the soft tensor core or without.
    call
        Makes the launch, for the same choice.
    identity
        What else tells this question from another one.
    sms
        SMs of the emulated machine.
    ordering
        As of `fp4ref.hardware.machine.Machine`.
    defines
        Of the compiler.
    """

    text: Callable[[bool], str]
    call: Callable[[bool], Call]
    parts: tuple[Part, ...]
    identity: str = ""
    sms: int = 1
    ordering: Ordering = "ptx"
    defines: Mapping[str, str] = field(default_factory=dict)

    def digest(self) -> str:
        """Sixteen digits over what is asked: own text, launch, inputs and parts."""
        whole = hashlib.sha256(self.identity.encode())
        call = self.call(False)
        shape = (call.entry, call.grid, call.block, call.cluster)
        whole.update(repr(shape).encode())
        for name, data in call.buffers.items():
            whole.update(name.encode() + np.ascontiguousarray(data).tobytes())
        for part in self.parts:
            place = (part.name, part.buffer, part.first, part.count)
            whole.update(repr(place).encode())
        return whole.hexdigest()[:16]


def own_text(file: str) -> Callable[[bool], str]:
    """Return what makes the source of a rung of ``kernel/attest``."""

    def text(soft: bool) -> str:
        return expand({}, kernel_root(), soft=soft, main=f"{FOLDER}/{file}")

    return text


def of_file(
    file: str,
    call: Call,
    parts: tuple[Part, ...],
    *,
    tensor_core: bool = False,
    sms: int = 1,
    ordering: Ordering = "ptx",
    defines: Mapping[str, str] | None = None,
) -> Question:
    """Return the question of a file of ``kernel/attest``.

    Parameters
    ----------
    tensor_core
        Whether a soft tensor core works in it: threads in addition, and an SM's memory.
    """

    def launch(soft: bool) -> Call:
        if not (soft and tensor_core):
            return call
        x, y, z = call.block
        smem = max(call.smem_nbytes, SOFT_SMEM_NBYTES)
        return replace(call, block=(x + SOFT_THREADS, y, z), smem_nbytes=smem)

    asked = (kernel_root() / FOLDER / file).read_text("utf-8")
    return Question(
        own_text(file),
        launch,
        parts,
        identity=asked + repr(sorted((defines or {}).items())),
        sms=sms,
        ordering=ordering,
        defines=defines or {},
    )


def blank(words: int) -> NDArray[np.uint8]:
    """Return an output buffer before the launch."""
    return np.full(4 * words, 0xEE, np.uint8)


def as_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return an array as the bytes that lie in memory."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def one_cta(
    entry: str,
    words: int,
    source: NDArray[Any] | None = None,
    *numbers: int,
    threads: int = 128,
    smem_nbytes: int = 16 << 10,
) -> Call:
    """Return the launch of one CTA: ``(in, numbers ..., out)``; None has no `in`."""
    buffers = {} if source is None else {"in": as_bytes(source)}
    params: tuple[Parameter, ...] = (
        *(Pointer(name) for name in buffers),
        *(np.uint32(each) for each in numbers),
        Pointer("out"),
    )
    return Call(
        entry,
        {**buffers, "out": blank(words)},
        params,
        block=(threads, 1, 1),
        smem_nbytes=smem_nbytes,
    )


__all__ = ["Part", "Question", "Words", "as_bytes", "blank", "of_file", "one_cta"]
