// Overlapped accumulators with epilogue tiles of 128, 64 and 32 columns: TMEM's last column.
// The whole kernel is instantiated, so an assertion anywhere in it would refuse a tile.

#include <cstdio>

#include <cute/tensor.hpp>
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

using namespace cute;
namespace collective = cutlass::gemm::collective;

using Operand = cutlass::nv_float4_t<cutlass::float_e2m1_t>;
using TileShape = Shape<_128, _256, _256>;
using Cluster = Shape<_1, _1, _1>;
using RowMajor = cutlass::layout::RowMajor;

template <class EpilogueTile>
struct Of {
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm100, cutlass::arch::OpClassBlockScaledTensorOp, TileShape, Cluster,
      EpilogueTile, float, float, void, RowMajor, 4, float, RowMajor, 4,
      cutlass::epilogue::TmaWarpSpecialized1Sm>::CollectiveOp;
  using Mainloop = typename collective::CollectiveBuilder<
      cutlass::arch::Sm100, cutlass::arch::OpClassBlockScaledTensorOp,
      Operand, RowMajor, 32, Operand, cutlass::layout::ColumnMajor, 32, float, TileShape, Cluster,
      collective::StageCountAutoCarveout<int(sizeof(typename Epilogue::SharedStorage))>,
      cutlass::gemm::KernelTmaWarpSpecialized1SmNvf4Sm100>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<
      Shape<int, int, int, int>, Mainloop, Epilogue, void>;
};

// The first TMEM column after a tensor, as set_tmem_offsets finds it.
template <class Tensor>
int columns() {
  using Value = typename Tensor::value_type;
  return cutlass::detail::find_tmem_tensor_col_offset(
      make_tensor(make_tmem_ptr<Value>(0), typename Tensor::layout_type{}));
}

// The tensors of init_tmem_tensors, a function of the device, in its words.
template <class EpilogueTile, class Mainloop>
int end_of_tmem() {
  using TiledMma = typename Mainloop::TiledMma;
  using Accumulators = decltype(cutlass::detail::make_sm100_accumulator<
      1, Mainloop::DispatchPolicy::IsOverlappingAccum>(
      TiledMma{}, partition_shape_C(TiledMma{}, take<0, 2>(TileShape{})), EpilogueTile{}));
  using Sfa = decltype(make_tensor<typename TiledMma::FrgTypeSFA>(
      shape(typename Mainloop::SmemLayoutAtomSFA{})));
  using Sfb = decltype(make_tensor<typename TiledMma::FrgTypeSFB>(
      shape(typename Mainloop::SmemLayoutAtomSFB{})));
  return columns<Accumulators>() + columns<Sfa>() + columns<Sfb>();
}

template <int N>
bool show_end() {
  using EpilogueTile = Shape<_128, Int<N>>;
  using Type = Of<EpilogueTile>;
  std::printf("end_with_%d_columns=%d\n", N, end_of_tmem<EpilogueTile, typename Type::Mainloop>());
  return cutlass::device_kernel<typename Type::Kernel> != nullptr;
}

int main() {
  const bool all = show_end<128>() & show_end<64>() & show_end<32>();
  std::printf("columns=%d\n", int(cute::TMEM::Allocator1Sm::Sm100TmemCapacityColumns));
  return !all;
}
