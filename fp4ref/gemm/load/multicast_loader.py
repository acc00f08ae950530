"""Part 5. multicast_loader: each CTA of a cluster loads a part and sends it to all.

The CTAs of a row share A and SFA, those of a column B and SFB. A part of an operand is
some of its rows, a part of the scales some of their atoms along K, or a piece of one:
it lies in one piece in every receiver. The bytes that a pair receives are counted on
the barrier of its leader, which alone expects them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fp4ref.gemm.partition import (
    Coords,
    a_coords,
    b_coords,
    part_coords,
    scales_of,
    sfa_coords,
    sfb_coords,
)
from fp4ref.gemm.pipeline import Stage
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware import cluster, mbarrier, tma
from fp4ref.hardware.sm import Warp
from fp4ref.hardware.tensor_map import TensorMap


class Part(NamedTuple):
    """What one CTA sends of one tensor.

    Attributes
    ----------
    buffer
        Name of the buffers.
    of, whole
        Corner of the whole box, and its extents.
    nth
        Which part of it.
    receivers
        CTAs, as a mask.
    """

    buffer: str
    of: Coords
    whole: Coords
    nth: int
    receivers: int


@dataclass(frozen=True, slots=True)
class MulticastLoader:
    """The loads of one CTA, for itself and for its cluster."""

    warp: Warp
    storage: SharedStorage

    @property
    def k_group(self) -> int:
        """k-tiles of a whole stage."""
        return self.storage.plan.k_group

    def expect(self, stage: Stage, k_tiles: int) -> None:
        """Tell the leader's full barrier how many bytes will come. Frame 5.4.8."""
        if self.storage.cta.leads:
            nbytes = k_tiles * self.storage.plan.k_tile_tx_bytes
            mbarrier.arrive_expect_tx(
                self.warp, stage.full, nbytes, semantics=stage.signals.semantics
            )

    def prefetch(self) -> None:
        """Fetch the tensor maps ahead of their first use, and tell the masks."""
        params, cta = self.storage.params, self.storage.cta
        with self.warp.frame("1.5"):
            self.warp.note(
                "cluster.masks",
                **{"row": cta.row, "column": cta.column, "same_b": cta.same_b},
                releases=cta.releases,
            )
        for tensor_map in (params.a, params.b, params.sfa, params.sfb):
            if tensor_map is not None:
                tma.prefetch_tensormap(self.warp, tensor_map)

    def load(self, stage: Stage, work: WorkTile, group: range) -> None:
        """Start the copies of the k-tiles of a stage. Frames 5.4.4 to 5.4.7."""
        full = cluster.mapa(self.warp, stage.full, self.storage.cta.leader)
        for i, k_tile in enumerate(group):
            self.load_one(full, stage.index * self.k_group + i, work, k_tile)

    def load_one(self, full: int, i: int, work: WorkTile, k_tile: int) -> None:
        """Start the copies of one k-tile into buffer `i`."""
        storage, plan, cta = self.storage, self.storage.plan, self.storage.cta
        params = storage.params
        with self.warp.frame("5.4.4"):
            at = a_coords(work, k_tile, plan)
            whole: Coords = (plan.tile_k, plan.tile_m, 1)
            part = Part("a", at, whole, cta.nth_of_row, cta.row)
            self._send(params.a, part, i, full)
        with self.warp.frame("5.4.5"):
            at = b_coords(work, k_tile, plan, cta.part_of_pair)
            whole = (plan.tile_k, plan.b_rows, 1)
            part = Part("b", at, whole, cta.nth_of_same_b, cta.same_b)
            self._send(params.b, part, i, full)
        if params.sfa is None or params.sfb is None:
            return
        with self.warp.frame("5.4.6"):
            at, whole = sfa_coords(work, k_tile, plan), scales_of(plan, plan.sfa_blocks)
            part = Part("sfa", at, whole, cta.nth_of_row, cta.row)
            self._send(params.sfa, part, i, full)
        with self.warp.frame("5.4.7"):
            at, whole = sfb_coords(work, k_tile, plan), scales_of(plan, plan.sfb_blocks)
            part = Part("sfb", at, whole, cta.nth_of_column, cta.column)
            self._send(params.sfb, part, i, full)

    def _send(self, tensor_map: TensorMap, part: Part, i: int, full: int) -> None:
        """Copy one part; parts follow each other in memory."""
        at = part.nth * tensor_map.box_smem_nbytes
        tma.load(
            self.warp,
            tensor_map,
            part_coords(part.of, part.nth, tensor_map.box, part.whole),
            self.storage.address(part.buffer, i) + at,
            full,
            part.receivers,
            self.storage.plan.cta_group,
        )
