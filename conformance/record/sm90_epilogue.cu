// The epilogue that CUTLASS builds for document 001's first example, and one like it
// with subtiles of 64 x 64.

#include <cstdio>
#include <initializer_list>
#include <type_traits>

#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>

using namespace cute;

// A name and its value, as Python reads it.
void show(const char* name, int value) { std::printf("%s=%d\n", name, value); }

void show(const char* name, std::initializer_list<int> values) {
  std::printf("%s=[", name);
  for (int value : values) std::printf("%d, ", value);
  std::printf("]\n");
}

template <class EpilogueTile>
using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp,
    Shape<_128, _128, _64>, Shape<_1, _1, _1>, EpilogueTile, float, float,
    cutlass::half_t, cutlass::layout::RowMajor, 8,
    cutlass::half_t, cutlass::layout::RowMajor, 8,
    cutlass::epilogue::TmaWarpSpecialized,
    cutlass::epilogue::fusion::LinearCombination<cutlass::half_t, float, cutlass::half_t, float>
  >::CollectiveOp;

template <int C, int D, int Fragment, bool Reuse, bool Delay>
void print_policy(cutlass::epilogue::Sm90TmaWarpSpecialized<C, D, Fragment, Reuse, Delay>) {
  show("stages_c", C);
  show("stages_d", D);
  show("fragment_size", Fragment);
  show("reuse_smem_c", Reuse);
  show("delay_tma_store", Delay);
}

template <int B, int M, int S, class Offset, class Layout>
void print_swizzle(ComposedLayout<Swizzle<B, M, S>, Offset, Layout>) {
  show("swizzle", {B, M, S});
}

int main() {
  using Auto = Epilogue<cutlass::epilogue::collective::EpilogueTileAuto>;
  using Params = typename Auto::Params;
  print_policy(Auto::DispatchPolicy{});
  show("epilogue_tile", {int(size<0>(Auto::EpilogueTile{})), int(size<1>(Auto::EpilogueTile{}))});
  print_swizzle(Auto::SmemLayoutAtomC{});
  show("shared_storage_nbytes", sizeof(Auto::SharedStorage));
  show("transaction_nbytes", Auto::TmaTransactionBytes);
  show("tma_load_c_is_pointer", std::is_pointer_v<decltype(Params::tma_load_c)>);
  show("tma_load_c_nbytes", sizeof(Params::tma_load_c));

  Params params{};
  auto coordinates = params.tma_load_c.get_tma_tensor(make_shape(2048, 2048, 1));
  auto at = coordinates(128, 256, 0);
  show("tma_tensor_at_128_256", {int(get<0>(at)), int(get<1>(at)), int(get<2>(at))});
  auto merged = coalesce(coordinates, take<0, 2>(Auto::CtaTileMNK{}));
  show("coalesced_tma_tensor_extents",
       {int(size<0>(merged)), int(size<1>(merged)), int(size<2>(merged))});

  using Square = Epilogue<Shape<_64, _64>>;
  show("square_transaction_nbytes", Square::TmaTransactionBytes);
  show("square_load_pipe_increment", Square::get_load_pipe_increment(Shape<_128, _128, _64>{}));
  return 0;
}
