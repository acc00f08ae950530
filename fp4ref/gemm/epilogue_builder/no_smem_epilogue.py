"""no_smem_epilogue: threads store D from registers; C and D take no shared memory."""

from __future__ import annotations

from fp4ref.gemm.epilogue_builder import callbacks, storage
from fp4ref.gemm.epilogue_builder.values import (
    STAGES_BESIDE,
    EpilogueValues,
    SubtileValues,
)
from fp4ref.gemm.why import deduced

SM100 = "sm100_epilogue_nosmem.hpp: SharedStorage"


class Sm90NoSmemEpilogue(EpilogueValues):
    """SM90's default epilogue: each thread stores what it has."""

    @deduced(
        "an empty structure has 1 byte",
        "sm90_builder.inl: the no-smem builder",
    )
    def storage_nbytes(self) -> int:
        """Bytes of shared memory."""
        return storage.EMPTY.nbytes

    mainloop_stages = STAGES_BESIDE


class Sm100NoSmemEpilogue(SubtileValues):
    """SM100's epilogue that takes subtiles from TMEM and stores them itself."""

    @deduced("its stages and its fragment are 1", "epilogue/dispatch_policy.hpp")
    def policy(self) -> str:
        """The dispatch policy by its name."""
        array = "PtrArray" if self.config.chosen.ptr_array else ""
        return f"Sm100{array}NoSmem"

    @deduced(
        "nodes of the fusion, then a buffer for reductions, which ready callbacks may "
        "have; an array of pointers with "
        "a linear combination and no scales has neither",
        SM100,
    )
    def storage_nbytes(self) -> int:
        """Bytes of shared memory."""
        asked, tile = self.config, self.epilogue_tile
        plain = asked.chosen.ptr_array and not asked.block_scaled
        if plain and asked.fusion.name == "LinearCombination":
            return storage.EMPTY.nbytes
        nodes = callbacks.fusion_storage(asked, tile, self.cta_tile[1], 0, 0)
        reduces = asked.callbacks is not None or "DePer" in asked.fusion.name
        buffer = tile.m * tile.n if reduces else 16
        return storage.one_after_another(nodes, storage.Part(buffer, 16)).nbytes

    mainloop_stages = STAGES_BESIDE
