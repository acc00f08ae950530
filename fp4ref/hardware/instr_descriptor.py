"""instr_descriptor: the 32-bit word that tells an MMA its shape and types.

The block-scaled kinds have one format of it, the kinds without scales another.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from fp4ref.errors import DescriptorFault, NotModelled
from fp4ref.numerics import ElementFormat, ScaleFormat
from fp4ref.numerics.elements import ELEMENTS, element

MMA_M = 128

SHAPE_MASK = 0x3F << 17 | 0x1F << 24
"""Bits of an instruction descriptor that hold N and M; of M, 24-26 where it has them.

The block-scaled kinds keep them 0.
"""


def mma_shape(word: int) -> tuple[int, int]:
    """Return M and N of an instruction descriptor of any kind."""
    return (word >> 24 & 0x1F) << 4, (word >> 17 & 0x3F) << 3


_SHAPES: dict[str, dict[int, tuple[tuple[int, ...], int]]] = {
    "block_scale": {1: ((128,), 8), 2: ((128, 256), 16)},
    "unscaled": {1: ((64, 128), 8), 2: ((128, 256), 16)},
}
"""Values of M, and the step of N, by cta_group. Source: PTX, table of matrix shapes."""

UnscaledKind = Literal["tf32", "f16", "f8f6f4"]

_E2M1 = element("e2m1").idesc["mxf4nvf4"]
_SCALE_FORMATS = {each.element.scale_code: each for each in ScaleFormat}

_D_TYPES = {0: "F16", 1: "F32", 2: "S32", 3: "(none)"}


@dataclass(frozen=True, slots=True)
class InstrDescriptor:
    """Instruction descriptor of ``kind::mxf4`` and ``mxf4nvf4``, 32 bits. Frame 6.2.

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
        scale_type = self.scale_format.element.scale_code or 0
        return (
            self.b_sf_id << 4
            | _E2M1 << 7
            | _E2M1 << 10
            | self.negate_a << 13
            | self.negate_b << 14
            | self.n >> 3 << 17
            | scale_type << 23
            | self.m >> 7 << 27
            | self.a_sf_id << 29
        )

    @classmethod
    @lru_cache(maxsize=64)
    def decode(cls, word: int, cta_group: int = 1) -> InstrDescriptor:
        """Read a 32-bit word.

        Raises
        ------
        DescriptorFault
            A field has a value that these kinds do not take with this group.
        NotModelled
            Sparsity or K = 96.
        """
        fields = f"idesc {word:#010x}"
        if (word >> 7) & 7 != _E2M1 or (word >> 10) & 3 != _E2M1:
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
        if word >> 2 & 1 or word >> 31:
            raise NotModelled(
                f"{fields}: sparsity {word >> 2 & 1}, K size {word >> 31}",
                rule="this machine has dense K=64 MMAs",
                remedy="use K=64 without sparsity",
                gap="mma-sparse" if word >> 2 & 1 else "mma-shape",
            )
        check_shape(fields, "block_scale", cta_group, m, n)
        return cls(
            m,
            n,
            _SCALE_FORMATS[word >> 23 & 1],
            word >> 29 & 3,
            word >> 4 & 3,
            bool(word >> 13 & 1),
            bool(word >> 14 & 1),
        )


@dataclass(frozen=True, slots=True)
class UnscaledInstrDescriptor:
    """Instruction descriptor of ``kind::tf32``, ``f16`` and ``f8f6f4``, 32 bits.

    ======  =======================================
    bits    field
    ======  =======================================
    0-1, 2  sparsity selector, sparsity
    3       saturate (integer kinds)
    4-5     type of D: F16 is 0, F32 is 1
    7-9     type of A
    10-12   type of B
    13, 14  negate A, negate B
    15, 16  transpose A, B: 1 is MN-major
    17-22   N >> 3
    24-28   M >> 4
    30-31   maximum shift of ``.ws``
    ======  =======================================

    Source: PTX, Instruction descriptor for .kind::tf32, .kind::f16, .kind::f8f6f4 and
    .kind::i8.
    """

    kind: UnscaledKind
    m: int
    n: int
    a_format: ElementFormat
    b_format: ElementFormat
    negate_a: bool = False
    negate_b: bool = False
    a_mn_major: bool = False
    b_mn_major: bool = False
    d_format: ElementFormat = ElementFormat.F32

    def encode(self) -> int:
        """Return the 32-bit word."""
        return (
            (self.d_format is ElementFormat.F32) << 4
            | self.a_format.element.idesc[self.kind] << 7
            | self.b_format.element.idesc[self.kind] << 10
            | self.negate_a << 13
            | self.negate_b << 14
            | self.a_mn_major << 15
            | self.b_mn_major << 16
            | self.n >> 3 << 17
            | self.m >> 4 << 24
        )

    @classmethod
    def decode(
        cls, word: int, kind: UnscaledKind, cta_group: int = 1
    ) -> UnscaledInstrDescriptor:
        """Read a 32-bit word.

        Raises
        ------
        DescriptorFault
            A field has a value that the kind does not take with this group.
        NotModelled
            Sparsity.
        """
        a_format, b_format = element_types(word, kind)
        fields = f"idesc {word:#010x} of kind::{kind}"
        if word & (1 << 3 | 1 << 6 | 1 << 23 | 1 << 29 | 3 << 30):
            raise DescriptorFault(
                f"{fields}: bits of another kind or of .ws are set",
                rule="bits 3, 6, 23 and 29 to 31 are 0",
                remedy="rebuild the descriptor",
            )
        m, n = (word >> 24 & 31) << 4, (word >> 17 & 63) << 3
        if word & 7:
            raise NotModelled(
                f"{fields}: sparsity {word & 7}",
                rule="this machine has dense MMAs",
                remedy="use an MMA without sparsity",
                gap="mma-sparse",
            )
        d_format = _d_format(fields, word >> 4 & 3, kind, a_format)
        check_shape(fields, "unscaled", cta_group, m, n)
        check_transposed(fields, b_format, bool(word >> 16 & 1), cta_group, n)
        negate = bool(word >> 13 & 1), bool(word >> 14 & 1)
        mn_major = bool(word >> 15 & 1), bool(word >> 16 & 1)
        return cls(kind, m, n, a_format, b_format, *negate, *mn_major, d_format)


