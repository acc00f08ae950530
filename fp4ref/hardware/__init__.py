"""hardware: what each unit does. The interface speaks raw integers.

Shared addresses, TMEM addresses, 64-bit descriptors, 32-bit idesc and tensor maps are
all that a kernel passes in, so that compiled PTX can drive the same machine. Four
layers, and each knows only those before it:

- state: memories and barriers that know no warp (`global_memory`, `shared_memory`,
  `tensor_memory`, `registers`, `mbarrier_unit`, `cta_barriers`), and `machine_state`:
  what is in flight (`in_flight`), in an order that the `schedule` decides, or the
  clock of `timing`;
- `sm`: CTAs and warps; a warp issues;
- `machine`: launches grids (checked by `grid`) and steps their warps;
- operations, one module for each unit: `gmem`, `smem`, `mbarrier`, `named_barrier`,
  `tma` (with `tensor_map` and `tma_box`), `cp_async`, `tmem`, `tcgen05` and
  `mma_unscaled` (with `instr_descriptor`, `mma_operands` and `tcgen05_issue`), `clc`,
  `cluster`.
"""
