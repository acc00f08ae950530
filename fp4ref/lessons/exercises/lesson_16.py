"""lesson_16: exercises of clusters; the answers come from the plan and the masks."""

from __future__ import annotations

from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.cta_in_cluster import CtaInCluster
from fp4ref.gemm.plan import plan
from fp4ref.lessons.exercise import exercise


@exercise(
    "16.1",
    title="What one CTA of a cluster of 4 x 2 loads",
    frames=("3.7",),
    hints=(
        "A and SFA are shared by the row, B and SFB by the column.",
        "A row has cluster_n CTAs, a column cluster_m.",
        "A is 16,384 bytes and SFA 2,048; so are B and SFB. Which is cut in two?",
    ),
    why=(
        "Two CTAs share a row of tiles and four a column: each asks for half of A and "
        "SFA, and a quarter of B and SFB."
    ),
    # All of it; the two exchanged to 8; only A and B; the scales whole.
    wrong=(36_864, 4_608, 12_288, 16_384, 18_432),
    unit="bytes",
)
def nbytes_of_a_cta() -> int:
    """Ask the plan for the parts."""
    p = plan(GemmConfig.nvfp4(cluster_m=4, cluster_n=2))
    of_a = (p.a_nbytes + p.sfa_nbytes) // p.a_parts
    return of_a + p.b_nbytes // p.b_parts + p.sfb_nbytes // p.sfb_parts


@exercise(
    "16.2",
    title="To whom a stage is given back",
    frames=("1.5", "6.7"),
    hints=(
        "Those who will send to this CTA again have to know.",
        "Its row sends A and SFA, its column B and SFB; it is in both.",
        "Rank 1 has m = 1 and n = 0. Which ranks have m = 1, and which n = 0?",
    ),
    why=(
        "Its stage holds what CTAs of its row and of its column sent, so all of them "
        "must know that it is free."
    ),
    # Its row; its column; itself; all.
    wrong=([1, 3], [0, 1], [1], [0, 1, 2, 3]),
)
def releases_of_rank_1() -> list[int]:
    """Read the mask."""
    mask = CtaInCluster(1, 0, 2, 2, 1).releases
    return [rank for rank in range(4) if mask >> rank & 1]
