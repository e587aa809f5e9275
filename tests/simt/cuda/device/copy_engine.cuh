// What src/cuda/device/copy_engine.cuh says in PTX, on the machine of tests/simt.
#pragma once

#include <cuda_words.hpp>

#include <core/scalar.hpp>

namespace trifactor::cuda {

using namespace core;

struct CUtensorMap {
  const double* A;
  index_t stride, n;
};
template <bool column_major>
bool make_map(CUtensorMap& map, double* A, index_t stride, index_t n) {
  map = {A, stride, n};
  return n >= 128;
}

inline constexpr bool copies_boxes = true;
inline void fence_copy_engine() {}

/// 128 lines of 128 bytes: 16 numbers on and across. In each, 16 bytes are at their place XOR the number of the line.
struct Box {
  CUtensorMap map;
  int x, y, z;
  template <bool column_major>
  static void write(unsigned char* to, const unsigned char* what) {
    Box b;
    std::memcpy(&b, what, sizeof b);
    for (int line = 0; line < 128; ++line)
      for (int e = 0; e < 16; ++e) {
        const index_t row = column_major ? b.x + e + 16 * (b.z + line / 16) : b.y + line;
        const index_t col = column_major ? b.y + line % 16 : b.x + e;
        const bool inside = col < b.map.n && (column_major ? row < b.map.n / 16 * 16 : row < b.map.n);
        const index_t at = column_major ? row + col * b.map.stride : col + row * b.map.stride;
        const double v = inside ? b.map.A[at] : 0.0;
        std::memcpy(to + line * 128 + (e / 2 ^ line % 8) * 16 + e % 2 * 8, &v, 8);
      }
  }
  template <bool column_major>
  void send(unsigned shared, unsigned barrier) const {
    if (shared % 1024 != 0) simt::fail("a box to an address that is not aligned");
    simt::Sent sent;
    static_assert(sizeof(Box) <= sizeof sent.what);
    std::memcpy(sent.what, this, sizeof *this);
    sent.write = write<column_major>, sent.bytes = 128 * 128;
    simt::send(shared, sent, barrier);
  }
};
inline void copy_box(unsigned shared, const CUtensorMap* map, int x, int y, unsigned barrier) {
  Box{*map, x, y, 0}.send<false>(shared, barrier);
}
inline void copy_box(unsigned shared, const CUtensorMap* map, int x, int y, int z, unsigned barrier) {
  Box{*map, x, y, z}.send<true>(shared, barrier);
}

}  // namespace trifactor::cuda
