"""tmem_load: SM100's ``tcgen05.ld`` of a subtile; SM90's is in registers.

The pattern is that of the widest store to shared memory that follows: a row for each
thread (32dp32b) where D's rows are contiguous, an MMA fragment (16dp256b, 16dp128b)
where ``stmatrix`` turns it.

Source: CUTLASS ``sm100_get_tmem_load_op``; the count is CuTe's ``op_repeater``.
"""

from __future__ import annotations

from math import gcd

from fp4ref.errors import ConfigError
from fp4ref.gemm.epilogue_builder.element_types import bits
from fp4ref.gemm.epilogue_builder.epilogue_tile import EpilogueTile
from fp4ref.gemm.epilogue_builder.refusal import BuilderRefusal

SM100 = "sm100_builder.inl: sm100_get_tmem_load_op"
_WIDEST = {
    "16dp256b": (256, 32),
    "16dp128b": (128, 64),
    "16dp32b": (64, 128),
    "32dp32b": (32, 128),
}
"""By pattern, bits of a lane that one repetition reads, and most repetitions."""


def tmem_load(
    accumulator: str,
    element_d: str,
    d_layout: str,
    tile: EpilogueTile,
    warps: tuple[int, int],
) -> str:
    """Return the load that CUTLASS takes, by its name.

    Parameters
    ----------
    warps
        How four warps share the subtile.

    Raises
    ------
    BuilderRefusal
        No instruction reads so few rows, or the types do not go together.
    """
    lanes, columns = tile.m // warps[0], tile.n // warps[1]
    if tile.m % warps[0] or lanes not in (16, 32):
        raise BuilderRefusal(
            "Unsupported tmem datapath count",
            f"a subtile of {tile.m},{tile.n}: {lanes} lanes for each of {warps[0]} "
            "warps; a load takes 16 or 32",
            SM100,
            f"Subtiles have {16 * warps[0]} or {32 * warps[0]} rows",
        )
    of_acc, of_d = bits(accumulator), bits(element_d)
    pattern = _pattern(of_acc, of_d, lanes, d_layout == "column")
    if pattern is None:
        raise BuilderRefusal(*_no_pattern(accumulator, element_d, of_acc, of_d))
    width, most = _WIDEST[pattern]
    if columns * of_acc % width:
        raise ConfigError(
            f"a subtile of {tile.m},{tile.n}: {columns} columns of {accumulator} for "
            f"each warp, and the load {pattern} reads {width} bits at a time (CUTLASS "
            "copy_traits_sm100.hpp: op_repeater). Take a subtile twice as wide"
        )
    count = gcd(columns * of_acc // width, most)
    return f"SM100_TMEM_LOAD_{pattern}{count}x{'_16b' if of_acc == 16 else ''}"


def _pattern(of_acc: int, of_d: int, lanes: int, m_major: bool) -> str | None:
    """Return lanes and bits of a load, or None where there is none."""
    if (of_acc, of_d) == (32, 32):
        narrow, wide = "16dp256b" if m_major else "16dp128b", "32dp32b"
    elif (of_acc, of_d) == (32, 16):
        narrow, wide = "16dp256b", "16dp256b" if m_major else "32dp32b"
    elif (of_acc, of_d) == (32, 8):
        narrow, wide = "16dp256b" if m_major else "16dp32b", "32dp32b"
    elif (of_acc, of_d) == (16, 16):
        narrow, wide = "16dp128b", "16dp128b" if m_major else "32dp32b"
    elif of_acc == 32 and of_d in (4, 6) and lanes == 32:
        return "32dp32b"
    else:
        return None
    return wide if lanes == 32 else narrow


def _no_pattern(
    accumulator: str, element_d: str, of_acc: int, of_d: int
) -> tuple[str, str, str, str]:
    found = f"an accumulator of {accumulator} with a D of {element_d}"
    if of_acc == 32:  # only narrow elements in 16 lanes are left
        return (
            "num_dp == 32",
            f"{found} in 16 lanes",
            SM100,
            "Take a tile with 128 rows a CTA, which gives each warp 32 lanes",
        )
    return (
        "Unsupported data types",
        found,
        SM100,
        "An accumulator of f32 or s32 goes with every D, one of f16 with 16 bits",
    )
