"""expected_problem: the problem, its tiles, and where shared memory holds what."""

from __future__ import annotations

from dataclasses import dataclass

SMEM_BASE = 0x400
SMEM_NBYTES = 232_448
CARVEOUT = 160
BARRIER_PAIR = 128
ROWS, TILE_K, MMA_K, VEC = 128, 256, 64, 16
SUBTILE = 32
WARP, EPILOGUE, CTA = 32, 128, 256
TMEM_COLUMNS = 512
CLC_NBYTES = 16
ALL_LANES = 0xFFFF_FFFF
BITS = {"f32": 32, "bf16": 16, "f16": 16, "nvfp4": 4}
SWIZZLE_OF_ROW = {128: 3, 64: 2, 16: 0}

Tile = tuple[int, int, int]
"""(m, n, batch) in tiles."""


@dataclass(frozen=True)
class Gemm:
    """Problem and kernel variant; names as in the kernel's configuration."""

    m: int
    n: int
    k: int
    batches: int = 1
    tile_n: int = 128
    d: str = "f32"
    c: str | None = None
    loads_c: bool = False
    bias: bool = False
    clc: bool = True
    raster: str = "m"
    stages: int | None = None
    c_stages: int = 2
    d_stages: int = 2
    accumulator_stages: int = 2
    clc_stages: int = 2
    scale_buffers: int = 2
    ue8m0: bool = False
    reuse: bool = False
    delay: bool = False
    rolled: bool = False

    @property
    def tx_bytes(self) -> int:
        """A and B at half a byte, one scale byte for each row and 16 elements."""
        sf_rows_b = -(-self.tile_n // ROWS) * ROWS
        operands = (ROWS + self.tile_n) * TILE_K // 2
        return operands + (ROWS + sf_rows_b) * TILE_K // VEC

    @property
    def releases(self) -> bool:
        """Whether a store of D gives C's stage back."""
        return self.reuse and self.loads_c

    @property
    def mixed(self) -> bool:
        """Whether a thread's D lies in another thread's C."""
        return self.releases and self.row_nbytes(self.c) != self.row_nbytes(self.d)

    @property
    def store_stages(self) -> int:
        return self.c_stages if self.reuse else self.d_stages

    @property
    def store_nbytes(self) -> int:
        """From one stage of D to the next."""
        nbytes = self.subtile_nbytes(self.d)
        return max(nbytes, self.subtile_nbytes(self.c)) if self.reuse else nbytes

    @property
    def c_stage_nbytes(self) -> int:
        """From one stage of C to the next."""
        return self.store_nbytes if self.reuse else self.subtile_nbytes(self.c)

    @property
    def epilogue_nbytes(self) -> int:
        if self.reuse:
            # An empty struct, and C's barriers, each padded to the swizzle's period.
            padding = 8 * max(self.row_nbytes(self.c), self.row_nbytes(self.d))
            return self.c_stages * self.store_nbytes + 2 * padding
        c = self.c_stages * self.subtile_nbytes(self.c) if self.c else 0
        return c + self.d_stages * self.subtile_nbytes(self.d)

    @property
    def ring(self) -> int:
        """Mainloop stages: what fits."""
        free = SMEM_NBYTES - CARVEOUT - self.epilogue_nbytes
        return self.stages or free // (self.tx_bytes + BARRIER_PAIR)

    @property
    def k_tiles(self) -> int:
        return -(-self.k // TILE_K)

    @property
    def subtiles(self) -> int:
        return self.tile_n // SUBTILE

    @property
    def tiles(self) -> tuple[int, int, int]:
        return -(-self.m // ROWS), -(-self.n // self.tile_n), self.batches

    def row_nbytes(self, kind: str | None) -> int:
        return SUBTILE * BITS[kind or "f32"] // 8

    def subtile_nbytes(self, kind: str | None) -> int:
        return ROWS * self.row_nbytes(kind)

    def order(self) -> list[Tile]:
        """Tiles in launch order: the raster dimension fastest, batch slowest."""
        tm, tn, batches = self.tiles
        if self.raster == "m":
            return [
                (x, y, z) for z in range(batches) for y in range(tn) for x in range(tm)
            ]
        return [(y, x, z) for z in range(batches) for y in range(tm) for x in range(tn)]

    def ctaid(self, tile: Tile) -> Tile:
        m, n, batch = tile
        return (m, n, batch) if self.raster == "m" else (n, m, batch)

    def tile_of_answer(self, answer: bytes) -> Tile | None:
        """Decode a CLC answer: ctaid.x, ctaid.y | ctaid.z << 16, canceled flag."""
        x, yz, flag, _ = (
            int.from_bytes(answer[i : i + 4], "little") for i in (0, 4, 8, 12)
        )
        if not flag & 1:
            return None
        y, z = yz & 0xFFFF, yz >> 16
        return (x, y, z) if self.raster == "m" else (y, x, z)


class Smem:
    """Shared addresses: barriers in the order of their pipelines, then the tiles."""

    def __init__(self, g: Gemm) -> None:
        self._at = SMEM_BASE
        self.ab_full, self.ab_empty = self._pair(g.ring)
        self.c_full, self.c_empty = self._pair(g.c_stages)
        self.load_order = self._take(8, 8)
        self.clc_full, self.clc_empty = self._pair(g.clc_stages)
        self.acc_full, self.acc_empty = self._pair(g.accumulator_stages)
        self.throttle_full, self.throttle_empty = self._pair(g.clc_stages)
        self.answer = self._take(CLC_NBYTES * g.clc_stages, 16)
        self.tmem_pointer = self._take(4, 4)
        self.d = self._take(g.store_stages * g.store_nbytes, 1024)
        of_c = 0 if g.reuse or not g.c else g.c_stages * g.subtile_nbytes(g.c)
        self.c = self.d if g.reuse else self._take(of_c, 1024)
        self.a = self._take(g.ring * ROWS * TILE_K // 2, 1024)
        self.b = self._take(g.ring * g.tile_n * TILE_K // 2, 1024)
        self.sfa = self._take(g.ring * 2048, 128)
        self.sfb = self._take(g.ring * 2048, 128)

    def _take(self, nbytes: int, alignment: int) -> int:
        at = -(-self._at // alignment) * alignment
        self._at = at + nbytes
        return at

    def _pair(self, stages: int) -> tuple[int, int]:
        return self._take(8 * stages, 8), self._take(8 * stages, 8)
