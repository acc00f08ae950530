"""hardware: what each unit does. The interface speaks raw integers.

Shared addresses, TMEM addresses, 64-bit descriptors, 32-bit idesc and tensor maps are
all that a kernel passes in, so that compiled PTX can drive the same machine. One module
is one unit: `gmem`, `smem`, `mbarrier`, `named_barrier`, `tma` (with `tensor_map`),
`cp_async`, `tmem` (on `tensor_memory`), `tcgen05` (with `mma_unscaled` and
`instr_descriptor`), `clc`, `cluster`. `sm` holds CTAs and warps, `machine` runs them,
`launch` checks grids, `in_flight` knows asynchronous operations, and `schedule` decides
the order.
"""
