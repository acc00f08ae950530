// What CuTe's own types and functions give: strides, layouts, masks, alignments.

#include <cstdio>
#include <type_traits>

#include <cute/tensor.hpp>
#include <cute/atom/copy_traits_sm90_tma.hpp>
#include <cutlass/detail/layout.hpp>
#include <cutlass/layout/matrix.h>
#include <cutlass/numeric_types.h>
#include <cutlass/epilogue/collective/builders/sm90_common.inl>

using namespace cute;

// A name and its value, as Python reads it.
void show(const char* name, int value) { std::printf("%s=%d\n", name, value); }

template <class T>
constexpr int pointers() {
  if constexpr (std::is_pointer_v<T>) {
    return 1 + pointers<std::remove_pointer_t<T>>();
  } else {
    return 0;
  }
}

// Mode of a stride that is the constant 1, or -1.
template <int Mode, class Stride>
constexpr int unit_mode() {
  if constexpr (Mode == rank_v<Stride>) {
    return -1;
  } else if constexpr (std::is_same_v<std::remove_cv_t<tuple_element_t<Mode, Stride>>, Int<1>>) {
    return Mode;
  } else {
    return unit_mode<Mode + 1, Stride>();
  }
}

// Whether the epilogue's builder takes C and D of half with this alignment.
template <int Alignment>
constexpr bool is_aligned() {
  namespace detail = cutlass::epilogue::collective::detail;
  return detail::is_aligned<cutlass::half_t, Alignment, cutlass::half_t, Alignment>();
}

int main() {
  using cutlass::detail::TagToStrideC_t;
  using RowMajor = cutlass::layout::RowMajor;
  using ColumnMajor = cutlass::layout::ColumnMajor;
  using GroupStride = TagToStrideC_t<RowMajor*>;
  show("row_major_unit_mode", unit_mode<0, TagToStrideC_t<RowMajor>>());
  show("column_major_unit_mode", unit_mode<0, TagToStrideC_t<ColumnMajor>>());
  show("m_major_of_column_major", cutlass::detail::is_major<0>(TagToStrideC_t<ColumnMajor>{}));
  show("group_stride_pointers", pointers<GroupStride>());
  using OneStride = remove_pointer_t<GroupStride>;
  show("group_stride_pointers_left", pointers<OneStride>());
  show("group_stride_of_l", get<2>(OneStride{}));

  auto padded = make_layout(make_shape(64, 64), make_stride(1, 72));
  show("padded_cosize", cosize(padded));

  show("swizzle_128b_alignment", cutlass::detail::alignment_for_swizzle(Swizzle<3, 4, 3>{}));
  show("no_swizzle_alignment", cutlass::detail::alignment_for_swizzle(Swizzle<0, 4, 3>{}));

  auto cluster = make_layout(make_shape(1, 4, 4, 1));
  auto cta = make_coord(0, 2, 1, 0);
  show("mask_of_mode_2", create_tma_multicast_mask<2>(cluster, cta));
  show("mask_of_mode_1", create_tma_multicast_mask<1>(cluster, cta));

  using cutlass::detail::get_unpacked_element_type;
  show("int4_bits_in_smem", sizeof_bits_v<get_unpacked_element_type<cutlass::int4b_t>::type>);
  show("e2m3_bits_in_smem", sizeof_bits_v<get_unpacked_element_type<cutlass::float_e2m3_t>::type>);
  show("e3m2_bits_in_smem", sizeof_bits_v<get_unpacked_element_type<cutlass::float_e3m2_t>::type>);
  show("half_is_aligned_1", is_aligned<1>());
  show("half_is_aligned_2", is_aligned<2>());
  show("half_is_aligned_4", is_aligned<4>());
  show("half_is_aligned_8", is_aligned<8>());
  show("half_is_aligned_16", is_aligned<16>());
  show("tma_descriptor_nbytes", sizeof(TmaDescriptor));
  return 0;
}
