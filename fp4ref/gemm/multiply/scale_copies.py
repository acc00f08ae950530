"""Part 6. scale_copies: the scales of a stage, from shared memory to TMEM."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from fp4ref.gemm.descriptors import SF_BLOCK_STEP, SF_COLUMNS, scale_descriptor
from fp4ref.gemm.pipeline import PipelineState
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.hardware import mbarrier, tcgen05
from fp4ref.hardware.sm import Blocked, Warp, frame


class ScaleColumns(NamedTuple):
    """TMEM addresses of one scale buffer."""

    sfa: int
    sfb: int


class ScaleCopies:
    """The copies of one CTA, and which buffer comes next; none without scales.

    Attributes
    ----------
    buffer
        Of scales, for the next stage.
    reused
        The stage whose commit frees that buffer: `scale_buffers` stages ago. Before
        the first these are the last stages of a round that never was.
    """

    def __init__(self, warp: Warp, storage: SharedStorage, taddr: int) -> None:
        self.warp, self.storage, self.taddr = warp, storage, taddr
        self.buffer = 0
        plan = storage.plan
        self.reused = PipelineState(plan.mainloop_stages - plan.scale_buffers, 1)

    @property
    def k_group(self) -> int:
        """k-tiles of a whole stage."""
        return self.storage.plan.k_group

    @frame("6.6.4")
    def acquire(self) -> Generator[Blocked, None, None]:
        """Wait until a buffer's last MMAs are complete. Frame 6.6.4.

        PTX orders no copy after an earlier MMA. Their commit is the one that gave back
        their stage, so this waits on that stage's empty barrier. With one buffer
        (CUTLASS's way) nothing is waited for.
        """
        plan = self.storage.plan
        if plan.scale_copies and plan.scale_buffers > 1:
            # CUDA asks in the round that never was too: parity 1 passes at once.
            if self.reused.count >= plan.scale_buffers:
                ring = self.storage.ring("mainloop")
                yield from mbarrier.try_wait(
                    self.warp,
                    ring.empty[self.reused.index],
                    self.reused.phase,
                    ring.signals.semantics,
                )
            self.reused.advance(plan.mainloop_stages)

    @frame("6.6.4")
    def copy(self, buffer: int, i: int) -> ScaleColumns:
        """Copy SFA and SFB of the `i`-th k-tile of a stage. Frame 6.6.4."""
        plan, address = self.storage.plan, self.storage.address
        at = self.buffer * plan.k_group + i
        columns = ScaleColumns(
            self.taddr + plan.tmem.sfa[at], self.taddr + plan.tmem.sfb[at]
        )
        self._copy(columns.sfa, address("sfa", buffer), plan.sfa_blocks, plan.a_parts)
        self._copy(columns.sfb, address("sfb", buffer), plan.sfb_blocks, plan.sfb_parts)
        return columns

    def advance(self) -> None:
        """Go to the next buffer."""
        self.buffer = (self.buffer + 1) % self.storage.plan.scale_buffers

    def _copy(self, to: int, source: int, blocks: int, parts: int) -> None:
        """Copy the atoms of one operand: 128 rows and 4 scales each.

        Shared memory has the parts that the CTAs of the cluster sent one after the
        other, and in each the atoms of a row block side by side; TMEM has those at the
        same place along K side by side.
        """
        descriptor, plan = scale_descriptor(source), self.storage.plan
        atoms = max(plan.sf_atoms // parts, 1)
        for along_k in range(plan.sf_atoms):
            for block in range(blocks):
                at = to + (along_k * blocks + block) * SF_COLUMNS
                part, k = divmod(along_k, atoms)
                atom = (part * blocks + block) * atoms + k
                tcgen05.cp(
                    self.warp,
                    at,
                    descriptor + atom * SF_BLOCK_STEP,
                    cta_group=plan.cta_group,
                )
