"""gemm: what the kernel says. CUTLASS's warp-specialised NVFP4 GEMM as Python warps.

`config` is what is asked; `plan` says what is allowed, and deduces the rest with
reasons. `pipeline` is the rings' protocol, `tile_scheduler` and `partition` say which
tile and which bytes, `descriptors` what the tensor core is given, `shared_storage` what
the warps share. Then one module for each role, `cleanup`, and `nvfp4_gemm`, which
starts them. The roles never import each other: they meet only through hardware state.
`problem` is the host.
"""
