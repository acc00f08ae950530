// What CUTLASS's builder makes of 24 tiles of the family and one of E4M3, with a given epilogue as
// its carve-out. A line is what is asked, "=" and what follows; host code only.
//
// Asked: CTAs of an MMA, M, N and K of its tile, M and N of the cluster, elements of a scale
// (0 without), bytes of the epilogue. What follows: mainloop stages, bytes that a stage
// expects, bytes of the mainloop's tiles, bytes beside mainloop and epilogue, accumulator
// barriers; then in TMEM columns the distance of two accumulators, where SFA starts, where SFB
// does, and the end.

#include <cstdint>
#include <cstdio>

#include "kernel_words.h"

#include <cute/tensor.hpp>
#include <cutlass/cutlass.h>
#include <cutlass/gemm/collective/collective_builder.hpp>

using namespace cute;
namespace collective = cutlass::gemm::collective;

using Nvfp4 = cutlass::nv_float4_t<cutlass::float_e2m1_t>;
using Mxfp4 = cutlass::mx_float4_t<cutlass::float_e2m1_t>;
using E4m3 = cutlass::float_e4m3_t;
using RowMajor = cutlass::layout::RowMajor;
using ColumnMajor = cutlass::layout::ColumnMajor;

template <int CtaGroup, class Operand>
struct Schedule;
template <>
struct Schedule<1, Nvfp4> { using Type = cutlass::gemm::KernelTmaWarpSpecialized1SmNvf4Sm100; };
template <>
struct Schedule<2, Nvfp4> { using Type = cutlass::gemm::KernelTmaWarpSpecialized2SmNvf4Sm100; };
template <>
struct Schedule<1, Mxfp4> { using Type = cutlass::gemm::KernelTmaWarpSpecialized1SmMxf4Sm100; };
template <>
struct Schedule<2, Mxfp4> { using Type = cutlass::gemm::KernelTmaWarpSpecialized2SmMxf4Sm100; };
template <>
struct Schedule<2, E4m3> { using Type = cutlass::gemm::KernelTmaWarpSpecialized2SmSm100; };

template <class Operand>
constexpr int VEC_SIZE = cute::is_same_v<Operand, Nvfp4> ? 16 : 32;
template <>
constexpr int VEC_SIZE<E4m3> = 0;

// Accumulator barriers of a mainloop's policy.
template <template <int, int, int, class> class Policy, int Stages, int Answers, int Accumulators,
          class Cluster>
constexpr int accumulator_barriers(Policy<Stages, Answers, Accumulators, Cluster>) {
  return Accumulators;
}

// The first TMEM column after a tensor, as set_tmem_offsets finds it.
template <class Tensor>
int columns() {
  using Value = typename Tensor::value_type;
  return cutlass::detail::find_tmem_tensor_col_offset(
      make_tensor(make_tmem_ptr<Value>(0), typename Tensor::layout_type{}));
}

template <int CtaGroup, class Operand, int M, int N, int K, int ClusterM, int ClusterN, int Epilogue>
void tile() {
  constexpr int vec_size = VEC_SIZE<Operand>;
  constexpr int alignment = vec_size ? 32 : 16;
  using TileShape = Shape<Int<M>, Int<N>, Int<K>>;
  using ClusterShape = Shape<Int<ClusterM>, Int<ClusterN>, _1>;
  using OpClass = cute::conditional_t<vec_size != 0, cutlass::arch::OpClassBlockScaledTensorOp,
                                      cutlass::arch::OpClassTensorOp>;
  using Mainloop = typename collective::CollectiveBuilder<
      cutlass::arch::Sm100, OpClass, Operand, RowMajor, alignment, Operand, ColumnMajor,
      alignment, float, TileShape, ClusterShape, collective::StageCountAutoCarveout<Epilogue>,
      typename Schedule<CtaGroup, Operand>::Type>::CollectiveOp;
  using Policy = typename Mainloop::DispatchPolicy;
  constexpr int acc_stages = accumulator_barriers(Policy{});
  // With N = 256 CUTLASS's own epilogue works on 128 columns at a time.
  using EpilogueTile = Shape<_128, Int<(N == 256 ? 128 : 32)>>;
  using Storage = decltype(Mainloop::template init_tmem_tensors<
                           EpilogueTile, Policy::IsOverlappingAccum>(EpilogueTile{}));
  using Accumulators = decltype(Storage::accumulators);
  const int sfa = columns<Accumulators>();
  int sfb = sfa, end = sfa;
  if constexpr (vec_size != 0) {
    sfb = sfa + columns<decltype(Storage::tCtSFA)>();
    end = sfb + columns<decltype(Storage::tCtSFB)>();
  }
  constexpr int beside = collective::detail::Sm100DenseGemmTmaUmmaCarveout<
      ClusterShape, acc_stages, 2, collective::detail::CLCResponseSize, false, 4>::KernelSmemCarveout;
  std::printf("%d %d %d %d %d %d %d %d = %d, %d, %d, %d, %d, %d, %d, %d, %d\n", CtaGroup, M, N, K,
              ClusterM, ClusterN, vec_size, Epilogue, int(Policy::Stages),
              int(Mainloop::TmaTransactionBytes), int(sizeof(typename Mainloop::TensorStorage)),
              beside, acc_stages, int(stride<3>(typename Accumulators::layout_type{})), sfa, sfb,
              end);
}

// Every N, with one SM and with a pair.
template <class Operand, int ClustersM, int ClusterN, int Epilogue>
void tiles() {
  tile<1, Operand, 128, 64, 256, ClustersM, ClusterN, Epilogue>();
  tile<1, Operand, 128, 128, 256, ClustersM, ClusterN, Epilogue>();
  tile<1, Operand, 128, 192, 256, ClustersM, ClusterN, Epilogue>();
  tile<1, Operand, 128, 256, 256, ClustersM, ClusterN, Epilogue>();
  tile<2, Operand, 256, 64, 256, 2 * ClustersM, ClusterN, Epilogue>();
  tile<2, Operand, 256, 128, 256, 2 * ClustersM, ClusterN, Epilogue>();
  tile<2, Operand, 256, 192, 256, 2 * ClustersM, ClusterN, Epilogue>();
  tile<2, Operand, 256, 256, 256, 2 * ClustersM, ClusterN, Epilogue>();
}

int main() {
  tiles<Nvfp4, 1, 1, 32768>();  // D in float32
  tiles<Nvfp4, 2, 2, 69632>();  // C in float32, four stages; D in NVFP4
  tiles<Mxfp4, 1, 2, 16384>();  // D in bfloat16
  tile<2, E4m3, 256, 128, 128, 2, 1, 17408>();
  return 0;
}
