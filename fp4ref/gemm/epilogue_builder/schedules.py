"""schedules: CUTLASS's epilogue schedules, by name.

Source: CUTLASS ``epilogue/dispatch_policy.hpp``, and the specialisations of
``CollectiveBuilder`` in ``sm90_builder.inl`` and ``sm100_builder.inl``.
"""

from __future__ import annotations

from dataclasses import dataclass

AUTO = "auto"
"""``EpilogueScheduleAuto``: the builder picks."""


@dataclass(frozen=True)
class Schedule:
    """An epilogue schedule.

    Attributes
    ----------
    tma
        Whether C and D go through shared memory and TMA; if not, threads store D.
    ptr_array
        Whether C and D are arrays of pointers, one for each group or batch.
    cooperative
        SM90: whether two warpgroups share a tile, 256 threads in all.
    cta_group
        SM100: CTAs of an MMA, 1 or 2.
    warp_groups
        SM90, arrays of pointers: warpgroups that change a tensor map of D each.
    """

    name: str
    arch: str
    tma: bool
    ptr_array: bool = False
    cooperative: bool = False
    cta_group: int = 1
    warp_groups: int = 1


_SM90 = (
    Schedule("TmaWarpSpecialized", "sm90", True),
    Schedule("TmaWarpSpecializedCooperative", "sm90", True, cooperative=True),
    Schedule("PtrArrayTmaWarpSpecialized", "sm90", True, ptr_array=True),
    Schedule("PtrArrayTmaWarpSpecializedPingpong", "sm90", True, True, warp_groups=2),
    Schedule(
        *("PtrArrayTmaWarpSpecializedCooperative", "sm90", True, True, True),
        warp_groups=2,
    ),
    Schedule("NoSmemWarpSpecialized", "sm90", False),
    Schedule("PtrArrayNoSmemWarpSpecialized", "sm90", False, ptr_array=True),
)
_SM100 = tuple(
    Schedule(f"{name}{group}Sm{kind}", "sm100", tma, array, cta_group=group)
    for name, tma, array, kinds in (
        ("TmaWarpSpecialized", True, False, ("", "Nvf4", "Mxf4", "Mxf8f6f4")),
        ("PtrArrayTmaWarpSpecialized", True, True, ("",)),
        ("NoSmemWarpSpecialized", False, False, ("",)),
        ("PtrArrayNoSmemWarpSpecialized", False, True, ("",)),
    )
    for group in (1, 2)
    for kind in kinds
)
SCHEDULES = {each.name: each for each in (*_SM90, *_SM100)}
"""Every schedule by CUTLASS's name."""


def automatic(arch: str, tile_m: int, cluster_m: int, block_scaled: bool) -> Schedule:
    """Return what ``EpilogueScheduleAuto`` stands for.

    SM90's choice stores without shared memory, because it has to go with every
    mainloop. SM100's is a pair of CTAs where the cluster has an even number of them
    along M and the MMA's tile is that of a pair.
    """
    if arch == "sm90":
        return SCHEDULES["NoSmemWarpSpecialized"]
    of_a_pair = (256,) if block_scaled else (256, 128)
    group = 2 if cluster_m % 2 == 0 and tile_m in of_a_pair else 1
    return SCHEDULES[f"TmaWarpSpecialized{group}Sm"]
