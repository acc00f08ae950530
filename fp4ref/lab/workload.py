"""workload: what a kernel has to do: tiles, MMAs, and the bytes at each level.

    GMEM    each operand once, and D once: no kernel moves less
    L2      what the tiles ask for, and D
    SMEM    of one SM and tile: fills, the MMA's reads, scales copied, D staged
    TMEM    of one SM and tile: the accumulator read by the epilogue

A MMA takes 32 bytes of each row of its operands, whatever the kind: K is 64 for E2M1,
32 for eight bits and 16 for sixteen. A stage is four MMAs, rows of 128 bytes. Source:
PTX ISA, tcgen05.mma, Table 39.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import ceil
from typing import Final

K_NBYTES: Final = 32
"""Bytes of a row of A or B that one MMA takes."""
MMAS_A_STAGE: Final = 4
SCALE_BLOCK: Final = 16
ACCUMULATOR_NBYTES: Final = 4
SCALE_ATOM_ROWS: Final = 128
"""Rows of a scale atom, which has the scales of one MMA's K; ``tcgen05.cp`` copies it.
"""


@dataclass(frozen=True, slots=True)
class Workload:
    """One product and how a kernel cuts it.

    Attributes
    ----------
    m, n, k
        Elements.
    tile_m, tile_n
        Of one CTA, or of a pair with ``cta_group`` 2.
    element_bits
        Of A and B.
    block_scaled
        Whether a block of 16 has a scale of one byte.
    d_bits, added_bits
        Bits of D, with its scales, and of what the epilogue adds, per element.
    record_seconds, record_source
        What somebody measured; None and empty if nobody did.
    """

    name: str
    what: str
    m: int
    n: int
    k: int
    tile_m: int
    tile_n: int
    cta_group: int
    element_bits: int
    block_scaled: bool
    d_bits: float
    added_bits: float
    remark: str
    record_seconds: float | None = None
    record_source: str = ""

    @property
    def flop(self) -> int:
        """Multiplications and additions."""
        return 2 * self.m * self.n * self.k

    @property
    def tiles(self) -> int:
        """Tiles of D."""
        return ceil(self.m / self.tile_m) * ceil(self.n / self.tile_n)

    @property
    def k_tiles(self) -> int:
        """Stages of one tile."""
        return ceil(self.k * self.element_bits / (8 * K_NBYTES * MMAS_A_STAGE))

    @property
    def mmas(self) -> int:
        """MMAs of one tile."""
        return MMAS_A_STAGE * self.k_tiles

    @property
    def stages(self) -> int:
        """Stages of all tiles."""
        return self.tiles * self.k_tiles

    @property
    def operand_nbytes(self) -> int:
        """Bytes of A and B that an SM holds for a stage."""
        rows = (self.tile_m + self.tile_n) // self.cta_group
        return rows * K_NBYTES * MMAS_A_STAGE

    @property
    def scale_atoms(self) -> int:
        """Scale atoms that an SM copies to TMEM in a stage: its rows of A, all of B."""
        if not self.block_scaled:
            return 0
        rows = self.tile_m // self.cta_group
        atoms = ceil(rows / SCALE_ATOM_ROWS) + ceil(self.tile_n / SCALE_ATOM_ROWS)
        return MMAS_A_STAGE * atoms

    @property
    def scale_nbytes(self) -> int:
        """Bytes of these atoms."""
        k = K_NBYTES * 8 // self.element_bits
        return self.scale_atoms * SCALE_ATOM_ROWS * k // SCALE_BLOCK

    @property
    def d_nbytes(self) -> float:
        """Bytes of D that an SM writes for a tile."""
        return self.tile_m * self.tile_n / self.cta_group * self.d_bits / 8

    @property
    def mma_read_nbytes(self) -> int:
        """SMEM, of one SM and tile: what the MMAs read."""
        return self.k_tiles * self.operand_nbytes

    @property
    def smem_other_nbytes(self) -> float:
        """SMEM, of one SM and tile: fills, scales copied, D written and read."""
        fills = self.operand_nbytes + self.scale_nbytes
        return self.k_tiles * (fills + self.scale_nbytes) + 2 * self.d_nbytes

    @property
    def tmem_nbytes(self) -> int:
        """TMEM, of one SM and tile: the accumulator, read once."""
        return self.tile_m * self.tile_n // self.cta_group * ACCUMULATOR_NBYTES

    @property
    def l2_nbytes(self) -> float:
        """L2, of the whole product: what all tiles load, what is added, and D."""
        load = self.k_tiles * (self.operand_nbytes + self.scale_nbytes)
        added = self.tile_m * self.tile_n / self.cta_group * self.added_bits / 8
        return self.tiles * self.cta_group * (load + added + self.d_nbytes)

    @property
    def gmem_nbytes(self) -> float:
        """GMEM, of the whole product: A, B and their scales once, and D once."""
        bits = self.element_bits + (8 / SCALE_BLOCK if self.block_scaled else 0)
        operands = (self.m + self.n) * self.k * bits / 8
        return operands + self.m * self.n * self.d_bits / 8


@cache
def workloads() -> dict[str, Workload]:
    """Return the products of ``fp4ref/data/lab_workloads.toml``, by name."""
    text = resources.files("fp4ref.data").joinpath("lab_workloads.toml")
    rows = tomllib.loads(text.read_text("utf-8"))["workload"]
    return {row["name"]: Workload(**row) for row in rows}
