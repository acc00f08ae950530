"""Part 5. multicast_loader: each CTA of a cluster loads a part and sends it to all.

The CTAs of a row share A and SFA, those of a column B and SFB. A part of an operand is
some of its rows, a part of the scales some of their atoms along K: it lies in one piece
in every receiver. The bytes that a pair receives are counted on the barrier of its
leader, which alone expects them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fp4ref.gemm.partition import (
    Coords,
    a_coords,
    b_coords,
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
    of
        Corner of the whole box.
    nth
        Which part of it.
    receivers
        CTAs, as a mask.
    """

    buffer: str
    of: Coords
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
        """Fetch the tensor maps ahead of their first use."""
        params = self.storage.params
        for tensor_map in (params.a, params.b, params.sfa, params.sfb):
            assert tensor_map is not None, "TMA loads it"
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
        assert params.a is not None, "TMA loads it"
        assert params.b is not None, "TMA loads it"
        with self.warp.frame("5.4.4"):
            part = Part("a", a_coords(work, k_tile, plan), cta.nth_of_row, cta.row)
            self._send(params.a, part, i, full)
        with self.warp.frame("5.4.5"):
            at = b_coords(work, k_tile, plan, cta.part_of_pair)
            self._send(params.b, Part("b", at, cta.nth_of_same_b, cta.same_b), i, full)
        with self.warp.frame("5.4.6"):
            part = Part("sfa", sfa_coords(work, k_tile, plan), cta.nth_of_row, cta.row)
            self._send(params.sfa, part, i, full)
        with self.warp.frame("5.4.7"):
            at = sfb_coords(work, k_tile, plan)
            part = Part("sfb", at, cta.nth_of_column, cta.column)
            self._send(params.sfb, part, i, full)

    def _send(self, tensor_map: TensorMap, part: Part, i: int, full: int) -> None:
        """Copy one part; parts follow each other along the second dimension."""
        first, second, *others = part.of
        tma.load(
            self.warp,
            tensor_map,
            (first, second + part.nth * tensor_map.box[1], *others),
            self.storage.address(part.buffer, i) + part.nth * tensor_map.box_nbytes,
            full,
            part.receivers,
            self.storage.plan.cta_group,
        )
