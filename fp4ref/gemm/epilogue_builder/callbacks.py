"""callbacks: what the builder adds for the fusion: layouts and memory of its nodes.

An operation with one auxiliary matrix takes a swizzle atom and a copy for it, by C's
rules where it is loaded and D's where it is stored. Bits need neither: they are kept in
registers, and 4- and 6-bit ones have no node. Other operations are found by their name
alone, and callbacks that are already built pass through as they are.

Source: CUTLASS ``CallbacksBuilder`` in ``sm90_builder.inl``, ``sm100_builder.inl`` and
``collective_builder.hpp``; the nodes' ``SharedStorage`` in
``sm90_visitor_load_tma_warpspecialized.hpp`` and its neighbours.
"""

from __future__ import annotations

from fp4ref.errors import ConfigError
from fp4ref.gemm.epilogue_builder.element_types import VOID, bits
from fp4ref.gemm.epilogue_builder.epilogue_tile import EpilogueTile
from fp4ref.gemm.epilogue_builder.refusal import BuilderRefusal
from fp4ref.gemm.epilogue_builder.request import EpilogueRequest
from fp4ref.gemm.epilogue_builder.smem_layout import atom
from fp4ref.gemm.epilogue_builder.storage import EMPTY, Part, one_after_another
from fp4ref.numerics.elements import BLOCKS

SOURCE = "sm90_ and sm100_builder.inl: CallbacksBuilder"
NODES = "sm90_visitor_load_ and _store_tma_warpspecialized.hpp: SharedStorage"
_UNFOUND = "Could not find a callbacks specialization."
_WARPS = 4
_FLOAT_BITS = 32


def aux_element(asked: EpilogueRequest) -> str:
    """Return the auxiliary matrix's element: D's unless one is asked for."""
    if not asked.fusion.aux:
        return VOID
    return asked.aux or asked.element_d


def element_of_d(asked: EpilogueRequest) -> str:
    """Return D's element, or what stands for a void D: the auxiliary matrix's.

    Raises
    ------
    BuilderRefusal
        There is no D and no auxiliary matrix: nothing would be stored.
    """
    if asked.element_d != VOID:
        return asked.element_d
    if asked.arch == "sm90" and aux_element(asked) != VOID:
        return aux_element(asked)
    if asked.arch == "sm90":
        raise BuilderRefusal(
            "SmemElementD is void",
            f"d=void with operation={asked.fusion.name}, which stores nothing else",
            "sm90_epilogue_tma_warpspecialized.hpp",
            "Ask for a D, or for an operation with an auxiliary matrix and for aux",
        )
    raise ConfigError(
        "d=void: SM100's epilogue needs the type of D, and does not compile without "
        "(CUTLASS sm100_epilogue_tma_warpspecialized.hpp: GmemElementD). Ask for a D, "
        "or for arch='sm90'"
    )


def check_callbacks(asked: EpilogueRequest) -> None:
    """Refuse a fusion for which CUTLASS has no callbacks, or no builder.

    Raises
    ------
    BuilderRefusal
        There are none.
    """
    fusion, schedule = asked.fusion, asked.chosen
    if asked.arch == "sm90" and not schedule.tma and fusion.name != "LinearCombination":
        automatic = asked.schedule == "auto"
        raise BuilderRefusal(
            "Auto schedule doesn't support fusion. Use one of the TmaWarpSpecialized "
            "schedules instead."
            if automatic
            else "Could not build a collective epilogue for given parameters.",
            f"operation={fusion.name} with {schedule.name}, which has a linear "
            "combination alone",
            "sm90_builder.inl: the builder without shared memory",
            "Ask for schedule=TmaWarpSpecialized",
        )
    width = bits(aux_element(asked))
    if fusion.aux and schedule.tma and width in (4, 6):
        raise BuilderRefusal(
            _UNFOUND,
            f"aux={aux_element(asked)}: {width} bits are stored neither by TMA nor as "
            "bits",
            SOURCE,
            "The nearest are 8 bits, as e4m3, and b1",
        )
    if not _has_callbacks(asked):
        with_arrays = "with" if schedule.ptr_array else "without"
        raise BuilderRefusal(
            _UNFOUND,
            f"operation={fusion.name} {with_arrays} arrays of pointers on "
            f"{asked.arch}, sf_layout={asked.sf_layout}",
            "sm90_ and sm100_callbacks_tma_warpspecialized.hpp",
            f"The nearest is operation={_nearest(asked)}",
        )
    of_bias = asked.bias or asked.element_d
    if fusion.bias == "column" and bits(of_bias) in (4, 6):
        raise ConfigError(
            f"operation={fusion.name} with a bias of {of_bias}: CUTLASS's vectors of N "
            "elements do not compile with 4 or 6 bits (sm90_visitor_load_tma_"
            "warpspecialized.hpp: Sm90RowBroadcast). Ask for bias='f16'"
        )


