"""gemm: what the kernel says. CUTLASS's warp-specialised NVFP4 GEMM as Python warps.

`config` and `pipeline` are the frame of it, `tile_scheduler` and `partition` say which
tile and which bytes, `shared_storage` is what the warps share. Then one module for each
role, `cleanup`, and `nvfp4_gemm`, which starts them. The roles never import each other:
they meet only through hardware state.
"""
