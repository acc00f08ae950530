// Where CuTe puts the elements of an MMA's operands, with the descriptors it makes for
// them. A line is a name, what it is of, "=" and a list. Host code only: CuTe's remark that
// it cannot convert an address there stands between the lines, and addresses start at 0.

#include <cstdint>
#include <cstdio>
#include <cstring>

#include <cute/tensor.hpp>
#include <cute/atom/mma_traits_sm100.hpp>
#include <cutlass/numeric_types.h>

using namespace cute;
using cute::UMMA::Major;

alignas(1024) static unsigned char buffer[1 << 17];

// The tiles that the first two instructions along K take of a stage of MN x 64 bytes.
template <class T, Major major, class Atom, class Order>
void tiles(const char* name, Atom, Order order) {
  constexpr int MN = 128, K = 32 / sizeof(T);
  auto layout = tile_to_shape(Atom{}, Shape<Int<MN>, Int<4 * K>>{}, order);
  Tensor stage = make_tensor(make_smem_ptr(reinterpret_cast<T*>(buffer)), layout);
  for (int block = 0; block < 2; ++block) {
    Tensor tile = local_tile(stage, Shape<Int<MN>, Int<K>>{}, make_coord(0, block));
    auto address = [](auto const* p) { return int(reinterpret_cast<unsigned char const*>(p) - buffer); };
    auto descriptor = UMMA::make_umma_desc<major>(tile);
    int start = address(raw_pointer_cast(tile.data()));
    std::printf("\ntile %s %d %d %d %llu =", name, int(sizeof(T)), int(major), start,
                static_cast<unsigned long long>(descriptor.desc_));
    for (int row = 0; row < MN; ++row) {
      for (int k = 0; k < K; ++k) {
        std::printf(" %d", address(&tile(row, k)));
      }
    }
    std::printf("\n");
  }
}

template <class T>
void all_tiles() {
  using MnFirst = Step<_1, _2>;
  using KFirst = Step<_2, _1>;
  tiles<T, Major::K>("none", UMMA::Layout_K_INTER_Atom<T>{}, MnFirst{});
  tiles<T, Major::K>("none", UMMA::Layout_K_INTER_Atom<T>{}, KFirst{});
  tiles<T, Major::K>("32", UMMA::Layout_K_SW32_Atom<T>{}, MnFirst{});
  tiles<T, Major::K>("64", UMMA::Layout_K_SW64_Atom<T>{}, MnFirst{});
  tiles<T, Major::K>("128", UMMA::Layout_K_SW128_Atom<T>{}, MnFirst{});
  tiles<T, Major::MN>("none", UMMA::Layout_MN_INTER_Atom<T>{}, MnFirst{});
  tiles<T, Major::MN>("none", UMMA::Layout_MN_INTER_Atom<T>{}, KFirst{});
  tiles<T, Major::MN>("32", UMMA::Layout_MN_SW32_Atom<T>{}, MnFirst{});
  tiles<T, Major::MN>("32", UMMA::Layout_MN_SW32_Atom<T>{}, KFirst{});
  tiles<T, Major::MN>("64", UMMA::Layout_MN_SW64_Atom<T>{}, MnFirst{});
  tiles<T, Major::MN>("64", UMMA::Layout_MN_SW64_Atom<T>{}, KFirst{});
  tiles<T, Major::MN>("128", UMMA::Layout_MN_SW128_Atom<T>{}, MnFirst{});
  tiles<T, Major::MN>("128", UMMA::Layout_MN_SW128_Atom<T>{}, KFirst{});
}

template <class Descriptor>
unsigned bits(Descriptor const& descriptor) {
  std::uint32_t word;
  std::memcpy(&word, &descriptor, sizeof word);
  return word;
}

// Instruction descriptors: M 128, N 48; A is MN-major and B negated.
template <class A, class B>
void words(const char* a, const char* b) {
  constexpr auto one = UMMA::ScaleIn::One, neg = UMMA::ScaleIn::Neg;
  auto plain = UMMA::make_instr_desc<A, B, float, 128, 48, Major::MN, Major::K, one, neg>();
  auto scaled = UMMA::make_instr_desc_block_scaled<A, B, float, cutlass::float_ue8m0_t, 128, 48,
                                                   Major::MN, Major::K, one, neg>();
  std::printf("words %s %s = %u %u\n", a, b, bits(plain), bits(scaled));
}

using E3M2 = cutlass::detail::float_e3m2_unpacksmem_t;
using E2M3 = cutlass::detail::float_e2m3_unpacksmem_t;
using E2M1 = cutlass::detail::float_e2m1_unpacksmem_t;

template <class A>
void words_of(const char* a) {
  words<A, cutlass::float_e4m3_t>(a, "e4m3");
  words<A, cutlass::float_e5m2_t>(a, "e5m2");
  words<A, E3M2>(a, "e3m2");
  words<A, E2M3>(a, "e2m3");
  words<A, E2M1>(a, "e2m1");
}

// The bytes of 16 packed elements of which one has all bits set.
template <class T>
void packed(const char* name) {
  constexpr int bytes = 16 * sizeof_bits_v<T> / 8;
  for (int i = 0; i < 16; ++i) {
    std::memset(buffer, 0, bytes);
    Tensor row = make_tensor(recast_ptr<T>(buffer), Layout<_16>{});
    row(i) = T::bitcast((1 << sizeof_bits_v<T>) - 1);
    std::printf("packed %s %d =", name, i);
    for (int byte = 0; byte < bytes; ++byte) {
      std::printf(" %d", buffer[byte]);
    }
    std::printf("\n");
  }
}

int main() {
  all_tiles<cutlass::half_t>();
  all_tiles<std::uint8_t>();
  words_of<cutlass::float_e4m3_t>("e4m3");
  words_of<cutlass::float_e5m2_t>("e5m2");
  words_of<E3M2>("e3m2");
  words_of<E2M3>("e2m3");
  words_of<E2M1>("e2m1");
  packed<cutlass::float_e2m1_t>("e2m1");
  packed<cutlass::float_e2m3_t>("e2m3");
  packed<cutlass::float_e3m2_t>("e3m2");
}
