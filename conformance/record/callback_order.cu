// The order in which CUTLASS's collective epilogue calls the nodes of a tree. Nodes of ours hand
// their value on and print each of their callbacks; one lane of a warp prints.
#include <cstdio>

#include <cute/tensor.hpp>
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/util/packed_stride.hpp>

using namespace cute;
namespace collective = cutlass::epilogue::collective;
namespace fusion = cutlass::epilogue::fusion;

constexpr int NONE = -1;
constexpr int M = 128, K = 256;

// What a callback is told: subtile, number of the load or store, and its flag.
__device__ void say(const char* callback, int node, int m = NONE, int n = NONE,
                    int iteration = NONE, int flag = NONE) {
  if (threadIdx.x % 32 == 0)
    printf("%d %s %d %d %d %d %d\n", threadIdx.x / 32, callback, node, m, n, iteration, flag);
}

template <int Node>
struct Printing : fusion::Sm90VisitorImpl<> {
  using fusion::Sm90VisitorImpl<>::Sm90VisitorImpl;

  struct Loads : fusion::EmptyProducerLoadCallbacks {
    CUTLASS_DEVICE void begin() { say("load_begin", Node); }
    CUTLASS_DEVICE void step(uint64_t*, int m, int n, int iteration, bool issues) {
      say("load_step", Node, m, n, iteration, issues);
    }
    CUTLASS_DEVICE void end() { say("load_end", Node); }
  };

  struct Stores : fusion::EmptyConsumerStoreCallbacks {
    CUTLASS_DEVICE void begin() { say("begin", Node); }
    CUTLASS_DEVICE void begin_loop(int m, int n) { say("begin_loop", Node, m, n); }
    CUTLASS_DEVICE void previsit(int m, int n, int iteration, bool loads) {
      say("previsit", Node, m, n, iteration, loads);
    }
    template <class Accumulators, class Values>
    CUTLASS_DEVICE Values visit(Accumulators const&, int fragment, int m, int n,
                                Values const& values) {
      say("visit", Node, m, n, fragment);
      return values;
    }
    template <class Buffer, class Sync, class Results>
    CUTLASS_DEVICE void reduce(Buffer&&, Sync const&, int m, int n, bool last, Results) {
      say("reduce", Node, m, n, NONE, last);
    }
    CUTLASS_DEVICE void postreduce(int m, int n, int iteration, bool issues) {
      say("postreduce", Node, m, n, iteration, issues);
    }
    CUTLASS_DEVICE void tma_store(int m, int n, int iteration, bool issues) {
      say("tma_store", Node, m, n, iteration, issues);
    }
    CUTLASS_DEVICE void end_loop(int m, int n) { say("end_loop", Node, m, n); }
    CUTLASS_DEVICE void end() { say("end", Node); }
  };

  template <class... Args>
  CUTLASS_DEVICE auto get_producer_load_callbacks(fusion::ProducerLoadArgs<Args...> const&) {
    return Loads{};
  }
  template <bool, class... Args>
  CUTLASS_DEVICE auto get_consumer_store_callbacks(fusion::ConsumerStoreArgs<Args...> const&) {
    return Stores{};
  }
};

// The trees: a sum of two values, and one that a branch takes before it is handed on.
template <int Node, class Input>
using Printed = fusion::Sm90EVT<Printing<Node>, Input>;
template <class B>
using Sum = Printed<2, fusion::Sm90EVT<
    fusion::Sm90Compute<cutlass::plus, float, float, cutlass::FloatRoundStyle::round_to_nearest>,
    Printed<0, fusion::Sm90AccFetch>, Printed<1, B>>>;
using WithC = Sum<fusion::Sm90SrcFetch<float>>;
using WithoutC = Sum<fusion::Sm90AccFetch>;
using Branch = fusion::Sm90SplitTreeVisitor<
    Printed<0, fusion::Sm90AccFetch>, Printed<2, fusion::Sm90SplitTreeFetch>,
    Printed<1, fusion::Sm90SplitTreeFetch>>;

// An epilogue of the builder, with another policy or with its own.
struct Own;
template <class Epilogue, class Policy>
struct With;
template <class Builders, class... Rest, class Policy>
struct With<collective::CollectiveEpilogue<Builders, Rest...>, Policy> {
  using type = collective::CollectiveEpilogue<Policy, Rest...>;
};
template <class Builders, class... Rest>
struct With<collective::CollectiveEpilogue<Builders, Rest...>, Own> {
  using type = collective::CollectiveEpilogue<Builders, Rest...>;
};
template <int StagesC, int StagesD, int Fragment, bool Reuse, bool Delay>
using Policy = cutlass::epilogue::Sm100TmaWarpSpecialized<StagesC, StagesD, Fragment, Reuse, Delay>;

