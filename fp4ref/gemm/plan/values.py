"""Parts 1, 3 and 4. values: every number of the kernel, deduced once, with its reason.

The budget is real: 232,448 bytes of shared memory and 512 TMEM columns. Source of the
formula: CUTLASS ``sm100_blockscaled_umma_builder.inl`` and
``sm100_pipeline_carveout.inl``.
"""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Any

from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.fusion.launch_arguments import fields_of
from fp4ref.gemm.params import D_ADDRESS, FIELDS, Field
from fp4ref.gemm.plan.accumulator_values import AccumulatorValues
from fp4ref.gemm.plan.json_values import json_values
from fp4ref.gemm.plan.rings import RingSpec, rings
from fp4ref.gemm.plan.smem_map import Buffer, SmemMap
from fp4ref.gemm.plan.tmem_map import TmemMap
from fp4ref.gemm.plan.warps import WARP_THREADS, RoleWarps, WarpRole, warps
from fp4ref.gemm.why import Deduced, Why, deduced
from fp4ref.hardware.clc import RESPONSE_NBYTES
from fp4ref.hardware.shared_memory import NBYTES as SMEM_NBYTES

STAGE_BARRIER_NBYTES = 128
"""A stage's two barriers in the budget formula of CUTLASS 4.2.2 and later, which rounds
them up. 4.2.0 and 4.2.1 take their 16 bytes: 36,880 for a stage of 128 x 128 x 256, not
36,992."""

VOID = "void"
"""How a trace calls the format of a D that is not there: CUTLASS's word."""

_BUILDER = "CUTLASS sm100_blockscaled_umma_builder.inl"
_CARVEOUT = "CUTLASS sm100_pipeline_carveout.inl"
_KERNEL = "CUTLASS sm100_gemm_tma_warpspecialized.hpp"


