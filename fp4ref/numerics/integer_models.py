"""integer_models: the integer model of a product, for any part of it.

`tiers` asks it for what no bound proves: tiles, and single outputs of one step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from fp4ref.numerics import groups
from fp4ref.numerics.decode_factors import decode_factors
from fp4ref.numerics.decoded_operands import (
    GROUP,
    K_STEP,
    Operand,
    Terms,
    decode_a,
    decode_b,
    decode_terms,
)
from fp4ref.numerics.dot import mma_decoded
from fp4ref.numerics.dot_lanes import multiply_lanes
from fp4ref.numerics.dot_mxf8f6f4 import scaled_terms
from fp4ref.numerics.elements import ElementFormat, ScaleFormat
from fp4ref.numerics.factors import Codes, Factors
from fp4ref.numerics.formats import F32, I64, U8
from fp4ref.numerics.sides import Side


class IntegerModel(Protocol):
    """One product as an MMA's integer model computes it."""

    @property
    def step(self) -> int:
        """K of one instruction."""
        ...

    @property
    def fraction_bits(self) -> int:
        """Bits kept below the largest exponent."""
        ...

    def factors(self) -> tuple[Factors, Factors]:
        """Return A and B for BLAS."""
        ...

    def tile(self, rows: I64, columns: I64, steps: slice, c: F32) -> F32:
        """Return D of some rows and columns after some steps, from C."""
        ...

    def outputs(self, rows: I64, columns: I64, step: int, c: F32) -> F32:
        """Return single outputs of one step, all arguments of shape (count,)."""
        ...

    def add_groups(self, rows: I64, columns: I64, steps: slice, c: F32) -> int | None:
        """Add steps to C of some rows and columns in place, by `groups`.

        C is zero or comes from the model. Rows with a NaN get any numbers.

        Returns
        -------
        int or None
            Outputs of one step that the definition computed; None if `groups` does not
            know this kind, and nothing was done.
        """
        ...