def check_scales(asked: EpilogueRequest, tile: EpilogueTile) -> None:
    """Refuse a subtile whose blocks the epilogue cannot make scales of.

    Raises
    ------
    BuilderRefusal
        The blocks of a row, or of a column, are not 1, 2, 4 or 8.
    """
    vec_size = BLOCKS[asked.d].vec_size
    rows = asked.sf_layout == "row"
    extent = tile.n if rows else tile.m
    legal = [vec_size * blocks for blocks in (1, 2, 4, 8)]
    if extent in legal:
        return
    raise BuilderRefusal(
        "Possible store in interleaved 4B aligned format"
        if extent % vec_size == 0
        else "EpilogueTileN should be divisible by SFVecSize",
        f"subtiles of {tile.m},{tile.n} with blocks of {vec_size} along "
        f"{'N' if rows else 'M'}",
        "sm100_visitor_store_tma_warpspecialized.hpp",
        f"The nearest is {min(legal, key=lambda each: abs(each - extent))}",
    )


_OF_ARRAYS = ("LinearCombination", "LinCombEltAct")
_SCALES_OF_ARRAYS = ("LinCombBlockScaleFactor", "LinCombEltActBlockScaleFactor")
"""Operations with callbacks for arrays of pointers."""


def _has_callbacks(asked: EpilogueRequest) -> bool:
    """Whether CUTLASS 4.2 has callbacks for the operation.

    Scales are SM100's alone. Their rows are made of one matrix unless an activation
    comes without a bias, of an array unless there is a bias; their columns of one
    matrix, without a bias of N elements.
    """
    fusion, array = asked.fusion, asked.chosen.ptr_array
    if asked.callbacks is not None:
        return True
    if not fusion.block_scaled:
        return not array or fusion.name in _OF_ARRAYS
    if asked.arch == "sm90":
        return False
    if array:
        return fusion.name in _SCALES_OF_ARRAYS and asked.sf_layout == "row"
    if fusion.activation and not fusion.bias:
        return False
    return asked.sf_layout == "row" or fusion.bias != "column"


def _nearest(asked: EpilogueRequest) -> str:
    """Return an operation that has callbacks, and most of what was asked."""
    scales = asked.fusion.block_scaled and asked.arch == "sm100"
    if scales:
        return "LinCombBlockScaleFactor"
    return "LinCombEltAct" if asked.fusion.activation else "LinearCombination"


def fusion_storage(
    asked: EpilogueRequest,
    tile: EpilogueTile,
    columns: int,
    stages_c: int,
    stages_d: int,
) -> Part:
    """Return the memory of the fusion's nodes.

    Parameters
    ----------
    columns
        N of the CTA's tile: a vector of N elements is copied whole.
    """
    fusion = asked.fusion
    if asked.callbacks is not None:
        return Part(*asked.callbacks)
    parts = []
    vectors = [_FLOAT_BITS] * 2 if fusion.per_column_scales else []
    if fusion.bias == "column":
        vectors.append(bits(asked.bias or element_of_d(asked)))
    parts += [Part(-(-columns * width // 128) * 16, 16) for width in vectors]
    if fusion.aux and asked.chosen.tma and aux_element(asked) != "b1":
        of_aux = atom(asked.arch, aux_element(asked), asked.aux_layout, tile)
        stages = stages_d if fusion.aux == "out" else stages_c
        nbytes = tile.m * tile.n * of_aux.bits // 8 * stages
        parts.append(Part(nbytes, of_aux.alignment))
    if fusion.block_scaled and asked.sf_layout == "column":
        # One maximum of each warp, which the four exchange.
        parts.append(Part(_WARPS * _FLOAT_BITS // 8, 16))
    return one_after_another(*parts) if parts else EMPTY
