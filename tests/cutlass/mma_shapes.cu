// One MMA tile of 64 columns along K for each shape; every cell of TMEM is dumped. The host finds
// D in it by CuTe's own layout of the accumulator, and compares with the product in integers.
#include <cstdio>
#include <vector>
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
#include <cutlass/cluster_launch.hpp>
#include <cutlass/half.h>

using namespace cute;
using f16 = cutlass::half_t;

constexpr int K = 64, LANES = 128;
constexpr uint32_t UNTOUCHED = 0x7fc00abc;
CUTE_HOST_DEVICE int a_of(int m, int k) { return (m * 5 + k * 3 + m * k) % 7 - 3; }
CUTE_HOST_DEVICE int b_of(int n, int k) { return (n * 2 + k * 7 + n * k) % 11 - 5; }

template <int SMS, int M, int N>
using Op = conditional_t<SMS == 2,
    SM100_MMA_F16BF16_2x1SM_SS<f16, f16, float, M, N, UMMA::Major::K, UMMA::Major::K>,
    SM100_MMA_F16BF16_SS<f16, f16, float, M, N, UMMA::Major::K, UMMA::Major::K>>;
template <int SMS>
using Allocator = conditional_t<SMS == 2, TMEM::Allocator2Sm, TMEM::Allocator1Sm>;

template <class SA, class SB>
struct Storage {
  alignas(1024) ArrayEngine<f16, cosize_v<SA>> a;
  alignas(1024) ArrayEngine<f16, cosize_v<SB>> b;
  alignas(16) uint64_t done;
  alignas(16) uint32_t tmem;
};

__device__ void sync_tensor() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  cluster_sync();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// What the MMA must not touch.
__device__ void fill(uint32_t lanes, int columns) {
  for (int c = 0; c < columns; ++c)
    asm("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(lanes + c), "r"(UNTOUCHED));
  cutlass::arch::fence_view_async_tmem_store();
}

__device__ void dump(uint32_t *out, uint32_t lanes, int columns) {
  for (int c = 0; c < columns; ++c) {
    uint32_t word;
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(word) : "r"(lanes + c));
    cutlass::arch::fence_view_async_tmem_load();
    out[c] = word;
  }
}

template <int SMS, int M, int N, class SA, class SB, class Mma>
__global__ void multiply(uint32_t *out, SA layout_a, SB layout_b, Mma mma) {
  extern __shared__ __align__(1024) char bytes[];
  auto &shared = *reinterpret_cast<Storage<SA, SB> *>(bytes);
  int const rank = cute::block_rank_in_cluster(), warp = threadIdx.x / 32;

  // This CTA's part of A and B, wherever CuTe puts it.
  auto part = mma.get_slice(rank);
  Tensor at_a = part.partition_A(make_identity_tensor(Shape<Int<M>, Int<K>>{}));
  Tensor at_b = part.partition_B(make_identity_tensor(Shape<Int<N>, Int<K>>{}));
  Tensor a = make_tensor(make_smem_ptr(shared.a.begin()), layout_a);
  Tensor b = make_tensor(make_smem_ptr(shared.b.begin()), layout_b);
  for (int i = threadIdx.x; i < size(a); i += blockDim.x)
    a(i) = f16(float(a_of(get<0>(at_a(i)), get<1>(at_a(i)))));
  for (int i = threadIdx.x; i < size(b); i += blockDim.x)
    b(i) = f16(float(b_of(get<0>(at_b(i)), get<1>(at_b(i)))));
  cutlass::arch::fence_view_async_shared();

  if (warp == 0 && elect_one_sync())
    initialize_barrier(shared.done, 1);
  cutlass::arch::fence_barrier_init();
  cluster_sync();
  if (warp == 0)
    Allocator<SMS>{}.allocate(256, &shared.tmem);
  cluster_sync();

  uint32_t const base = shared.tmem, lanes = base + (warp * 32 << 16);
  fill(lanes, N);
  sync_tensor();

  if (rank == 0 && warp == 0) {
    auto shape = Shape<Int<M>, Int<N>>{};
    Tensor d = part.make_fragment_C(part.partition_C(make_identity_tensor(shape)));
    d.data() = base;
    Tensor ra = part.make_fragment_A(a), rb = part.make_fragment_B(b);
    mma.accumulate_ = UMMA::ScaleOut::Zero;
    for (int k = 0; k < size<2>(ra); ++k) {
      gemm(mma, ra(_, _, k), rb(_, _, k), d);
      mma.accumulate_ = UMMA::ScaleOut::One;
    }
    if constexpr (SMS == 2)
      cutlass::arch::umma_arrive_multicast_2x1SM(&shared.done, 3);
    else
      cutlass::arch::umma_arrive(&shared.done);
  }
  wait_barrier(shared.done, 0);
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");

  dump(out + (rank * LANES + threadIdx.x) * N, lanes, N);
  sync_tensor();
  if (warp == 0) {
    Allocator<SMS>{}.release_allocation_lock();
    Allocator<SMS>{}.free(base, 256);
  }
}

template <int SMS, int M, int N>
void check() {
  auto mma = make_tiled_mma(Op<SMS, M, N>{});
  auto atom = UMMA::Layout_K_SW128_Atom<f16>{};
  auto layout_a = UMMA::tile_to_mma_shape(atom, partition_shape_A(mma, Shape<Int<M>, Int<K>>{}));
  auto layout_b = UMMA::tile_to_mma_shape(atom, partition_shape_B(mma, Shape<Int<N>, Int<K>>{}));
  uint32_t *out;
  std::vector<uint32_t> cells(SMS * LANES * N);
  cudaMalloc((void **)&out, cells.size() * 4);
  auto *kernel = &multiply<SMS, M, N, decltype(layout_a), decltype(layout_b), decltype(mma)>;
  int const nbytes = sizeof(Storage<decltype(layout_a), decltype(layout_b)>);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, nbytes);
  cutlass::ClusterLaunchParams params = {dim3(SMS), dim3(LANES), dim3(SMS), nbytes};
  cutlass::launch_kernel_on_cluster(params, (void const *)kernel, out, layout_a, layout_b, mma);
  cudaMemcpy(cells.data(), out, cells.size() * 4, cudaMemcpyDeviceToHost);

  // CuTe's fragment: (row of the CTA, column) to lane << 16 | column.
  constexpr int rows = M / SMS;
  auto frag = UMMA::tmem_frg<float, uint32_t, SMS>::make(Shape<Shape<Int<rows>, Int<N>>, _1, _1>{});
  int wrong = 0, written = 0;
  for (int rank = 0; rank < SMS; ++rank)
    for (int m = 0; m < rows; ++m)
      for (int n = 0; n < N; ++n) {
        int want = 0;
        for (int k = 0; k < K; ++k)
          want += a_of(rank * rows + m, k) * b_of(n, k);
        uint32_t const at = frag.layout()(make_coord(m, n), 0, 0);
        uint32_t const &word = cells[(rank * LANES + (at >> 16)) * N + (at & 0xffff)];
        wrong += reinterpret_cast<float const &>(word) != float(want);
      }
  for (uint32_t word : cells)
    written += word != UNTOUCHED;
  std::printf("%d SM %dx%d: %d wrong, %d cells written\n", SMS, M, N, wrong, written);
}

int main() {
  check<2, 128, 16>(), check<2, 128, 64>(), check<2, 128, 256>();
  check<1, 64, 16>(), check<1, 64, 64>(), check<1, 64, 256>();
  check<2, 256, 32>();
}
