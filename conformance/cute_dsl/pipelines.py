"""pipelines: how the warps of a CTA wait for each other, and who owns its TMEM."""

import cutlass
import cutlass.cute as cute
from cutlass import memory, pipeline
from tiling import STAGES, WARPS

COLUMNS = 256
"""Of TMEM: D has 128, and the scale factors come after it."""


def allocate(smem):
    """Allocate the mbarriers, and where the address in TMEM is told."""

    @cute.struct
    class Storage:
        full_and_empty: cute.struct.MemRange[cutlass.Int64, STAGES * 2]
        accumulator: cute.struct.MemRange[cutlass.Int64, 2]
        freed: cutlass.Int64
        tmem: cutlass.Int32

    return smem.allocate(Storage)


def loads_to_mmas(storage, ranks, tx_bytes):
    """Return who loads the stages and who multiplies what they hold."""
    one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    return pipeline.PipelineTmaUmma.create(
        barrier_storage=storage.full_and_empty.data_ptr(),
        num_stages=STAGES,
        producer_group=one,
        consumer_group=one,
        tx_count=tx_bytes,
        cta_layout_vmnk=ranks,
    ).make_participants()


def mmas_to_stores(storage, ranks, ctas):
    """Return who adds the products up and who stores the sums: every thread."""
    one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    everyone = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32 * WARPS * ctas)
    return pipeline.PipelineUmmaAsync.create(
        barrier_storage=storage.accumulator.data_ptr(),
        num_stages=1,
        producer_group=one,
        consumer_group=everyone,
        cta_layout_vmnk=ranks,
    ).make_participants()


def allocate_tmem(storage, pair):
    """Allocate columns of TMEM; all warps wait until they are there."""
    tmem = memory.TmemAllocator(
        storage.tmem.ptr,
        barrier_for_retrieve=pipeline.NamedBarrier(1, 32 * WARPS),
        is_two_cta=pair,
        two_cta_tmem_dealloc_mbar_ptr=storage.freed.ptr,
    )
    tmem.allocate(COLUMNS)
    tmem.wait_for_alloc()
    return tmem
