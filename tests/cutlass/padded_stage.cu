// Bytes that CUTLASS's main loop expects for a stage whose A is of padded elements.

#include <cstdio>

#include <cute/tensor.hpp>
#include <cutlass/numeric_types.h>
#include <cutlass/gemm/collective/collective_builder.hpp>

using namespace cute;

template <class A>
void stage(const char* name) {
  using Tile = Shape<_128, _128, _128>;
  using Scaled = cutlass::mx_float8_t<cutlass::float_e4m3_t>;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm100, cutlass::arch::OpClassBlockScaledTensorOp, A,
      cutlass::layout::RowMajor, 128, Scaled, cutlass::layout::ColumnMajor, 16, float, Tile,
      Shape<_1, _1, _1>, cutlass::gemm::collective::StageCount<2>,
      cutlass::gemm::KernelTmaWarpSpecialized1SmMxf8f6f4Sm100>::CollectiveOp;
  std::printf("%s %u %u\n", name, unsigned(Mainloop::ABTmaTransactionBytes),
              unsigned(sizeof(typename Mainloop::TensorStorage)));
}

int main() {
  stage<cutlass::mx_float8_t<cutlass::float_e4m3_t>>("e4m3");
  stage<cutlass::mx_float6_t<cutlass::float_e3m2_t>>("e3m2");
  stage<cutlass::mx_float4_t<cutlass::float_e2m1_t>>("e2m1");
}
