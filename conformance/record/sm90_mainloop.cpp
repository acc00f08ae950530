// How many mainloop stages CUTLASS's SM90 builder fits beside an epilogue. A line is what is
// asked, "=" and what follows; host code only.
//
// Asked: M, N and K of a tile, bits of A's and B's elements, bytes of the epilogue. What
// follows: stages, bytes of a stage's barriers.

#include <cstdint>
#include <cstdio>

#include "kernel_words.h"

#include <cute/tensor.hpp>
#include <cutlass/cutlass.h>
#include <cutlass/gemm/collective/collective_builder.hpp>

using namespace cute;
namespace collective = cutlass::gemm::collective;

template <class Element, int M, int N, int K, int Epilogue>
void stages() {
  constexpr int found = collective::detail::compute_stage_count_or_override<
      collective::detail::sm90_smem_capacity_bytes, Element, Element,
      Shape<Int<M>, Int<N>, Int<K>>>(collective::StageCountAutoCarveout<Epilogue>{});
  std::printf("%d %d %d %d %d = %d, %d\n", M, N, K, int(sizeof_bits_v<Element>), Epilogue, found,
              int(sizeof(typename cutlass::PipelineTmaAsync<1>::SharedStorage)));
}

int main() {
  using cutlass::half_t;
  stages<half_t, 128, 128, 64, 17408>();
  stages<half_t, 128, 256, 64, 17408>();
  stages<half_t, 64, 24, 64, 6400>();
  stages<half_t, 64, 48, 64, 6656>();
  stages<half_t, 128, 128, 64, 1>();
  stages<float, 64, 128, 32, 34816>();
  stages<cutlass::float_e4m3_t, 256, 128, 128, 8704>();
  stages<cutlass::float_e4m3_t, 64, 128, 128, 17408>();
  return 0;
}