@dataclass(frozen=True)
class BlockScaledModel:
    """``kind::mxf4nvf4``: see `dot`. K is padded to whole instructions."""

    a: U8
    b: U8
    sfa: U8
    sfb: U8
    scale_format: ScaleFormat
    vec_size: int
    _sides: dict[bool, tuple[object, Side]] = field(
        default_factory=dict, repr=False, compare=False
    )

    step = K_STEP
    fraction_bits = 35

    def factors(self) -> tuple[Factors, Factors]:
        """Return A and B for BLAS."""
        element, scale = ElementFormat.E2M1.element, self.scale_format.element
        pad = -self.a.shape[1] % K_STEP
        found = []
        for codes, scales in ((self.a, self.sfa), (self.b, self.sfb)):
            if pad:
                codes = np.pad(codes, ((0, 0), (0, pad)))
                scales = np.pad(scales, ((0, 0), (0, pad // self.vec_size)))
            found.append(decode_factors(codes, element, K_STEP, scales, scale))
        return found[0], found[1]

    @cached_property
    def _decoded(self) -> tuple[Operand, Operand]:
        scales = {"scale_format": self.scale_format, "vec_size": self.vec_size}
        return (
            decode_a(self.a, self.sfa, **scales),  # type: ignore[arg-type]
            decode_b(self.b, self.sfb, **scales),  # type: ignore[arg-type]
        )

    def tile(self, rows: I64, columns: I64, steps: slice, c: F32) -> F32:
        """Return D of some rows and columns after some steps, from C."""
        a, b = self._decoded
        k = slice(K_STEP * steps.start, K_STEP * steps.stop)
        groups = slice(k.start // GROUP, k.stop // GROUP)
        of_a = (each[rows, groups] for each in a[1:])
        of_b = (each[groups, columns] for each in b[1:])
        return mma_decoded(
            Operand(np.ascontiguousarray(a.halves[rows, k]), *_contiguous(of_a)),
            Operand(np.ascontiguousarray(b.halves[k, columns]), *_contiguous(of_b)),
            c,
        )

    def outputs(self, rows: I64, columns: I64, step: int, c: F32) -> F32:
        """Return single outputs of one step."""
        from fp4ref.numerics import compiled, dot_arrays, dot_jit

        a, b = self._decoded
        if compiled.AVAILABLE:
            d = c.copy()
            first = K_STEP // GROUP * step
            dot_jit.single_outputs(a, b, rows, columns, first, d.view(np.uint32))
            return d
        k = slice(K_STEP * step, K_STEP * (step + 1))
        products = a.halves[rows, k].astype(np.int64) * b.halves[k, columns].T
        sums, zero, scale, exponent = [], [], [], []
        first = K_STEP // GROUP * step
        for g in range(K_STEP // GROUP):
            sums.append(products[:, GROUP * g : GROUP * (g + 1)].sum(axis=1))
            zero.append(a.live[rows, first + g] & b.live[first + g, columns] == 0)
            s_a = a.significand[rows, first + g]
            scale.append(
                dot_arrays.scale_product(s_a, b.significand[first + g, columns])
            )
            exponent.append(
                a.exponent[rows, first + g] + b.exponent[first + g, columns]
            )
        bits = c.view(np.uint32).astype(np.int64)
        found = dot_arrays.gst_fdpa(sums, zero, scale, exponent, bits)
        return found.astype(np.uint32).view(np.float32)

    def add_groups(self, rows: I64, columns: I64, steps: slice, c: F32) -> int | None:
        """Add steps to C in place; None without Numba."""
        from fp4ref.numerics import compiled

        if not compiled.AVAILABLE:
            return None
        numbers = groups.scale_numbers(self.scale_format)
        a = self._side(self.a, self.sfa, rows, 1)
        b = self._side(self.b, self.sfb, columns, groups.lanes_of(len(columns)))
        return groups.add_chain(a, b, steps, c, numbers, clean=True)

    def _side(self, codes: U8, scales: U8, at: I64, lanes: int) -> Side:
        """Return some rows for `groups`; the last ones are kept for the next tile."""
        key = (lanes, at.tobytes())
        if self._sides.get(lanes > 1, (None, None))[0] != key:
            whole = len(at) == len(codes)
            chosen, of = (codes, scales) if whole else (codes[at], scales[at])
            if pad := -codes.shape[1] % K_STEP:
                chosen = np.pad(chosen, ((0, 0), (0, pad)))
                of = np.pad(of, ((0, 0), (0, pad // self.vec_size)))
            numbers = groups.scale_numbers(self.scale_format)
            found = groups.side(chosen, of, self.vec_size, numbers, lanes)
            self._sides[lanes > 1] = key, found
        return self._sides[lanes > 1][1]


def _contiguous(arrays: object) -> list[I64]:
    return [np.ascontiguousarray(each) for each in arrays]  # type: ignore[attr-defined]


@dataclass(frozen=True)
class TermsModel:
    """The other kinds: see `dot_unscaled` and, with scales, `dot_mxf8f6f4`.

    Parameters
    ----------
    sfa, sfb
        None for the kinds without scales.
    """

    a: Codes
    b: Codes
    a_format: ElementFormat
    b_format: ElementFormat
    sfa: U8 | None = None
    sfb: U8 | None = None

    fraction_bits = 25

    @property
    def step(self) -> int:
        """K of one instruction."""
        return self.a_format.k_step

    def factors(self) -> tuple[Factors, Factors]:
        """Return A and B for BLAS."""
        scale = None if self.sfa is None else ScaleFormat.UE8M0.element
        sides = (
            (self.a, self.a_format, self.sfa),
            (self.b, self.b_format, self.sfb),
        )
        found = [
            decode_factors(codes, of.element, self.step, scales, scale)
            for codes, of, scales in sides
        ]
        return found[0], found[1]

    @cached_property
    def _terms(self) -> tuple[Terms, Terms]:
        if self.sfa is None or self.sfb is None:
            return (
                decode_terms(self.a, self.a_format.element),
                decode_terms(self.b, self.b_format.element),
            )
        return (
            scaled_terms("a", self.a, self.sfa, self.a_format),
            scaled_terms("b", self.b, self.sfb, self.b_format),
        )

    def tile(self, rows: I64, columns: I64, steps: slice, c: F32) -> F32:
        """Return D of some rows and columns after some steps, from C."""
        k = slice(self.step * steps.start, self.step * steps.stop)
        a, b = (
            Terms(
                np.ascontiguousarray(terms.significand[at, k]),
                np.ascontiguousarray(terms.exponent[at, k]),
                terms.mantissa_bits,
            )
            for terms, at in zip(self._terms, (rows, columns), strict=True)
        )
        return multiply_lanes(a, b, self.step, c)

    def outputs(self, rows: I64, columns: I64, step: int, c: F32) -> F32:
        """Return single outputs of one step."""
        from fp4ref.numerics import dot_arrays

        a, b = self._terms
        bits = c.view(np.uint32).astype(np.int64)
        products = (
            (
                a.significand[rows, k] * b.significand[columns, k],
                a.exponent[rows, k] + b.exponent[columns, k],
            )
            for k in range(self.step * step, self.step * (step + 1))
        )
        d = dot_arrays.t_fdpa(products, a.mantissa_bits + b.mantissa_bits, bits)
        return d.astype(np.uint32).view(np.float32)

    def add_groups(self, rows: I64, columns: I64, steps: slice, c: F32) -> int | None:
        """Return None: these kinds have no groups."""