def _d_format(
    fields: str, code: int, kind: str, a_format: ElementFormat
) -> ElementFormat:
    """Return the type of D.

    Raises
    ------
    DescriptorFault
        The kind does not have it with these operands.
    """
    halves = kind == "f8f6f4" or a_format is ElementFormat.F16
    if code == 1:
        return ElementFormat.F32
    if code == 0 and halves:
        return ElementFormat.F16
    raise DescriptorFault(
        f"{fields}: D type {_D_TYPES[code]} with A in {a_format.name}",
        rule="D is F32; in kind::f16 with A and B in F16, and in kind::f8f6f4, also "
        "F16 [PTX: matrix shape]",
        remedy="set bits 4-5 of idesc to 1",
    )


def check_shape(fields: str, kinds: str, cta_group: int, m: int, n: int) -> None:
    """Raise `DescriptorFault` for M or N that the kinds lack with this group."""
    choices, step = _SHAPES[kinds][cta_group]
    if m not in choices:
        raise DescriptorFault(
            f"{fields}: M is {m}",
            rule=f"M is {' or '.join(map(str, choices))} with cta_group::{cta_group} "
            "[PTX: matrix shape]",
            remedy="change M, or the group in all tcgen05 instructions",
        )
    if not step <= n <= 256 or n % step:
        raise DescriptorFault(
            f"{fields}: N is {n}",
            rule=f"N is {step} to 256 in steps of {step} with cta_group::{cta_group} "
            "[PTX: matrix shape]",
            remedy="split or pad N",
        )


def check_transposed(
    fields: str, b_format: ElementFormat, b_mn_major: bool, cta_group: int, n: int
) -> None:
    """Raise `DescriptorFault` for an N that an MN-major B of bytes lacks.

    Elements of 6 and 4 bits take a byte each there too.
    """
    step = 16 * cta_group
    if b_mn_major and b_format.bits <= 8 and n % step:
        raise DescriptorFault(
            f"{fields}: N is {n} with B MN-major in {b_format.name}",
            rule=f"N is {step} to 256 in steps of {step} then [PTX: N shape for 8bit "
            "transpose B]",
            remedy="pad N, or keep B K-major",
        )


def element_types(
    word: int, kind: UnscaledKind | Literal["mxf8f6f4"]
) -> tuple[ElementFormat, ElementFormat]:
    """Return the types of A and B, bits 7 to 12.

    Raises
    ------
    DescriptorFault
        The kind does not have one of them, or not together.
    """
    fields = f"idesc {word:#010x} of kind::{kind}"
    table = "f8f6f4" if kind == "mxf8f6f4" else kind
    types = {
        each.idesc[table]: ElementFormat(each.name)
        for each in ELEMENTS.values()
        if table in each.idesc
    }
    a_code, b_code = word >> 7 & 7, word >> 10 & 7
    if a_code not in types or b_code not in types:
        raise DescriptorFault(
            f"{fields}: element types {a_code} and {b_code}",
            rule="types: " + ", ".join(f"{c} {t.name}" for c, t in types.items()),
            remedy="build the descriptor for the right kind",
        )
    a_format, b_format = types[a_code], types[b_code]
    if kind == "f16" and a_format is not b_format:
        raise DescriptorFault(
            f"{fields}: A is {a_format.name} and B {b_format.name}",
            rule="kind::f16 takes one type for A and B",
            remedy="convert one of them",
        )
    return a_format, b_format
