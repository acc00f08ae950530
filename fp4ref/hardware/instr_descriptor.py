"""instr_descriptor: the 32-bit word that tells an MMA its shape and types."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.errors import DescriptorFault, NotModelled
from fp4ref.numerics import ScaleFormat

MMA_M = 128

SHAPE_MASK = 0x3F << 17 | 3 << 27
"""Bits of an instruction descriptor that hold N and M."""


@dataclass(frozen=True, slots=True)
class InstrDescriptor:
    """Instruction descriptor of ``kind::mxf4`` and ``kind::mxf4nvf4``, 32 bits.

    ======  =======================================
    bits    field
    ======  =======================================
    2       sparsity
    4-5     scale-factor id of B
    7-9     type of A (E2M1 is 1)
    10-11   type of B (E2M1 is 1)
    13, 14  negate A, negate B
    15, 16  transpose A, B: must be 0
    17-22   N >> 3
    23      scale type: UE8M0 is 1
    27-28   M >> 7
    29-30   scale-factor id of A
    31      K size: 0 is 64
    ======  =======================================

    Source: PTX, Instruction descriptor for .kind::mxf4 and .kind::mxf4nvf4.
    """

    m: int
    n: int
    scale_format: ScaleFormat
    a_sf_id: int = 0
    b_sf_id: int = 0
    negate_a: bool = False
    negate_b: bool = False

    def encode(self) -> int:
        """Return the 32-bit word."""
        return (
            self.b_sf_id << 4
            | 1 << 7
            | 1 << 10
            | self.negate_a << 13
            | self.negate_b << 14
            | self.n >> 3 << 17
            | (self.scale_format is ScaleFormat.UE8M0) << 23
            | self.m >> 7 << 27
            | self.a_sf_id << 29
        )

    @classmethod
    def decode(cls, word: int) -> InstrDescriptor:
        """Read a 32-bit word.

        Raises
        ------
        DescriptorFault
            A field has a value that these kinds do not take.
        NotModelled
            Sparsity, K = 96, or M other than 128.
        """
        fields = f"idesc {word:#010x}"
        if (word >> 7) & 7 != 1 or (word >> 10) & 3 != 1:
            raise DescriptorFault(
                f"{fields}: element types {(word >> 7) & 7} and {(word >> 10) & 3}",
                rule="E2M1 is type 1 in kind::mxf4 and kind::mxf4nvf4 (5 is for "
                "mxf8f6f4)",
                remedy="build the descriptor for the right kind",
            )
        if word >> 15 & 3:
            raise DescriptorFault(
                f"{fields}: transpose bits are set",
                rule="4-bit operands are K-major only",
                remedy="store both operands with K contiguous",
            )
        if word & (0b1011 | 1 << 6 | 1 << 12 | 7 << 24):
            raise DescriptorFault(
                f"{fields}: reserved bits are set",
                rule="bits 0-1, 3, 6, 12 and 24-26 are 0",
                remedy="rebuild the descriptor",
            )
        n, m = (word >> 17 & 63) << 3, (word >> 27 & 3) << 7
        if not 8 <= n <= 256:
            raise DescriptorFault(
                f"{fields}: N is {n}",
                rule="N is 8 to 256 in steps of 8 for cta_group::1",
                remedy="split N",
            )
        if word >> 2 & 1 or word >> 31 or m != MMA_M:
            raise NotModelled(
                f"{fields}: sparsity {word >> 2 & 1}, K size {word >> 31}, M {m}",
                rule="this machine has dense K=64 MMAs with M=128 and cta_group::1",
                remedy="use M=128 without sparsity",
            )
        return cls(
            m,
            n,
            ScaleFormat.UE8M0 if word >> 23 & 1 else ScaleFormat.UE4M3,
            word >> 29 & 3,
            word >> 4 & 3,
            bool(word >> 13 & 1),
            bool(word >> 14 & 1),
        )
