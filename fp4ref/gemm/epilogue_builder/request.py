"""request: what `CollectiveBuilder` is given, checked name by name."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NoReturn

from fp4ref.arguments import require_choice, require_integer
from fp4ref.errors import ConfigError
from fp4ref.gemm.epilogue_builder import element_types as types
from fp4ref.gemm.epilogue_builder.operations import (
    ACTIVATIONS,
    OPERATIONS,
    READY,
    TOP_K,
    Operation,
)
from fp4ref.gemm.epilogue_builder.schedules import (
    AUTO,
    SCHEDULES,
    Schedule,
    automatic,
)
from fp4ref.numerics.elements import BLOCKS

ARCHITECTURES = ("sm90", "sm100")
LAYOUTS = ("row", "column")
GAP = "epilogue-builder"
"""Row in the list of gaps: what CUTLASS can build besides."""
_IM2COL = ("nwc", "nhwc", "ndhwc", "im2col")
_MOST = 1 << 12
"""Of an extent of a tile: many times what shared memory holds."""

_MOST_OF = {"cluster": 16, "callbacks": 1 << 18}
"""CTAs of a cluster; bytes, more than shared memory has."""

_ALIGNED_BITS = {6: 768}
"""Bits of the least alignment of C and D, where they are not TMA's 128."""