// Device memory of zeros: the order does not depend on values.
template <class T>
T* zeros(size_t nbytes) {
  void* memory = nullptr;
  cudaMalloc(&memory, nbytes);
  cudaMemset(memory, 0, nbytes);
  return static_cast<T*>(memory);
}

// Two tiles of `TileN` columns in subtiles, one after the other if there is one SM.
template <class ElementC, int TileN, int SubtileN, class Tree, class Asked>
void run(const char* name) {
  using Operand = cutlass::nv_float4_t<cutlass::float_e2m1_t>;
  using RowMajor = cutlass::layout::RowMajor;
  using Tile = Shape<Int<M>, Int<TileN>, Int<K>>;
  using Cluster = Shape<_1, _1, _1>;
  using Built = typename collective::CollectiveBuilder<
      cutlass::arch::Sm100, cutlass::arch::OpClassBlockScaledTensorOp, Tile, Cluster,
      Shape<_128, Int<SubtileN>>, float, float, ElementC, RowMajor, 4, float, RowMajor, 4,
      cutlass::epilogue::TmaWarpSpecialized1Sm, Tree>::CollectiveOp;
  using Epilogue = typename With<Built, Asked>::type;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm100, cutlass::arch::OpClassBlockScaledTensorOp, Operand, RowMajor, 32,
      Operand, cutlass::layout::ColumnMajor, 32, float, Tile, Cluster,
      cutlass::gemm::collective::StageCount<2>,
      cutlass::gemm::KernelTmaWarpSpecialized1SmNvf4Sm100>::CollectiveOp;
  using Kernel =
      cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue, void>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
  using Scales = typename Mainloop::Sm1xxBlkScaledConfig;
  using Chosen = typename Epilogue::DispatchPolicy;

  constexpr int N = 2 * TileN;
  const auto problem = make_shape(M, N, K, 1);
  const auto scales_a = Scales::tile_atom_to_shape_SFA(problem);
  const auto scales_b = Scales::tile_atom_to_shape_SFB(problem);
  const auto stride_a = cutlass::make_cute_packed_stride(typename Kernel::StrideA{}, {M, K, 1});
  const auto stride_b = cutlass::make_cute_packed_stride(typename Kernel::StrideB{}, {N, K, 1});
  const auto stride_c = cutlass::make_cute_packed_stride(typename Kernel::StrideC{}, {M, N, 1});
  const auto stride_d = cutlass::make_cute_packed_stride(typename Kernel::StrideD{}, {M, N, 1});
  using E2M1 = typename Operand::DataType;
  using UE4M3 = typename Operand::ScaleFactorType;
  typename Gemm::Arguments arguments{
      cutlass::gemm::GemmUniversalMode::kGemm,
      problem,
      {zeros<E2M1>(M * K / 2), stride_a, zeros<E2M1>(N * K / 2), stride_b,
       zeros<UE4M3>(M * K / 16), scales_a, zeros<UE4M3>(N * K / 16), scales_b},
      {{}, zeros<float>(M * N * 4), stride_c, zeros<float>(M * N * 4), stride_d}};

  std::printf("run %s\n", name);
  std::printf("policy stages_c %d stages_d %d fragment_size %d reuse_smem_c %d ",
              Chosen::StagesC, Chosen::StagesD, Chosen::FragmentSize, Chosen::ReuseSmemC);
  std::printf("delay_tma_store %d tile_n %d subtile_n %d store_stages %d\n",
              Chosen::DelayTmaStore, TileN, SubtileN, Epilogue::StorePipelineState::Stages);
  std::fflush(stdout);
  Gemm gemm;
  auto* workspace = zeros<uint8_t>(Gemm::get_workspace_size(arguments) + 1);
  const auto status = gemm.initialize(arguments, workspace);
  if (status != cutlass::Status::kSuccess || gemm.run() != cutlass::Status::kSuccess ||
      cudaDeviceSynchronize() != cudaSuccess)
    std::printf("failed %s\n", cutlass::cutlassGetStatusString(status));
  std::fflush(stdout);
}

int main() {
  run<float, 128, 32, WithC, Own>("C");
  run<float, 128, 32, WithC, Policy<2, 2, 16, false, false>>("C, separate stages");
  run<float, 128, 32, WithC, Policy<4, 2, 32, true, true>>("C, delayed stores");
  run<void, 128, 32, WithoutC, Own>("no C");
  run<void, 128, 32, Branch, Policy<2, 2, 32, false, false>>("a branch");
  // With 32 columns CUTLASS puts B's scales past TMEM's last column, and says nothing.
  run<void, 256, 64, WithoutC, Own>("overlapped accumulators");
}
