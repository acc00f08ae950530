"""expected_events: what every agent must do, written from the hardware's formulas.

An independent table: plain Python with its own constants, no import of fp4ref. Sources
are the CUTLASS kernel's counts, its loop bodies and the PTX rules, not the emulator.
The roles are in ``expected_mma.py``, ``expected_load.py`` and ``expected_epilogue.py``.
"""

from __future__ import annotations

from expected_epilogue import EpilogueWarps
from expected_load import EpilogueLoadWarp, LoadWarp, SchedulerWarp
from expected_mma import MmaWarp
from expected_problem import Gemm
from expected_steps import Agent, Step


class Expected(MmaWarp, SchedulerWarp, LoadWarp, EpilogueLoadWarp, EpilogueWarps):
    """The agents of one CTA that works on `tiles`, in that order."""

    def warps(self) -> dict[str, Agent]:
        """A fresh generator for each warp."""
        roles = [self.mma(), self.scheduler(), self.load(), self.epilogue_load()]
        roles += [self.epilogue(warp) for warp in range(4, 8)]
        return {f"warp{i}": role for i, role in enumerate(roles)}


UNITS = {
    "cp.async.bulk.tensor.3d.load": ("tma",),
    "cp.async.bulk.tensor.4d.load": ("tma",),
    "cp.async.bulk.tensor.3d.store": ("tma.read", "tma"),
    "tcgen05.cp": ("tcgen05",),
    "tcgen05.mma": ("tcgen05",),
    "tcgen05.commit": ("tcgen05",),
    "tcgen05.ld": ("tmem",),
    "clusterlaunchcontrol.try_cancel": ("clc",),
}
"""Units on which an issued operation lands, in this order."""


def event_count(g: Gemm, tiles_per_cta: list[int], vain_peeks: int) -> int:
    """Events of a run over the whole grid, in closed form.

    A vain peek costs one event, the wait that follows; what a round does not peek at,
    it waits for.
    """
    c, clc = int(g.loads_c), int(g.clc)
    acc, fetch = g.accumulator_stages, 6 if clc else 1
    inits = 2 * g.ring + 2 * acc + c * (2 * g.c_stages + 1) + clc * 4 * g.clc_stages
    tails = g.ring + acc + c * g.c_stages + clc * g.clc_stages
    per_cta = inits + tails + 36 + 3 * c + clc
    per_tile = (6 + c + clc) * fetch + 35 + 11 * clc
    per_k_tile = 42  # load warp 13, MMA warp 29
    # C's fence is D's where they share a stage; the four warps meet if rows differ.
    per_subtile = 37 + 27 * c + 4 * (g.mixed - g.releases)
    rows = g.tiles[0] * g.batches
    by_column = rows * (
        4 * g.bias * -(-g.n // 32) + 8 * (g.d == "nvfp4") * -(-g.n // 64)
    )
    reuse = sum(max(0, t * g.k_tiles - 2) for t in tiles_per_cta)
    return (
        len(tiles_per_cta) * per_cta
        + sum(tiles_per_cta)
        * (per_tile + per_k_tile * g.k_tiles + per_subtile * g.subtiles)
        + by_column
        + reuse * (g.scale_buffers == 2)
        + vain_peeks
    )


def is_promised(first: Step, second: Step) -> bool:
    """Whether PTX lets `second`, issued later by the same thread, land only afterwards.

    Copies come before MMAs; MMAs on one accumulator keep their order; a commit follows
    all copies and MMAs. Nothing orders a copy, or anything after a commit. CLC requests
    follow each other because each waits for the answer before.
    """
    if first.operation.startswith("cluster"):
        return second.operation == first.operation
    if first.operation == "tcgen05.cp":
        return second.operation in ("tcgen05.mma", "tcgen05.commit")
    if first.operation == "tcgen05.mma":
        same = first.payload["d_tmem"] == second.payload.get("d_tmem")
        return second.operation == "tcgen05.commit" or same
    return False
