// The types of CUTLASS's example 72b, from its own configuration.

#include <cstdio>

#include <cute/tensor.hpp>
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

using namespace cute;

// A name and its value, as Python reads it.
void show(const char* name, int value) { std::printf("%s=%d\n", name, value); }

using Operand = cutlass::nv_float4_t<cutlass::float_e2m1_t>;
using ElementD = cutlass::float_e2m1_t;
using TileShape = Shape<_128, _128, _256>;
using Cluster = Shape<_1, _1, _1>;
using RowMajor = cutlass::layout::RowMajor;
using Fusion = cutlass::epilogue::fusion::LinCombBlockScaleFactor<
    16, ElementD, float, cutlass::float_ue8m0_t, RowMajor, float>;
using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm100, cutlass::arch::OpClassBlockScaledTensorOp, TileShape, Cluster,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float,
    float, RowMajor, 4, ElementD, RowMajor, 32,
    cutlass::epilogue::collective::EpilogueScheduleAuto, Fusion>::CollectiveOp;
using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm100, cutlass::arch::OpClassBlockScaledTensorOp,
    Operand, RowMajor, 32, Operand, cutlass::layout::ColumnMajor, 32, float, TileShape, Cluster,
    cutlass::gemm::collective::StageCountAutoCarveout<int(sizeof(Epilogue::SharedStorage))>,
    cutlass::gemm::collective::KernelScheduleAuto>::CollectiveOp;
using Problem = Shape<int, int, int, int>;
using Kernel = cutlass::gemm::kernel::GemmUniversal<Problem, Mainloop, Epilogue, void>;

template <int C, int D, int Fragment, bool Reuse, bool Delay>
void print_policy(cutlass::epilogue::Sm100TmaWarpSpecialized<C, D, Fragment, Reuse, Delay>) {
  show("stages_c", C);
  show("stages_d", D);
  show("fragment_size", Fragment);
  show("reuse_smem_c", Reuse);
  show("delay_tma_store", Delay);
}

int main() {
  print_policy(Epilogue::DispatchPolicy{});
  show("d_layout_stages", Epilogue::StorePipelineState::Stages);
  show("epilogue_nbytes", sizeof(Epilogue::SharedStorage));
  show("epilogue_tensor_nbytes", sizeof(Epilogue::TensorStorage));
  show("mainloop_stages", Mainloop::DispatchPolicy::Stages);
  using OneStage = cutlass::PipelineTmaUmmaAsync<1>;
  show("mainloop_barrier_nbytes", sizeof(OneStage::SharedStorage));
  show("transaction_nbytes", Mainloop::TmaTransactionBytes);
  show("kernel_nbytes", sizeof(Kernel::SharedStorage));
  return 0;
}
