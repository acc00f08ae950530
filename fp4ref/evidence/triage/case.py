"""case: a dump of D beside its inputs, checked; the formula is the kernel's.

D = activation(beta * C + (alpha * A @ B.T + bias))
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fp4ref.arguments import (
    require_array,
    require_choice,
    require_finite_float32,
    require_instance,
    require_integer,
)
from fp4ref.errors import InputError
from fp4ref.evidence.triage.reading import Reading
from fp4ref.gemm.config import GemmConfig
from fp4ref.layout import LaidOutScales, SwizzledScales, sf_nbytes, unswizzle_scales
from fp4ref.numerics.elements import BLOCKS, element
from fp4ref.tensors.block_scaled import BlockScaled, require_block_scaled
from fp4ref.tensors.product import require_pair

TILE: Final = 128
"""Rows and columns of a tile by which differences are counted."""
_FORMATS: Final = ("f32", "bf16", "f16", "e4m3", "e5m2")
_ROW_NBYTES: Final = 128
F32 = NDArray[np.float32]
U8 = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Case:
    """What is looked at.

    Attributes
    ----------
    d
        (M, N) codes of D's format, as unsigned integers; NaN is one code.
    sfd
        (M, N / 16) scales of D, or None.
    alpha
        In float32; `given_alpha` says whether it came from the caller.
    """

    a: BlockScaled
    b: BlockScaled
    d: NDArray[Any]
    sfd: U8 | None
    c: F32 | None
    bias: F32 | None
    alpha: float
    given_alpha: bool
    config: GemmConfig

    @property
    def m(self) -> int:
        """Rows of D."""
        return int(self.d.shape[0])

    @property
    def n(self) -> int:
        """Columns of D."""
        return int(self.d.shape[1])

    @property
    def k(self) -> int:
        """Elements of a row of A."""
        return self.a.shape[-1]

    @property
    def format(self) -> str:
        """Of D."""
        return str(self.config.epilogue.d_format)

    @cached_property
    def k_tile(self) -> int:
        """Elements of K in a row of 128 bytes of shared memory."""
        return _ROW_NBYTES * 8 // require_pair(self.a, self.b).container_bits

    @property
    def k_tiles(self) -> int:
        """Of the mainloop."""
        return -(-self.k // self.k_tile)

    @property
    def right(self) -> Reading:
        """How a right kernel reads."""
        epilogue = self.config.epilogue
        return Reading(self.alpha, epilogue.norm_constant, self.config.tiles.splits)


def make_case(
    a: object,
    b: object,
    d: object,
    sfd: object,
    c: object,
    bias: object,
    config: GemmConfig | None,
    alpha: object,
) -> Case:
    """Check everything.

    Raises
    ------
    InputError
        A type, a shape or a number that cannot be used; says which and why.
    """
    of_a, of_b = require_block_scaled(a, "a"), require_block_scaled(b, "b")
    for name, q in (("a", of_a), ("b", of_b)):
        if q.codes.ndim != 2:
            raise InputError(f"{name} of shape {q.shape}; give one matrix of the batch")
    require_pair(of_a, of_b)
    if of_a.shape[1] != of_b.shape[1]:
        raise InputError(f"a is {of_a.shape} and b is {of_b.shape}; K must agree")
    m, n = of_a.shape[0], of_b.shape[0]
    if config is not None:
        require_instance(config, "config", GemmConfig, "For example GemmConfig()")
        if config.epilogue.fusion is not None:
            raise InputError(
                "config has a tree of nodes; triage knows D = activation(beta * C + "
                "(alpha * acc + bias)) only"
            )
        _check(config)
    dump = require_array(d, "d")
    config = _with_format(dump, sfd, config)
    codes = _codes(dump, config, (m, n))
    scales = None
    if sfd is not None:
        scales = _scales(sfd, m, n, config)
    if config.epilogue.d_format == "nvfp4" and scales is None:
        raise InputError("d is nvfp4, whose numbers need their scales; pass sfd=")
    if alpha is None:
        product = float(of_a.global_scale or 1) * float(of_b.global_scale or 1)
        with np.errstate(over="ignore", divide="ignore"):
            factor = require_finite_float32(
                float(np.float64(1.0) / np.float64(product)), "alpha"
            )
    else:
        factor = require_finite_float32(alpha, "alpha")
    if c is not None and config.epilogue.beta == 0:
        raise InputError("c is given and beta is 0; pass config= with a beta, or no c")
    return Case(
        *(of_a, of_b, codes, scales),
        c=_addend(c, "c", (m, n)),
        bias=_addend(bias, "bias", (n,)),
        alpha=factor,
        given_alpha=alpha is not None,
        config=config,
    )


def _check(config: GemmConfig) -> None:
    """Refuse what the formula has no place for."""
    epilogue = config.epilogue
    formats, activations = (*_FORMATS, "nvfp4"), (None, "relu", "gelu", "silu")
    require_choice(epilogue.d_format, "config d_format", formats, gap="gemm-output")
    require_choice(
        *(epilogue.activation, "config activation", activations),
        gap="gemm-activation",
    )
    require_finite_float32(epilogue.beta, "config beta")
    norm = require_finite_float32(epilogue.norm_constant, "config norm_constant")
    if not norm > 0:
        raise InputError(f"config norm_constant: {norm:g}; need a positive number")
    require_integer(config.tiles.splits, "config splits", 1)


def _with_format(
    dump: NDArray[Any], sfd: object, config: GemmConfig | None
) -> GemmConfig:
    """Return the configuration; without one D's own type says its format."""
    if config is not None:
        return config
    if sfd is not None:
        return GemmConfig.nvfp4(d_format="nvfp4")
    for name in _FORMATS:
        if dump.dtype.name == np.dtype(element(name).dtype).name:
            return GemmConfig.nvfp4(d_format=name)
    raise InputError(
        f"d is {dump.dtype}, which does not say its format; pass sfd= for nvfp4, view "
        "the bits as their own type, or pass config=GemmConfig.nvfp4(d_format=...)"
    )


