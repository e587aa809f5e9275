// What src/cuda/device/instructions.cuh says in PTX, on the machine of tests/simt.
#pragma once

#include <cuda_words.hpp>

#include <core/scalar.hpp>

namespace trifactor::cuda {

using namespace core;

namespace simt_mma {
/// c += a b for 16 x depth by depth x 8, in double; lanes have a and b in halves of four columns, as the hardware does.
template <int halves, class R, class Word>
void multiply(R (&c)[4], const Word (&a)[halves][2], const Word (&b)[halves], simt::Where where) {
  const int lane = int(simt::lane());
  double sum[4] = {0, 0, 0, 0};
  for (int h = 0; h < halves; ++h) {
    struct Operands {
      Word a[2];
    } const own{{a[h][0], a[h][1]}};
    const auto number = [](Word w) {
      if constexpr (std::is_same_v<Word, unsigned>)
        return double(std::bit_cast<float>(w & 0xffffe000u));  // the other bits of TF32 are not read
      else
        return double(w);
    };
    const simt::OfLanes<Operands> all_a(own, where);
    const simt::OfLanes<Word> all_b(b[h], where);
    for (int e = 0; e < 4; ++e)
      for (int k = 0; k < 4; ++k)
        sum[e] += number(all_a[lane / 4 * 4 + k].a[e / 2]) * number(all_b[(lane % 4 * 2 + e % 2) * 4 + k]);
  }
  for (int e = 0; e < 4; ++e) c[e] = R(c[e] + sum[e]);
}
}  // namespace simt_mma

inline void mma(double (&c)[4], double a0, double a1, double b, simt::Where where = simt::Where::current()) {
  simt_mma::multiply<1>(c, {{a0, a1}}, {b}, where);
}
inline void mma_tf32(float (&c)[4], unsigned a0, unsigned a1, unsigned b, simt::Where where = simt::Where::current()) {
  simt_mma::multiply<1>(c, {{a0, a1}}, {b}, where);
}
inline void mma8_tf32(float (&c)[4], const unsigned (&a)[2][2], const unsigned (&b)[2],
                      simt::Where where = simt::Where::current()) {
  simt_mma::multiply<2>(c, a, b, where);
}

inline void mma16(double (&c)[4], const double (&a)[8], const double (&b)[4],
                  simt::Where where = simt::Where::current()) {
  simt_mma::multiply<4>(c, {{-a[0], -a[1]}, {-a[2], -a[3]}, {-a[4], -a[5]}, {-a[6], -a[7]}}, b, where);
}

// Of doubles as many bits as the hardware gives: those of the upper word.
inline double upper_word(double x) { return __hiloint2double(__double2hiint(x), 0); }
inline float approximate_reciprocal(float d) { return 1 / d; }
inline double approximate_reciprocal(double d) { return upper_word(1 / d); }
inline float early_reciprocal(float d) { return approximate_reciprocal(d); }
inline double early_reciprocal(double d) { return approximate_reciprocal(d); }
inline float approximate_rsqrt(float d) { return 1 / std::sqrt(d); }
inline double approximate_rsqrt(double d) { return upper_word(1 / std::sqrt(d)); }

inline int this_thread() { return int(threadIdx.x); }
inline double load_shared(unsigned p) { return *static_cast<const double*>(simt::shared_memory(p)); }
inline void load_shared(double& x, double& y, unsigned p) { x = load_shared(p), y = load_shared(p + 8); }
inline unsigned opaque(unsigned x) { return x; }
template <class T>
T uninitialized() {
  return T(Limits<Real<T>>::nan);
}
inline unsigned long long global_time() { return 1; }

}  // namespace trifactor::cuda
