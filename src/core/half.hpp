// Numbers of half precision, also where the compiler has no arithmetic for them (clang before 15).
#pragma once

#include <bit>
#include <cstdint>

namespace heddle {

/// IEEE 754 binary16 in software: computes in float and rounds each result to nearest, ties to even. Slower than the compiler's own type.
class SoftHalf {
 public:
  SoftHalf() = default;
  explicit SoftHalf(float value) noexcept : bits_(round(value)) {}
  operator float() const noexcept {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits_ & 0x8000) << 16;
    const std::uint32_t exponent = bits_ >> 10 & 0x1f, fraction = bits_ & 0x3ff;
    if (exponent == 0) {  // zero or subnormal: a multiple of 2^-24
      const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
      return sign ? -magnitude : magnitude;
    }
    const std::uint32_t wide = exponent == 0x1f ? 0x7f800000 : (exponent + 112) << 23;
    return std::bit_cast<float>(sign | wide | fraction << 13);
  }
  friend SoftHalf operator+(SoftHalf a, SoftHalf b) noexcept { return SoftHalf(float{a} + float{b}); }
  friend SoftHalf operator-(SoftHalf a, SoftHalf b) noexcept { return SoftHalf(float{a} - float{b}); }
  friend SoftHalf operator*(SoftHalf a, SoftHalf b) noexcept { return SoftHalf(float{a} * float{b}); }

 private:
  static std::uint16_t round(float value) noexcept {
    const auto all = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = all >> 16 & 0x8000;
    std::uint32_t x = all & 0x7fffffff, half;
    if (x > 0x7f800000) {
      half = 0x7e00 | (x >> 13 & 0x3ff);  // not a number, and quiet
    } else if (x >= 0x477ff000) {
      half = 0x7c00;  // from 65520 on it is infinity
    } else if (x < 0x38800000) {
      // Subnormal: the last bit of 0.5 is worth 2^-24, so the addition rounds as it should.
      half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(x) + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
    } else {
      x += 0xfff + (x >> 13 & 1);
      half = (x - 0x38000000) >> 13;
    }
    return static_cast<std::uint16_t>(sign | half);
  }

  std::uint16_t bits_;
};

#ifdef __FLT16_MANT_DIG__
using Half = _Float16;
#else
using Half = SoftHalf;
#endif
static_assert(sizeof(Half) == 2);

}  // namespace heddle