def _codes(
    dump: NDArray[Any], config: GemmConfig, shape: tuple[int, int]
) -> NDArray[Any]:
    """Return the codes of D, a NaN as one code."""
    name = str(config.epilogue.d_format)
    if dump.shape != shape:
        raise InputError(
            f"d has shape {dump.shape}; a and b give {shape}, rows of A and rows of B"
        )
    if 0 in shape:
        raise InputError(f"d has shape {shape}; every size is at least 1")
    of = element("e2m1" if name == "nvfp4" else name)
    own, bits = np.dtype(of.dtype), np.dtype(of.code_dtype)
    if dump.dtype not in (own, bits):
        raise InputError(
            f"d is {dump.dtype}; {name} takes {own}, or its codes as {bits}"
        )
    codes = np.ascontiguousarray(dump).view(bits)
    if name == "nvfp4":
        if int(codes.max()) > 0xF:
            raise InputError(
                f"d has the code {int(codes.max()):#x}; nvfp4 takes one code of 4 bits "
                "a byte. Unpack it: numerics.unpack_e2m1"
            )
        return codes
    return one_nan(codes, name)


def one_nan(codes: NDArray[Any], name: str) -> NDArray[Any]:
    """Give every NaN of a format the same code."""
    of = element(name)
    nan = np.isnan(of.values(codes)) if name != "f32" else np.isnan(codes.view("f4"))
    if nan.any():
        codes = np.where(nan, codes.dtype.type((1 << of.bits) - 1), codes)
    return codes


def _scales(sfd: object, m: int, n: int, config: GemmConfig) -> U8:
    """Return SFD as a matrix; a flat buffer is in the 128x4 layout."""
    if config.epilogue.d_format != "nvfp4":
        raise InputError(
            f"sfd goes with an nvfp4 D; config says {config.epilogue.d_format}"
        )
    cols = -(-n // BLOCKS["nvfp4"].vec_size)
    if isinstance(sfd, SwizzledScales):
        sfd = sfd.unswizzle()
    if isinstance(sfd, LaidOutScales):
        sfd = sfd.matrix()
    array = require_array(sfd, "sfd")
    if array.dtype.itemsize == 1 and array.dtype.kind not in "bi":
        array = array.view(np.uint8)
    if array.dtype != np.uint8:
        raise InputError(f"sfd is {array.dtype}; need the uint8 codes")
    if array.shape in ((sf_nbytes(m, cols),), (1, sf_nbytes(m, cols))):
        return unswizzle_scales(array.ravel(), m, cols)
    if array.shape != (m, cols):
        raise InputError(
            f"sfd has shape {array.shape}; need ({m}, {cols}), one scale for 16 "
            f"columns, or ({sf_nbytes(m, cols)},), the buffer in the 128x4 layout"
        )
    return array


def _addend(value: object, name: str, shape: tuple[int, ...]) -> F32 | None:
    """Return C or bias in float32."""
    if value is None:
        return None
    array = require_array(value, name)
    if array.shape != shape:
        raise InputError(f"{name} has shape {array.shape}; need {shape}")
    if array.dtype.name not in ("float32", "float16", "bfloat16"):
        raise InputError(f"{name} is {array.dtype}; need float32, float16 or bfloat16")
    return array.astype(np.float32)
