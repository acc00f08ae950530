"""copy_operations: how C comes from shared memory, and how D gets there.

::

    SM90    16-bit elements: ldmatrix and stmatrix, transposed if M is major, of four
            matrices where 16 divides the subtile's N, else of two; others: vectors
    SM100   the matrix form that fits what the TMEM load gave each thread, else vectors

Source: CUTLASS ``sm90_common.inl``; ``sm100_get_smem_store_op``,
``sm100_get_smem_load_op`` and ``register_shuffle_op`` in ``sm100_builder.inl``.
"""

from __future__ import annotations

import re

from fp4ref.gemm.epilogue_builder.element_types import VOID, bits, smem_bits
from fp4ref.gemm.epilogue_builder.epilogue_tile import EpilogueTile
from fp4ref.gemm.epilogue_builder.refusal import BuilderRefusal

SM90 = "sm90_common.inl: sm90_get_smem_store_op_for_accumulator"
SM100_STORE = "sm100_builder.inl: sm100_get_smem_store_op"
SM100_LOAD = "sm100_builder.inl: sm100_get_smem_load_op"
SM100_R2R = "sm100_builder.inl: register_shuffle_op"
SM90_ATOM = "sm90_builder.inl: CopyAtomC"

G2S, S2G = "SM90_TMA_LOAD", "SM90_TMA_STORE"
"""Both architectures; the im2col forms are not built here."""

VECTORS = "AutoVectorizingCopyWithAssumedAlignment<128>"
_LOAD_OF = {
    "SM90_U16x8_STSM_T": "SM75_U16x8_LDSM_T",
    "SM90_U16x4_STSM_T": "SM75_U16x4_LDSM_T",
    "SM90_U32x4_STSM_N": "SM75_U32x4_LDSM_N",
    "SM90_U32x2_STSM_N": "SM75_U32x2_LDSM_N",
    "SM100_U8x16_STSM_T": "SM100_U8x16_LDSM_T",
    "SM100_U8x8_STSM_T": "SM100_U8x8_LDSM_T",
}
"""Loads that mirror a store; SM100 has none for the smallest of bytes."""


def r2s(
    arch: str,
    element: str,
    layout: str,
    tile: EpilogueTile,
    accumulator: str,
    load: str,
) -> str:
    """Return how registers are stored to shared memory.

    Parameters
    ----------
    load
        SM100's TMEM load.
    """
    if arch == "sm90":
        return _sm90_store(element, layout, tile)
    m_major = layout == "column"
    fragment = _matrices(bits(accumulator), smem_bits(element), m_major, load)
    if fragment is None:
        return VECTORS
    rows, matrices = fragment
    if rows == 16:
        return f"SM100_U8x{4 * matrices}_STSM_T"
    if m_major:
        return f"SM90_U16x{2 * matrices}_STSM_T"
    return f"SM90_U32x{matrices}_STSM_N"


def s2r(
    arch: str,
    element: str,
    layout: str,
    tile: EpilogueTile,
    accumulator: str,
    load: str,
) -> str:
    """Return how shared memory is read into registers: the store's mirror."""
    store = r2s(arch, element, layout, tile, accumulator, load)
    return _LOAD_OF.get(store, VECTORS)


def _sm90_store(element: str, layout: str, tile: EpilogueTile) -> str:
    if bits(element) != 16:
        return VECTORS
    if tile.n % 16 == 0:
        return "SM90_U16x8_STSM_T" if layout == "column" else "SM90_U32x4_STSM_N"
    return "SM90_U16x4_STSM_T" if layout == "column" else "SM90_U32x2_STSM_N"


def _matrices(
    of_acc: int, of_d: int, m_major: bool, load: str
) -> tuple[int, int] | None:
    """Return rows and number of the matrices that a load's fragment makes, if any."""
    found = re.fullmatch(r"SM100_TMEM_LOAD_(16dp\d+b)(\d+)x(_16b)?", load)
    if not found:
        return None
    pattern, count, packed = found[1], int(found[2]), bool(found[3])
    if (of_acc, of_d) == (32, 8) and m_major and pattern == "16dp256b" and not packed:
        return (16, min(count, 4))
    fits = {
        (32, 32): not m_major and pattern == "16dp128b" and not packed,
        (32, 16): pattern == "16dp256b" and not packed,
        (16, 16): pattern == "16dp128b" and packed,
    }
    if not fits.get((of_acc, of_d)):
        return None
    return (8, 4 if count > 1 else 2)


def r2r(arch: str, element_d: str, d_layout: str) -> str:
    """Return what happens to D's registers before the store.

    SM100 turns pairs of 4-bit elements between neighbouring threads if M is major.
    """
    if arch == "sm90":
        return VOID
    if smem_bits(element_d) == 4 and d_layout == "column":
        return "SM50_Shuffle_U32_2x2Trans_XOR1"
    return VECTORS


def copy_atom_c(tile: EpilogueTile) -> str:
    """Return SM90's smallest copy by which accumulators are split among threads.

    Raises
    ------
    BuilderRefusal
        8 does not divide the subtile's N.
    """
    if tile.n % 8:
        raise BuilderRefusal(
            "CopyAtomC can't be void, divisiblity check for EpilogueTile_MN failed",
            f"subtiles of {tile.m},{tile.n}: 8 does not divide {tile.n}",
            SM90_ATOM,
            f"The nearest N is {max(8, round(tile.n / 8) * 8)}",
        )
    return f"Copy_Atom<SM90_U32x{4 if tile.n % 16 == 0 else 2}_STSM_N, half_t>"
