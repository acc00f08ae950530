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
  }
  std::printf("},\n");
}