class Plan(AccumulatorValues):
    """What follows from a configuration.

    Parameters
    ----------
    config
        An allowed one: see `fp4ref.gemm.plan.plan`.
    """

    def __init__(self, config: GemmConfig) -> None:
        self.config = config

    @cached_property
    def why(self) -> dict[str, Why]:
        """Each deduced value by name, with one sentence and the source."""
        return {
            name: each.why(self)
            for kind in reversed(Plan.__mro__)
            for name, each in vars(kind).items()
            if isinstance(each, Deduced)
        }

    def to_dict(self) -> dict[str, Any]:
        """Return each deduced value, and the formats asked, in JSON values.

        A trace of the kernel holds it, so that who reads the trace plans nothing.
        """
        config = self.config
        return {name: json_values(getattr(self, name)) for name in self.why} | {
            "c_format": config.epilogue.c_format,
            "d_format": config.epilogue.d_format or VOID,
            "sfd_format": config.epilogue.sfd_format.name,
            "tile_scheduler": config.tiles.scheduler,
        }

    # -- the tile ------------------------------------------------------------------

    @deduced("asked: {c.cluster_m} x {c.cluster_n}", _BUILDER)
    def cluster(self) -> tuple[int, int, int]:
        """Extents of a cluster in CTAs, x first."""
        return self.config.cluster.cluster_m, self.config.cluster.cluster_n, 1

    @deduced("CTAs of {c.cluster_m} x {c.cluster_n}", _BUILDER)
    def cluster_size(self) -> int:
        """CTAs of a cluster."""
        return prod(self.cluster)

    @deduced("the {c.cluster_n} CTAs of a row load one part each", _BUILDER)
    def a_parts(self) -> int:
        """Parts in which A's and SFA's boxes are loaded, each sent to all the row."""
        return self.config.cluster.cluster_n

    @deduced("{c.cluster_m} CTAs of a column in groups of {p.cta_group}", _BUILDER)
    def b_parts(self) -> int:
        """Parts in which B's box is loaded, each sent to those with the same half."""
        return self.config.cluster.cluster_m // self.cta_group

    @deduced("the {c.cluster_m} CTAs of a column load one part each", _BUILDER)
    def sfb_parts(self) -> int:
        """Parts in which SFB's box is loaded: each CTA of a pair has all of SFB."""
        return self.config.cluster.cluster_m

    @deduced(
        "columns of D in pieces of {c.subtile_n}: {p.part_n} / {c.subtile_n}", _BUILDER
    )
    def subtiles(self) -> int:
        """Epilogue subtiles of a tile."""
        return self.part_n // self.subtile_n

    # -- a mainloop stage ----------------------------------------------------------

    @deduced("asked: {value}; the last stage of a tile may have fewer", _BUILDER)
    def k_group(self) -> int:
        """k-tiles of a stage."""
        return self.config.mainloop.k_group

    @deduced("{p.k_tile_tx_bytes:,} for each of {p.k_group} k-tiles", _BUILDER)
    def stage_tx_bytes(self) -> int:
        """Bytes that a stage's loads credit to its full barrier. Frame 5.4.8."""
        return self.k_group * self.k_tile_tx_bytes

    @deduced(
        "{p.k_group} of {p.k_tile_nbytes:,} bytes and "
        f"{STAGE_BARRIER_NBYTES} for two barriers, as 4.2.2 rounds them",
        _BUILDER,
    )
    def stage_nbytes(self) -> int:
        """A stage in CUTLASS 4.2.2's budget formula: its data and its barriers."""
        return self.k_group * self.k_tile_nbytes + STAGE_BARRIER_NBYTES

    # -- how many stages -----------------------------------------------------------

    @deduced(
        f"{SMEM_NBYTES:,} - "
        "{p.carveout_nbytes} - {p.epilogue_nbytes:,} of epilogue; {p.stage_nbytes:,} a "
        "stage: {value}",
        _CARVEOUT,
    )
    def most_stages(self) -> int:
        """Mainloop stages that fit. Frame 1.1.

        Where D lies in C's memory the epilogue is smaller: for bf16 C and D, with four
        C stages, 33,792 bytes instead of 49,152, and five stages instead of four.
        """
        free = SMEM_NBYTES - self.carveout_nbytes - self.epilogue_nbytes
        return free // self.stage_nbytes

    @deduced("asked: {c.stages}; None takes all {p.most_stages} that fit", _CARVEOUT)
    def mainloop_stages(self) -> int:
        """Mainloop stages in use."""
        stages = self.config.mainloop.stages
        return self.most_stages if stages is None else stages

    @deduced(
        "mma_loop={c.mma_loop!r}: two rounds of {p.mainloop_stages} stages if unrolled",
        _KERNEL,
    )
    def round_stages(self) -> int:
        """Stages that the MMA warp's loop has written out; 0 if none.

        After one round the phase has flipped, after two all is as before.
        """
        unrolled = self.config.mainloop.mma_loop == "unrolled"
        return 2 * self.mainloop_stages if unrolled else 0

    @deduced("{p.k_group} for each of {p.round_stages} stages", _KERNEL)
    def round_k_tiles(self) -> int:
        """k-tiles of those stages."""
        return self.round_stages * self.k_group

    # -- roles, rings and maps -----------------------------------------------------

    @deduced(
        "one warp a role and {c.epilogue_warps} of epilogue, order {c.warp_order}",
        _KERNEL,
    )
    def warps(self) -> tuple[RoleWarps, ...]:
        """The table of roles."""
        return warps(
            loads_c=self.loads_c,
            asks_clc=self.config.tiles.scheduler == "clc",
            order=self.config.warps.warp_order,
            epilogue_warps=self.config.warps.epilogue_warps,
        )

    @deduced("fixed by the machine", "PTX: warps")
    def warp_threads(self) -> int:
        """Threads of a warp."""
        return WARP_THREADS

    @deduced(
        "asked: {value}; each quarter of the TMEM lanes has one or two",
        "PTX: tcgen05.ld access",
    )
    def epilogue_warps(self) -> int:
        """Warps of the epilogue."""
        return self.config.warps.epilogue_warps

    @deduced("{p.warp_threads} of {p.epilogue_warps} warps", _KERNEL)
    def epilogue_threads(self) -> int:
        """Threads of the epilogue."""
        return self.epilogue_warps * self.warp_threads

    @deduced("{p.warp_threads} of every warp", _KERNEL)
    def threads(self) -> int:
        """Threads of a CTA."""
        return sum(each.threads for each in self.warps)

    @deduced(
        "the threads of every role that asks for tiles, in {p.cluster_size} CTAs, with "
        "one scheduler warp",
        _KERNEL,
    )
    def clc_consumers(self) -> int:
        """Threads that read each CLC answer. Frame 1.10.

        Scheduler, load, MMA and four epilogue warps; the epilogue load warp if it
        works. In a cluster only the scheduler warp of the first CTA asks.
        """
        threads = sum(each.threads for each in self.warps if each.works)
        return threads + (self.cluster_size - 1) * (threads - WARP_THREADS)

    @deduced("the barriers that the roles meet at, in CUTLASS's order", _KERNEL)
    def rings(self) -> tuple[RingSpec, ...]:
        """The table of barrier rings."""
        return rings(
            self.config,
            stages=self.mainloop_stages,
            stage_tx_bytes=self.stage_tx_bytes,
            c_tx_bytes=self.c_subtile_nbytes,
            loads_c=self.loads_c,
            clc_consumers=self.clc_consumers,
            clc_tx_bytes=RESPONSE_NBYTES,
            cta_group=self.cta_group,
            accumulators=self.accumulator_barriers,
            overlapped=self.overlapped,
            releases=self.a_parts + self.b_parts - 1,
            copiers=WARP_THREADS if self.by_cp_async else 0,
            epilogue_warps=self.epilogue_warps,
        )

    @deduced("what lies behind the barriers: answers, TMEM pointer, tiles", _KERNEL)
    def buffers(self) -> tuple[Buffer, ...]:
        """The table of buffers; 128-byte swizzle repeats after 1,024 bytes."""
        config, stages = self.config, self.mainloop_stages * self.k_group
        answer = RESPONSE_NBYTES
        of_formula = Buffer(
            "element_wise", "accumulator", 1, self.element_wise_nbytes, 1024
        )
        return (
            Buffer(
                "clc_response", "clc_response", config.tiles.clc_stages, answer, answer
            ),
            Buffer("tmem_pointer", "tmem_pointer", 1, 4, 8, numbered=False),
            *self._subtile_buffers(),
            *([of_formula] if self.in_smem else []),
            Buffer("a", "A", stages, self.a_nbytes, 1024),
            Buffer("b", "B", stages, self.b_nbytes, 1024),
            Buffer("sfa", "SFA", stages, self.sfa_nbytes, 128, self.sf_atoms > 0),
            Buffer("sfb", "SFB", stages, self.sfb_nbytes, 128, self.sf_atoms > 0),
        )

    def _subtile_buffers(self) -> tuple[Buffer, Buffer]:
        """D's stages, and C's: their own, or the same."""
        of_d, of_c = self.store_stage_nbytes, self.c_subtile_nbytes
        stages, loads_c = self.config.epilogue.c_stages, self.loads_c
        if not self.reuse_smem_c:
            return (
                Buffer("d_subtile", "D", self.store_stages, of_d, 1024, self.stages_d),
                Buffer("c_subtile", "C", stages, of_c, 1024, loads_c),
            )
        label = "C and D" if loads_c else "D"
        return (
            Buffer("d_subtile", label, stages, of_d, 1024),
            Buffer("c_subtile", label, stages, of_d, 1024, False, lies_in="d_subtile"),
        )

    @deduced("rings, then buffers, each at the next multiple of its alignment", _KERNEL)
    def smem(self) -> SmemMap:
        """Offsets in shared memory."""
        return SmemMap.of(self.rings, self.buffers)

    @deduced(
        "{c.accumulator_stages} accumulators {p.accumulator_stride} columns apart, "
        "then {c.scale_buffers} of SFA and SFB for each of {p.k_group} k-tiles",
        _BUILDER,
    )
    def tmem(self) -> TmemMap:
        """Columns in TMEM."""
        atoms = self.sf_atoms
        return TmemMap.of(
            self.config,
            (self.part_n, self.accumulator_stride),
            atoms * self.sfa_columns,
            atoms * self.sfb_columns,
        )

    @cached_property
    def _by_name(self) -> dict[str, Buffer]:
        return {each.name: each for each in self.buffers}

    @property
    def fields(self) -> tuple[Field, ...]:
        """Every field of the kernel's parameter block; the tree's come last."""
        of_rows = (D_ADDRESS,) if self.addresses_d else ()
        return (*FIELDS, *of_rows, *fields_of(self.fusion))

    def first_warp(self, role: WarpRole) -> int:
        """Return the first warp of a role."""
        return next(each.first for each in self.warps if each.role is role)

    def ring(self, name: str) -> RingSpec:
        """Return a row of the table of rings."""
        return next(each for each in self.rings if each.name == name)

    def buffer(self, name: str) -> Buffer:
        """Return a row of the table of buffers."""
        return self._by_name[name]
