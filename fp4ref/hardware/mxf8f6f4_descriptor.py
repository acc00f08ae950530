"""mxf8f6f4_descriptor: the instruction descriptor of kind::mxf8f6f4.

Its scales are those of `InstrDescriptor`, its elements those of kind::f8f6f4.
"""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.errors import DescriptorFault, NotModelled
from fp4ref.hardware.instr_descriptor import (
    check_shape,
    check_transposed,
    element_types,
)
from fp4ref.numerics import ElementFormat, ScaleFormat


@dataclass(frozen=True, slots=True)
class Mxf8f6f4InstrDescriptor:
    """Instruction descriptor of ``kind::mxf8f6f4``, 32 bits.

    ======  =======================================
    bits    field
    ======  =======================================
    2       sparsity
    4-5     scale-factor id of B
    7-9     type of A, as in kind::f8f6f4
    10-12   type of B
    13, 14  negate A, negate B
    15, 16  transpose A, B: 1 is MN-major
    17-22   N >> 3
    23      scale type: UE8M0 is 1
    27-28   M >> 7
    29-30   scale-factor id of A
    ======  =======================================

    Source: PTX, Instruction descriptor for .kind::mxf8f6f4.
    """

    m: int
    n: int
    a_format: ElementFormat
    b_format: ElementFormat
    a_sf_id: int = 0
    b_sf_id: int = 0
    negate_a: bool = False
    negate_b: bool = False
    a_mn_major: bool = False
    b_mn_major: bool = False

    def encode(self) -> int:
        """Return the 32-bit word."""
        return (
            self.b_sf_id << 4
            | self.a_format.element.idesc["f8f6f4"] << 7
            | self.b_format.element.idesc["f8f6f4"] << 10
            | self.negate_a << 13
            | self.negate_b << 14
            | self.a_mn_major << 15
            | self.b_mn_major << 16
            | self.n >> 3 << 17
            | (ScaleFormat.UE8M0.element.scale_code or 0) << 23
            | self.m >> 7 << 27
            | self.a_sf_id << 29
        )

    @classmethod
    def decode(cls, word: int, cta_group: int = 1) -> Mxf8f6f4InstrDescriptor:
        """Read a 32-bit word.

        Raises
        ------
        DescriptorFault
            A field has a value that the kind does not take with this group.
        NotModelled
            Sparsity.
        """
        a_format, b_format = element_types(word, "mxf8f6f4")
        fields = f"idesc {word:#010x} of kind::mxf8f6f4"
        if word & (0b1011 | 1 << 6 | 7 << 24 | 1 << 31):
            raise DescriptorFault(
                f"{fields}: reserved bits are set",
                rule="bits 0-1, 3, 6, 24-26 and 31 are 0",
                remedy="rebuild the descriptor",
            )
        if word >> 2 & 1:
            raise NotModelled(
                f"{fields}: sparsity 1",
                rule="this machine has dense MMAs",
                remedy="clear bit 2",
                gap="mma-sparse",
            )
        if word >> 23 & 1 != ScaleFormat.UE8M0.element.scale_code:
            raise DescriptorFault(
                f"{fields}: the scale type is UE4M3",
                rule="kind::mxf8f6f4 takes UE8M0 scales [PTX: scale types]",
                remedy="set bit 23 of idesc",
            )
        n, m = (word >> 17 & 63) << 3, (word >> 27 & 3) << 7
        check_shape(fields, "block_scale", cta_group, m, n)
        check_transposed(fields, b_format, bool(word >> 16 & 1), cta_group, n)
        ids = word >> 29 & 3, word >> 4 & 3
        flags = (bool(word >> bit & 1) for bit in (13, 14, 15, 16))
        return cls(m, n, a_format, b_format, *ids, *flags)
