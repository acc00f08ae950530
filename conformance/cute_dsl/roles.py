"""roles: what the warps of a CTA do, each in its turn of the pipelines."""

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import tcgen05


@cute.jit
def load(loader, loads, k_tiles):
    """Bring every tile along K to a stage that is free."""
    for _ in cutlass.range(k_tiles, unroll=1):
        slot = loader.acquire_and_advance()
        at, into = (None, slot.count), (None, slot.index)
        done = slot.barrier
        for each in loads:
            cute.copy(
                each.atom,
                each.tiles[at],
                each.stages[into],
                tma_bar_ptr=done,
                mcast_mask=each.mask,
            )
    loader.tail()


@cute.jit
def multiply(mma, multiplier, summer, operands, copies, sums, k_tiles):
    """Add the products of all tiles along K; copy their scales before."""
    operand_a, operand_b = operands
    summing = summer.acquire_and_advance()
    mma.set(tcgen05.Field.ACCUMULATE, False)
    for _ in cutlass.range(k_tiles, unroll=1):
        slot = multiplier.wait_and_advance()
        for each in copies:
            stage = (None, None, None, None, slot.index)
            cute.copy(each.copy, each.source[stage], each.target)
        for block in cutlass.range_constexpr(4):
            for each in copies:
                mma.set(each.field, each.tmem[(None, None, block)].iterator)
            place = (None, None, block, slot.index)
            cute.gemm(mma, sums, operand_a[place], operand_b[place], sums)
            mma.set(tcgen05.Field.ACCUMULATE, True)
        slot.release()
    summing.commit()


def store(storer, thread, sums, parts_d, tile):
    """Store the sums of a thread's row once all are there, and free their columns."""
    ready = storer.wait_and_advance()
    read = cute.make_copy_atom(
        tcgen05.Ld32x32bOp(tcgen05.Repetition.x128), cutlass.Float32
    )
    reader = tcgen05.make_tmem_copy(read, sums)
    lane = reader.get_slice(thread)
    values = lane.partition_S(sums)
    to_d = lane.partition_D(parts_d)[(None, None, None, None, *tile, 0)]
    registers = cute.make_rmem_tensor(to_d.shape, cutlass.Float32)
    cute.copy(reader, values, registers)
    write = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32)
    cute.copy(write, registers, to_d)
    ready.release()