@dataclass(frozen=True, kw_only=True)
class EpilogueRequest:
    """Types, layouts and a tile for which an epilogue is to be built.

    Parameters
    ----------
    arch
        ``"sm90"`` or ``"sm100"``.
    tile
        M, N and K of a tile of the MMA, in elements: with a pair of CTAs the pair's.
    cluster
        CTAs of a cluster along M and N.
    operands
        Format of A and B. A block-scaled one makes the MMA block-scaled, and is what
        None stands for on SM100: NVFP4. On SM90 None is ``"f16"``.
    accumulator, c, d
        Elements; C and D may be ``"void"``, D a block-scaled format.
    c_layout, d_layout
        ``"row"``, N contiguous, or ``"column"``, M contiguous.
    align_c, align_d
        Elements to which a row of C and D is aligned; None takes the least.
    epilogue_tile
        M and N of a subtile; None lets the builder choose.
    schedule
        CUTLASS's name, or ``"auto"``.
    grouped
        Whether the strides are arrays, with one stride for each group.
    operation
        CUTLASS's name; None is a linear combination, with scales for a block-scaled D.
    activation, aux, aux_layout, bias
        Of operations that have them. None takes ReLU, and D's element.
    callbacks
        Instead of an operation: bytes and alignment of the shared memory of callbacks
        that are built already, which pass through as they are.
    sf_layout
        Which way the blocks of a block-scaled D run: ``"row"``, along N.

    Raises
    ------
    ConfigError
        A name that CUTLASS or this package does not know.
    InputError
        A number that is none, or is out of range.
    """

    arch: str
    tile: tuple[int, int, int]
    cluster: tuple[int, int] = (1, 1)
    operands: str | None = None
    accumulator: str = "f32"
    c: str = "void"
    d: str = "f16"
    c_layout: str = "row"
    d_layout: str = "row"
    align_c: int | None = None
    align_d: int | None = None
    epilogue_tile: tuple[int, int] | None = None
    schedule: str = AUTO
    grouped: bool = False
    operation: str | None = None
    activation: str | None = None
    aux: str | None = None
    aux_layout: str = "row"
    bias: str | None = None
    callbacks: tuple[int, int] | None = None
    sf_layout: str = "row"

    def __post_init__(self) -> None:
        require_choice(self.arch, "arch", ARCHITECTURES, gap=GAP)
        self._check_numbers()
        self._check_elements()
        for name in ("c_layout", "d_layout", "aux_layout", "sf_layout"):
            layout = getattr(self, name)
            if isinstance(layout, str) and layout.lower() in _IM2COL:
                _unbuilt(f"{name}={layout!r}: im2col layouts")
            require_choice(layout, name, LAYOUTS, gap=GAP)
        require_choice(self.grouped, "grouped", (False, True), gap=GAP)
        self._check_operation()
        if self.schedule != AUTO and "FastF32" in str(self.schedule):
            _unbuilt(f"schedule={self.schedule!r}: FP32 products as sums of BF16 ones")
        require_choice(self.schedule, "schedule", (AUTO, *SCHEDULES), gap=GAP)

    def _check_numbers(self) -> None:
        extents = {"tile": 3, "cluster": 2}
        extents |= {
            name: 2
            for name in ("epilogue_tile", "callbacks")
            if getattr(self, name) is not None
        }
        for name, count in extents.items():
            given = getattr(self, name)
            if not isinstance(given, tuple) or len(given) != count:
                raise ConfigError(f"{name}: {given!r:.60}; need {count} whole numbers")
            for each in given:
                require_integer(each, name, 1, _MOST_OF.get(name, _MOST))
        for name in ("align_c", "align_d"):
            if getattr(self, name) is not None:
                require_integer(getattr(self, name), name, 1, _MOST)

    def _check_elements(self) -> None:
        operands = ("f16", "bf16", "f32", "e4m3", "e5m2", "s8", *BLOCKS)
        of_matrix = (types.VOID, *types.OF_MATRIX)
        for name, known in (
            ("operands", (None, *operands)),
            ("accumulator", types.OF_ACCUMULATOR),
            ("c", of_matrix),
            ("d", (*of_matrix, *BLOCKS)),
            ("aux", (None, *types.OF_MATRIX, types.ONE_BIT)),
            ("bias", (None, *types.OF_MATRIX)),
        ):
            given = getattr(self, name)
            if isinstance(given, str) and given.lower() in types.COMPLEX:
                _unbuilt(f"{name}={given!r}: complex elements")
            require_choice(given, name, known, gap=GAP)

    def _check_operation(self) -> None:
        if self.operation == TOP_K:
            _unbuilt(
                f"operation={TOP_K!r}: top-k and softmax, which need a row in one tile"
            )
        if self.operation is not None:
            require_choice(
                *(self.operation, "operation", tuple(OPERATIONS)),
                *("These are CUTLASS 4.2's operations but one",),
                gap=GAP,
            )
        if self.callbacks is not None and self.operation is not None:
            raise ConfigError(
                f"callbacks={self.callbacks} with operation={self.operation!r}: give "
                "one of them; callbacks are an operation that is built already"
            )
        require_choice(self.activation, "activation", (None, *ACTIVATIONS), gap=GAP)
        asked = self.fusion
        for name, has in (
            ("activation", asked.activation),
            ("aux", asked.aux),
            ("bias", asked.bias),
        ):
            if getattr(self, name) is not None and not has:
                raise ConfigError(
                    f"{name}={getattr(self, name)!r}: {asked.name} has none; leave it "
                    "out, or ask for an operation that has one"
                )
        in_blocks = self.d in BLOCKS
        if asked.block_scaled and not in_blocks:
            raise ConfigError(
                f"operation={asked.name!r} with d={self.d!r}: scales belong to a D in "
                f"blocks; ask for d={' or '.join(map(repr, BLOCKS))}"
            )
        if in_blocks and not asked.block_scaled:
            raise ConfigError(
                f"operation={asked.name!r} with d={self.d!r} makes no scales; ask for "
                f"an operation with BlockScaleFactor, or for d={self.element_d!r}"
            )

    def all_asked(self) -> dict[str, Any]:
        """Return every field by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def fusion(self) -> Operation:
        """The operation that is asked for, or stands for None."""
        if self.callbacks is not None:
            return READY
        default = "LinCombBlockScaleFactor" if self.d in BLOCKS else "LinearCombination"
        return OPERATIONS[self.operation or default]

    @cached_property
    def chosen(self) -> Schedule:
        """The schedule that is asked for, or that auto stands for."""
        if self.schedule != AUTO:
            return SCHEDULES[self.schedule]
        return automatic(self.arch, self.tile[0], self.cluster[0], self.block_scaled)

    @property
    def block_scaled(self) -> bool:
        """Whether the MMA has scales: CUTLASS's OpClassBlockScaledTensorOp."""
        return self.format_of_operands in BLOCKS

    @property
    def format_of_operands(self) -> str:
        """Format of A and B that is asked for, or stands for None."""
        return self.operands or ("nvfp4" if self.arch == "sm100" else "f16")

    @property
    def element_d(self) -> str:
        """Elements of D; void if there is none."""
        return BLOCKS[self.d].element if self.d in BLOCKS else self.d

    @property
    def alignment_c(self) -> int:
        """Elements to which C is aligned."""
        return self.align_c or least_alignment(self.c)

    @property
    def alignment_d(self) -> int:
        """Elements to which D is aligned."""
        return self.align_d or least_alignment(self.element_d)


def alignment_bits(element: str) -> int:
    """Bits to which TMA aligns a row of C or D: 96 bytes for 6-bit elements, else 16.

    Source: CUTLASS detail/layout.hpp, ``get_output_alignment_bits``.
    """
    return _ALIGNED_BITS.get(types.bits(element), 128)


def least_alignment(element: str) -> int:
    """Elements of the least alignment; 1 for void."""
    return alignment_bits(element) // (types.bits(element) or 128)


def _unbuilt(what: str) -> NoReturn:
    raise ConfigError(f"{what} are not built here", gap=GAP)
