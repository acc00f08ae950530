// poison: NaN in shared and tensor memory, that no launch may find data of an earlier one.
//
// Goes behind the kernel's text. A CTA takes an SM for itself.
extern "C" __global__ void poison(u32 words) {
    for (u32 i = threadIdx.x; i < words; i += blockDim.x)
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(smem_base() + 4 * i), "r"(~0u) : "memory");
    for (u32 i = threadIdx.x; i < 512 * 128; i += blockDim.x) soft_tmem[smid()][i] = ~0u;
}
