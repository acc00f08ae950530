// Where CuTe's structs have the fields of descriptors, and where its traits put the registers
// of tcgen05.ld and the scales of B of a pair's MMA. A line is a name, what it is of, "=" and
// a list. Host code only.

#include <cstdint>
#include <cstdio>
#include <cstring>

#include <cute/tensor.hpp>
#include <cute/atom/copy_traits_sm100.hpp>
#include <cute/atom/mma_traits_sm100.hpp>
#include <cutlass/numeric_types.h>

using namespace cute;
using Scaled = UMMA::InstrDescriptorBlockScaled;
using Plain = UMMA::InstrDescriptor;

template <class T>
unsigned long long bits(T const& value) {
  unsigned long long word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}

// The bits of a field: all of them set, and nothing else.
#define FIELD(UNION, NAME)                                            \
  {                                                                   \
    UNION word;                                                       \
    std::memset(static_cast<void*>(&word), 0, sizeof word);           \
    word.NAME = ~0;                                                   \
    std::printf("field " #UNION " " #NAME " = %llu\n", bits(word));   \
  }

#define OF_BOTH(UNION)                                                                \
  FIELD(UNION, sparse_id2_) FIELD(UNION, sparse_flag_) FIELD(UNION, a_format_)        \
  FIELD(UNION, b_format_) FIELD(UNION, a_negate_) FIELD(UNION, b_negate_)             \
  FIELD(UNION, a_major_) FIELD(UNION, b_major_) FIELD(UNION, n_dim_) FIELD(UNION, m_dim_)

template <class Operation>
void registers(const char* shape, int count) {
  using Traits = Copy_Traits<Operation>;
  std::printf("registers %s %d =", shape, count);
  for (int thread = 0; thread < 32; ++thread) {
    for (int i = 0; i < count; ++i) {
      int bit = typename Traits::ValID{}(typename Traits::DstLayout{}(thread, 32 * i));
      std::printf(" %d %d", bit / TMEM::DP_b::value, bit % TMEM::DP_b::value / 32);
    }
  }
  std::printf("\n");
}

// Lane, and byte in the lane, of the scales of 128 rows of B: copy, row and K.
template <UMMA::TmemAllocMode mode>
void scales(const char* name, int copies) {
  using Element = cutlass::float_ue4m3_t;
  using Shape128 = Shape<Shape<_128, Shape<_16, _4>>, _1, _1>;
  auto places = UMMA::tmem_sf_frg<Element, 16, 2, false, mode>::make(Shape128{}).layout();
  std::printf("scales %s =", name);
  for (int i = 0; i < 128 * copies; ++i) {
    for (int k = 0; k < 4; ++k) {
      int at = places(make_coord(make_coord(i, make_coord(0, k)), 0, 0));
      std::printf(" %d %d", at / TMEM::DP<Element>::value, at % TMEM::DP<Element>::value);
    }
  }
  std::printf("\n");
}

int main() {
  scales<UMMA::TmemAllocMode::ScaleFactorDuplicated4by1>("4by1", 4);
  scales<UMMA::TmemAllocMode::ScaleFactorDuplicated2by2>("2by2", 2);
  OF_BOTH(Scaled)
  FIELD(Scaled, b_sf_id_) FIELD(Scaled, a_sf_id_)
  FIELD(Scaled, scale_format_) FIELD(Scaled, k_size_)
  OF_BOTH(Plain)
  FIELD(Plain, saturate_) FIELD(Plain, c_format_) FIELD(Plain, max_shift_)
  using Matrix = UMMA::SmemDescriptor;
  FIELD(Matrix, start_address_) FIELD(Matrix, leading_byte_offset_)
  FIELD(Matrix, stride_byte_offset_) FIELD(Matrix, version_) FIELD(Matrix, base_offset_)
  FIELD(Matrix, lbo_mode_) FIELD(Matrix, layout_type_)
  using Kind = UMMA::LayoutType;
  std::printf("swizzle 32 64 128 = %d %d %d\n", int(Kind::SWIZZLE_32B), int(Kind::SWIZZLE_64B),
              int(Kind::SWIZZLE_128B));
  registers<SM100_TMEM_LOAD_32dp32b1x>("32x32b", 1);
  registers<SM100_TMEM_LOAD_16dp64b1x>("16x64b", 1);
  registers<SM100_TMEM_LOAD_16dp128b1x>("16x128b", 2);
  registers<SM100_TMEM_LOAD_16dp256b1x>("16x256b", 4);
}
