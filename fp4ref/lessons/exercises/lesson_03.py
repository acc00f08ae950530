"""lesson_03: exercises on coordinates, the swizzle, credited bytes and multicast."""

from __future__ import annotations

from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.partition import a_coords, multicast_masks, operand_map, scale_map
from fp4ref.gemm.plan import plan
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.layout import SwizzleMode
from fp4ref.lessons.exercise import exercise


@exercise(
    "03.1",
    title="The box of A for tile (5, 0), k-tile 3",
    frames=("3.2", "3.6", "5.4.4", "5.4.5"),
    hints=(
        "Coordinates are offsets in elements; the map alone knows bytes and addresses.",
        "The fastest dimension comes first, and A is K-major.",
        "A k-tile is 256 elements, a tile 128 rows; the batch comes last.",
    ),
    # Tile indices; slowest first; bytes along K; an address in place of coordinates.
    wrong=(
        [5, 3, 0, 0, 0],
        [5, 3, 0],
        [3, 5, 0],
        [640, 768, 0],
        [384, 640, 0],
        (640 * 2048 + 768) // 2,
    ),
)
def box_of_a() -> list[int]:
    """Ask the partition."""
    return list(a_coords(WorkTile(5, 0, 0), 3, plan(GemmConfig())))


@exercise(
    "03.2",
    title="The 128-byte swizzle",
    hints=(
        "A chunk is 16 bytes, so its number is in bits 4 to 6; a row is 128 bytes.",
        "XOR the chunk's number with the row's number modulo 8.",
        "Shift the offset right by 7, keep 3 bits, shift left by 4, XOR.",
    ),
    wrong=(
        lambda offset: offset,
        lambda offset: offset ^ (offset >> 7 & 3) << 4,  # the 64-byte mode
        lambda offset: offset ^ (offset >> 4 & 7) << 7,  # the wrong way round
        lambda offset: offset & ~0x70 | (offset >> 7 & 7) << 4,  # no XOR
        lambda offset: offset ^ (offset >> 7) << 4,  # all row bits
    ),
    cases=lambda: [(0,), (0x75,), (0x90,), (0x3FF,), (0x400,), (0x2A5C,)],
)
def swizzle_128b(offset: int) -> int:
    """Ask the layout."""
    return SwizzleMode.B128.swizzle(offset)


@exercise(
    "03.3",
    title="Bytes of the four copies",
    frames=("5.4.4", "5.4.5", "5.4.6", "5.4.7"),
    hints=(
        "The credit is that of the box, not of what lies inside the tensor.",
        "A and B: 128 rows of 256 elements of 4 bits.",
        "SFA and SFB: one byte for each row of the tile and 16 elements of K.",
    ),
    why=(
        "A and B: 128 rows of 256 elements, two in a byte. SFA and SFB: one byte for "
        "each row and 16 elements."
    ),
    # One vector of 16 scales; one scale; only the rows that exist.
    wrong=(
        [16_384, 16_384, 16, 16],
        [16_384, 16_384, 1, 1],
        [100 * 128, 16_384, 100 * 16, 2_048],
        [12_800, 16_384, 2_048, 2_048],
    ),
    unit="bytes",
)
def credited() -> list[int]:
    """Ask the tensor maps of the stage."""
    p = plan(GemmConfig())
    k, box = p.tile_k * p.sf_vec_size, (p.tile_k, p.tile_m)
    operands = [operand_map(0, rows, k, 1, box) for rows in (100, 128)]
    scales = [scale_map(0, rows, k, 1, p, p.sf_rows_a) for rows in (100, 128)]
    return [each.box_nbytes for each in (*operands, *scales)]


@exercise(
    "03.4",
    title="Multicast masks of CTA (2, 1)",
    frames=("3.7",),
    hints=(
        "CTA (m, n) has bit m + 4 n.",
        "A belongs to a row of tiles: the CTAs with m = 2, whatever their n.",
        "B belongs to a column of tiles: the CTAs with n = 1.",
    ),
    # The claimed masks; A and B exchanged; CTAs numbered n + 4 m.
    wrong=(
        [0b0000000010101010, 0b0001000100010001],
        [0x00F0, 0x4444],
        [0x0F00, 0x2222],
    ),
)
def masks() -> list[int]:
    """Ask the partition."""
    return list(multicast_masks(2, 1, 4, 4))
