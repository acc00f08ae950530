"""tma_epilogue: C and D go by TMA: policy, copies, layouts and bytes, with reasons."""

from __future__ import annotations

from fp4ref.gemm.epilogue_builder import (
    callbacks,
    copy_operations,
    dispatch_policy,
    smem_layout,
    storage,
)
from fp4ref.gemm.epilogue_builder.element_types import VOID
from fp4ref.gemm.epilogue_builder.smem_layout import SmemLayout
from fp4ref.gemm.epilogue_builder.storage import Part
from fp4ref.gemm.epilogue_builder.values import STAGES_BESIDE, SubtileValues
from fp4ref.gemm.why import deduced

_POLICY = "{arch}_builder.inl: the dispatch policy"
_ATOM = "gemm/collective/builders/{arch}_common.inl: the selector of atoms"
_COPY = "{arch}_builder.inl and sm90_common.inl: the copy operations"
_HPP = "{arch}_epilogue_tma_warpspecialized.hpp"
_SWIZZLE = "detail/layout.hpp: alignment_for_swizzle"


class TmaEpilogue(SubtileValues):
    """An epilogue whose C and D go through shared memory, by TMA."""

    # -- dispatch policy -------------------------------------------------------------

    @deduced("min({p.subtiles} subtiles, 4); with reuse at least StagesD + 1", _POLICY)
    def stages_c(self) -> int:
        """Stages of the load pipeline."""
        return dispatch_policy.stages_c(self.subtiles, self._builder_reuses)

    @deduced("min({p.subtiles} subtiles, 2)", _POLICY)
    def stages_d(self) -> int:
        """Subtiles of D that may be on their way."""
        return dispatch_policy.stages_d(self.subtiles)

    @deduced("a subtile of {p.epilogue_tile} over {p.rules.fragment}", _POLICY)
    def fragment_size(self) -> int:
        """Elements of a subtile that one thread has."""
        tile = self.epilogue_tile
        return tile.m * tile.n // dispatch_policy.threads(self.config)

    @deduced(
        "if {p.rules.reuse}; C is {c.c}, D {p.element_d}. A void D has no memory to "
        "share",
        _POLICY,
    )
    def reuse_smem_c(self) -> bool:
        """Whether D is written over C in shared memory."""
        return self._builder_reuses and self.config.element_d != VOID

    @deduced(
        "if {p.rules.delay}",
        _POLICY,
    )
    def delay_tma_store(self) -> bool:
        """Whether a subtile is stored after the next one has been computed."""
        asked = self.config
        delayed = dispatch_policy.delays_store(asked)
        return delayed and dispatch_policy.unrolls_subtiles(asked)

    @deduced("stages, fragment, reuse and delay as the builder passes them on", _POLICY)
    def policy(self) -> str:
        """The dispatch policy by its name, with its numbers."""
        asked = self.config
        array = "PtrArray" if asked.chosen.ptr_array else ""
        numbers = [str(self.stages_c), str(self.stages_d), str(self.fragment_size)]
        flags = (self._builder_reuses, dispatch_policy.delays_store(asked))
        numbers += [str(flag).lower() for flag in flags]
        if array and asked.arch == "sm90":
            numbers.append(str(asked.chosen.warp_groups))
        name = f"{asked.arch.capitalize()}{array}TmaWarpSpecialized"
        return f"{name}<{', '.join(numbers)}>"

    # -- copies ----------------------------------------------------------------------

    @deduced("16 divides the subtile's N, or 8 does", copy_operations.SM90_ATOM)
    def copy_atom_c(self) -> str | None:
        """SM90's copy by which accumulators are split among threads."""
        if self.config.arch != "sm90":
            return None
        return copy_operations.copy_atom_c(self.epilogue_tile)

    @deduced("C comes by TMA, in tiles", _COPY)
    def copy_g2s(self) -> str:
        """Copy of C from global to shared memory."""
        return copy_operations.G2S

    @deduced(
        "the mirror of the store that {p.layout_of_c}-major {p.element_c} would have",
        _COPY,
    )
    def copy_s2r(self) -> str:
        """Copy of C from shared memory to registers."""
        return copy_operations.s2r(
            *(self.config.arch, self.element_c, self.layout_of_c),
            *(self.epilogue_tile, self.config.accumulator, self.copy_t2r or ""),
        )

    @deduced("a shuffle for M-major 4-bit elements of SM100 alone", _COPY)
    def copy_r2r(self) -> str:
        """What happens to D in registers before it is stored."""
        asked = self.config
        return copy_operations.r2r(asked.arch, self.element_d, asked.d_layout)

    @deduced(
        "{c.d_layout}-major {p.element_d}: {p.rules.store}",
        _COPY,
    )
    def copy_r2s(self) -> str:
        """Copy of D from registers to shared memory."""
        return copy_operations.r2s(
            *(self.config.arch, self.element_d, self.config.d_layout),
            *(self.epilogue_tile, self.config.accumulator, self.copy_t2r or ""),
        )

    @deduced("D goes by TMA, in tiles", _COPY)
    def copy_s2g(self) -> str:
        """Copy of D from shared to global memory."""
        return copy_operations.S2G

    # -- layouts in shared memory ----------------------------------------------------

    @deduced(
        "{p.layout_of_c}-major {p.element_c}: {p.rules.atom}",
        _ATOM,
    )
    def atom_c(self) -> SmemLayout:
        """Swizzle atom of C."""
        return smem_layout.atom(
            *(self.config.arch, self.element_c, self.layout_of_c, self.epilogue_tile)
        )

    @deduced(
        "{c.d_layout}-major {p.element_d}: {p.rules.atom}",
        _ATOM,
    )
    def atom_d(self) -> SmemLayout:
        """Swizzle atom of D."""
        return smem_layout.atom(
            *(self.config.arch, self.element_d, self.config.d_layout),
            self.epilogue_tile,
        )

    @deduced("atoms over a subtile, {p.stages_c} times", _HPP)
    def layout_c(self) -> SmemLayout:
        """All stages of C."""
        return self._staged(self.atom_c, self.layout_of_c, self.stages_c)

    @deduced("atoms over a subtile, {p.store_stages} times: as C with reuse", _HPP)
    def layout_d(self) -> SmemLayout:
        """All stages of D."""
        return self._staged(self.atom_d, self.config.d_layout, self.store_stages)

    @deduced("one period of C's swizzle", _SWIZZLE)
    def alignment_c(self) -> int:
        """Bytes to which C's memory is aligned."""
        return self.atom_c.alignment

    @deduced("one period of D's swizzle", _SWIZZLE)
    def alignment_d(self) -> int:
        """Bytes to which D's memory is aligned."""
        return self.atom_d.alignment

    # -- pipelines and bytes ---------------------------------------------------------

    @deduced("one subtile of C in shared memory", _HPP)
    def transaction_nbytes(self) -> int:
        """Bytes that a stage of the load pipeline expects."""
        return self._stage_bits(self.atom_c) // 8

    @deduced("with reuse as many as C has, else StagesD", _HPP)
    def store_stages(self) -> int:
        """Stages of the store pipeline."""
        return self.stages_c if self.reuse_smem_c else self.stages_d

    @deduced("StagesD - 1: a stage is taken before its last store has ended", _HPP)
    def store_unacquired(self) -> int:
        """Stores that may still be on their way when a stage is taken."""
        return self.stages_d - 1

    @deduced("no C, one memory for C and D, or one for each", storage.SOURCE)
    def collective_storage(self) -> str:
        """CUTLASS's name of the memory of C and D."""
        return storage.kind(source=self._source, reuse=self.reuse_smem_c)

    @deduced(
        "{p.stages_c} stages of C, {p.store_stages} of D in {p.collective_storage}",
        storage.SOURCE,
    )
    def collective_nbytes(self) -> int:
        """Bytes of C and D."""
        return self._collective.nbytes

    @deduced(
        "vectors of N elements, an auxiliary matrix, maxima of warps; a structure of "
        "nothing has 1",
        callbacks.NODES,
    )
    def fusion_nbytes(self) -> int:
        """Bytes of the fusion's nodes."""
        return self._fusion.nbytes

    @deduced(
        "{p.collective_nbytes:,} and {p.fusion_nbytes:,}, rounded up to the alignment",
        storage.SOURCE,
    )
    def tensors_nbytes(self) -> int:
        """Bytes of the tensors."""
        return self._tensors.nbytes

    @deduced("two barriers of 8 bytes for each of {p.stages_c} stages", storage.SOURCE)
    def pipeline_nbytes(self) -> int:
        """Bytes of the load pipeline's barriers."""
        return storage.pipeline(self.stages_c).nbytes

    @deduced(
        "tensors, tensor maps with arrays of pointers, and barriers, rounded up: what "
        "the mainloop's stages do not get",
        storage.SOURCE,
    )
    def storage_nbytes(self) -> int:
        """Bytes of the whole epilogue in shared memory."""
        parts = [self._tensors]
        if self.config.chosen.ptr_array:
            parts.append(storage.tensor_maps(1 + self.config.chosen.warp_groups))
        parts.append(storage.pipeline(self.stages_c))
        return storage.one_after_another(*parts).nbytes

    mainloop_stages = STAGES_BESIDE

    # -- what these are made of ------------------------------------------------------

    @property
    def _source(self) -> bool:
        return self.config.c != VOID

    @property
    def _builder_reuses(self) -> bool:
        return dispatch_policy.reuses_c(self.config, self.element_d)

    def _stage_bits(self, atom: SmemLayout) -> int:
        return self.epilogue_tile.m * self.epilogue_tile.n * atom.bits

    def _staged(self, atom: SmemLayout, layout: str, stages: int) -> SmemLayout:
        stride = None
        if self.config.arch == "sm100":
            shared = (self.atom_c, self.atom_d) if self.reuse_smem_c else (atom,)
            stride = max(map(self._stage_bits, shared)) // atom.bits
        return smem_layout.staged(atom, layout, self.epilogue_tile, stages, stride)

    @property
    def _collective(self) -> Part:
        c = self._stage_bits(self.atom_c) // 8 * self.stages_c
        d = self._stage_bits(self.atom_d) // 8 * self.store_stages
        return storage.collective_storage(
            Part(c, self.alignment_c),
            Part(d, self.alignment_d),
            source=self._source,
            reuse=self.reuse_smem_c,
        )

    @property
    def _fusion(self) -> Part:
        return callbacks.fusion_storage(
            *(self.config, self.epilogue_tile, self.cta_tile[1]),
            *(self.stages_c, self.stages_d),
        )

    @property
    def _tensors(self) -> Part:
        return storage.one_after_another(self._collective, self._fusion)
