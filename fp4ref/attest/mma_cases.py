"""mma_cases: operands for one MMA, each set chosen for the rule that it shows.

Operands are wide: every code, scales from the smallest to the largest, C far above and
below the products. Where a rule is about a special value the others are ordinary.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.attest.question import Words
from fp4ref.hardware.instr_descriptor import (
    InstrDescriptor,
    UnscaledInstrDescriptor,
    UnscaledKind,
)
from fp4ref.hardware.mxf8f6f4_descriptor import Mxf8f6f4InstrDescriptor
from fp4ref.numerics import (
    ElementFormat,
    ScaleFormat,
    matmul_block_scaled,
    matmul_mxf8f6f4,
    matmul_unscaled,
)

M, N = 128, 8
ROW_NBYTES = 32
CODE = {"nvfp4": 0, "mxf4nvf4 2x": 1, "mxf4": 2, "mxf8f6f4": 3, "f16": 4, "f8f6f4": 5}
"""Kinds, by the number that ``kernel/attest/mma.cu`` gives them."""

Codes = NDArray[Any]
F32 = NDArray[np.float32]

NONE: Codes = np.zeros((0, 0), np.uint8)
"""Scales of a kind that has none."""


@dataclass(frozen=True)
class Case:
    """One MMA.

    Attributes
    ----------
    a, b : (128, K), (8, K)
        Codes.
    sfa, sfb : (128, scales), (8, scales)
        Scale codes; `NONE` without scales.
    c : (128, 8)
    negated
        Whether the descriptor negates A.
    """

    name: str
    kind: str
    a: Codes
    b: Codes
    c: F32
    sfa: Codes = field(default_factory=lambda: NONE)
    sfb: Codes = field(default_factory=lambda: NONE)
    formats: tuple[str, str] = ("e2m1", "e2m1")
    input_d: bool = True
    negated: bool = False
    scale_ids: tuple[int, int] = (0, 0)

    @property
    def idesc(self) -> int:
        """The instruction descriptor."""
        of_a, of_b = (ElementFormat(each) for each in self.formats)
        unscaled: UnscaledKind
        match self.kind:
            case "f16" | "f8f6f4" as unscaled:
                return UnscaledInstrDescriptor(
                    unscaled, M, N, of_a, of_b, negate_a=self.negated
                ).encode()
            case "mxf8f6f4":
                return Mxf8f6f4InstrDescriptor(
                    M, N, of_a, of_b, *self.scale_ids, negate_a=self.negated
                ).encode()
        scales = ScaleFormat.UE4M3 if self.kind == "nvfp4" else ScaleFormat.UE8M0
        return InstrDescriptor(
            M, N, scales, *self.scale_ids, negate_a=self.negated
        ).encode()

    def predict(self) -> Words:
        """D by the integer models of `fp4ref.numerics`, row by row."""
        of_a, of_b = (ElementFormat(each) for each in self.formats)
        a = self.a ^ self.a.dtype.type(self.negated << of_a.bits - 1)
        c = self.c if self.input_d else None
        if self.kind in ("f16", "f8f6f4"):
            d = matmul_unscaled(a, self.b, c, a_format=of_a, b_format=of_b)
        elif self.kind == "mxf8f6f4":
            d = matmul_mxf8f6f4(
                a, self.b, self.sfa, self.sfb, c, a_format=of_a, b_format=of_b
            )
        else:
            four = self.kind == "nvfp4"
            d = matmul_block_scaled(
                a,
                self.b,
                self.sfa,
                self.sfb,
                c,
                scale_format=ScaleFormat.UE4M3 if four else ScaleFormat.UE8M0,
                vec_size=16 if four else 32,
            )
        return d.view(np.uint32).reshape(-1)

    def words(self) -> Words:
        """Return what the rung reads: head, operands, scales and C."""
        high = 256 >> 4 | 1 << 14
        head = [CODE[self.kind], self.idesc, self.input_d, 0, high, high, 0, 0]
        dense = self.kind not in ("f8f6f4", "mxf8f6f4")
        parts = [
            np.array(head, np.uint32).tobytes(),
            cores(rows_of(self.a, self.formats[0], dense)),
            cores(rows_of(self.b, self.formats[1], dense)),
            atom(self.sfa, self.scale_ids[0]),
            atom(self.sfb, self.scale_ids[1]),
            self.c.astype(np.float32).tobytes(),
        ]
        return np.frombuffer(b"".join(parts), np.uint32)


def rows_of(codes: Codes, name: str, dense: bool) -> NDArray[np.uint8]:
    """Return rows of 32 bytes; where not dense, 16 narrow codes lie in every 16."""
    bits = ElementFormat(name).bits
    each = 128 // bits if dense else 16
    one = codes.astype(np.uint16)[..., None] >> np.arange(bits, dtype=np.uint16) & 1
    chunks = one.astype(np.uint8).reshape(len(codes), -1, each * bits)
    packed = np.packbits(chunks, axis=-1, bitorder="little")
    padded = np.zeros((*packed.shape[:2], 16), np.uint8)
    padded[..., : packed.shape[-1]] = packed
    return padded.reshape(len(codes), ROW_NBYTES)


def cores(rows: NDArray[np.uint8]) -> bytes:
    """Core matrices of 8 rows x 16 bytes: groups of rows, then halves of K."""
    return rows.reshape(-1, 8, 2, 16).transpose(0, 2, 1, 3).tobytes()


def atom(scales: Codes, first: int) -> bytes:
    """The 512 bytes of the scales of 128 rows, from byte `first` of a row's word."""
    whole = np.zeros((M, 4), np.uint8)
    whole[: len(scales), first : first + scales.shape[1]] = scales
    return whole.reshape(4, 32, 4).transpose(1, 0, 2).tobytes()


class Draw:
    """Random operands, by a fixed seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def codes(self, name: str, k: int, rows: int = M) -> Codes:
        """Any codes of a format."""
        bits = ElementFormat(name).bits
        kind = np.uint16 if bits > 8 else np.uint8
        return self.rng.integers(0, 1 << bits, (rows, k)).astype(kind)

    def finite(self, name: str, k: int, rows: int = M) -> Codes:
        """Codes of a format without Inf and NaN; of 16 bits within 2^-12 and 2^12."""
        if name in ("f16", "bf16"):
            x = self.c(-12, 12, (rows, k))
            return (
                x.astype(np.float16).view(np.uint16)
                if name == "f16"
                else (x.view(np.uint32) >> 16).astype(np.uint16)
            )
        codes = self.codes(name, k, rows)
        most = {"e4m3": 0x7E, "e5m2": 0x7B}.get(name)
        return codes if most is None else np.minimum(codes & 0x7F, most) | codes & 0x80

    def scales(self, low: int, high: int, count: int, rows: int = M) -> Codes:
        """Scale codes from `low` to `high`."""
        return self.rng.integers(low, high + 1, (rows, count)).astype(np.uint8)

    def c(self, low: int, high: int, shape: tuple[int, int] = (M, N)) -> F32:
        """Floats of both signs, with exponents from `low` to `high`."""
        x = self.rng.uniform(1, 2, shape) * self.rng.choice([-1, 1], shape)
        found: F32 = np.ldexp(x, self.rng.integers(low, high + 1, shape)).astype(
            np.float32
        )
        return found
