// What CUTLASS's builder makes of an epilogue, printed as Python reads it; host code only.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

#include "kernel_words.h"

#include <cute/tensor.hpp>
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/epilogue/thread/activation.h>
#include <cutlass/pipeline/pipeline.hpp>

// The builder's arguments by their short names.
using namespace cutlass;
using namespace cutlass::epilogue::collective;
using namespace cute;
namespace fusion = cutlass::epilogue::fusion;
using RowMajor = cutlass::layout::RowMajor;
using ColumnMajor = cutlass::layout::ColumnMajor;

// A type's name without namespaces of CUTLASS and CuTe.
template <class T>
std::string type_name() {
  std::string name = __PRETTY_FUNCTION__;
  const auto start = name.find("T = ") + 4;
  name = name.substr(start, name.find_first_of(";]", start) - start);
  for (const char* space : {"cutlass::", "cute::", "epilogue::", "detail::", "SM100::", "TMEM::", "LOAD::"}) {
    for (size_t at; (at = name.find(space)) != std::string::npos;) name.erase(at, std::string_view(space).size());
  }
  return name;
}

void show(const char* name, long value) { std::printf(" '%s': %ld,", name, value); }
void show(const char* name, const std::string& value) { std::printf(" '%s': '%s',", name, value.c_str()); }

template <class T>
void show_printed(const char* name) {
  std::printf(" '%s': '", name);
  print(T{});
  std::printf("',");
}

// Stages and unacquired stages of a store pipeline.
template <class T> struct StoreStages;
template <int Stages, int Unacquired>
struct StoreStages<PipelineTmaStore<Stages, Unacquired>> {
  static constexpr int stages = Stages, unacquired = Unacquired;
};

// What an epilogue that stores by TMA keeps in shared memory.
template <class E>
void show_storage() {
  using Policy = typename E::DispatchPolicy;
  using Tensors = typename E::SharedStorage::TensorStorage;
  show("stages_c", Policy::StagesC);
  show("stages_d", Policy::StagesD);
  show("fragment_size", Policy::FragmentSize);
  show("reuse_smem_c", E::ReuseSmemC);
  show("delay_tma_store", E::DelayTmaStore);
  show_printed<typename E::SmemLayoutAtomC>("atom_c");
  show_printed<typename E::SmemLayoutAtomD>("atom_d");
  show_printed<typename E::SmemLayoutC>("layout_c");
  show_printed<typename E::SmemLayoutD>("layout_d");
  show("alignment_c", E::SmemAlignmentC);
  show("alignment_d", E::SmemAlignmentD);
  show("collective_nbytes", sizeof(typename Tensors::CollectiveStorage));
  show("fusion_nbytes", sizeof(typename Tensors::FusionStorage));
  show("tensors_nbytes", sizeof(typename E::TensorStorage));
  show("pipeline_nbytes", sizeof(typename E::PipelineStorage));
  show("transaction_nbytes", E::TmaTransactionBytes);
  show("store_stages", StoreStages<typename E::StorePipeline>::stages);
  show("store_unacquired", StoreStages<typename E::StorePipeline>::unacquired);
}

// Problems that a launch asks for: M, N, and L.
struct Problem { int m, n, l; };
constexpr Problem kProblems[] = {{128, 128, 1}, {100, 36, 2}, {36, 100, 1}, {8, 8, 1}, {64, 20, 1}, {20, 64, 1}, {96, 33, 1}, {256, 384, 3}};

template <class E>
constexpr auto cta_tile() {
  if constexpr (requires { typename E::CtaTileShape; }) return typename E::CtaTileShape{};
  else return typename E::CtaTileMNK{};
}

template <class Arguments>
void set_beta(Arguments& thread, float beta) {
  if constexpr (requires { thread.beta = beta; }) thread.beta = beta;
}

// Arrays of pointers: their problems are known on the GPU alone.
template <class E>
constexpr bool kArrays = requires { typename E::InternalStrideD; };

// What the host asks of an epilogue before a launch: 1 for each problem that it can implement, with
// beta 0; and its workspace.
template <class E>
void show_launch() {
  typename E::Arguments arguments{};
  set_beta(arguments.thread, 0);
  std::string can;
  for (auto [m, n, l] : kProblems) can += E::can_implement(make_shape(m, n, 64, l), arguments) ? '1' : '0';
  show("can_implement", can);
  show("workspace_nbytes", E::get_workspace_size(make_shape(256, 384, 64, 3), arguments));
}

// What the load warp asks: stages that a tile takes, and with beta 0 and 1 whether there is work for it
// and whether C is part of it.
template <class E>
void show_load() {
  show("load_increment", E::get_load_pipe_increment(cta_tile<E>()));
  show("store_increment", E::get_store_pipe_increment(cta_tile<E>()));
  using Callbacks = typename E::FusionCallbacks;
  typename E::Arguments arguments{};
  std::string loads, loads_c;
  for (float beta : {0.0f, 1.0f}) {
    set_beta(arguments.thread, beta);
    typename Callbacks::Params params = Callbacks::to_underlying_arguments(make_shape(128, 128, 64, 1), arguments.thread, nullptr);
    typename Callbacks::SharedStorage storage{};
    Callbacks callbacks(params, storage);
    loads += callbacks.is_producer_load_needed() ? '1' : '0';
    loads_c += callbacks.is_C_load_needed() ? '1' : '0';
  }
  show("is_producer_load_needed", loads);
  show("is_C_load_needed", loads_c);
}

// An epilogue, by the names that CUTLASS has of it.
template <class E>
void show(const char* key) {
  std::printf("'%s': {", key);
  show("stride_c", type_name<typename E::StrideC>());
  show("stride_d", type_name<typename E::StrideD>());
  show("storage_nbytes", sizeof(typename E::SharedStorage));
  if constexpr (requires { typename E::CopyOpT2R; }) show("copy_t2r", type_name<typename E::CopyOpT2R>());
  if constexpr (requires { typename E::EpilogueTile; }) show_printed<typename E::EpilogueTile>("epilogue_tile");
  if constexpr (requires { typename E::CtaTileShape; }) show_printed<typename E::CtaTileShape>("cta_tile");
  if constexpr (requires { typename E::CtaTileMNK; }) show_printed<typename E::CtaTileMNK>("cta_tile");
  if constexpr (requires { typename E::CopyAtomC; }) show("copy_atom_c", type_name<typename E::CopyAtomC>());
  if constexpr (requires { E::DispatchPolicy::StagesC; }) show("policy", type_name<typename E::DispatchPolicy>());
  if constexpr (requires { typename E::CopyOpG2S; }) {
    show("copy_g2s", type_name<typename E::CopyOpG2S>());
    show("copy_s2r", type_name<typename E::CopyOpS2R>());
    show("copy_s2g", type_name<typename E::CopyOpS2G>());
    show("copy_r2s", type_name<typename E::CopyOpR2S>());
    show("copy_r2r", type_name<typename E::CopyOpR2R>());
    show_storage<E>();
    if constexpr (!kArrays<E>) show_load<E>();
  }
  if constexpr (!kArrays<E>) show_launch<E>();
  std::printf("},\n");
}
