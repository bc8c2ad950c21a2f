// Half precision in software, against the compiler's own type where it has one.
#include "core/half.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace heddle {
namespace {

std::uint16_t bits(SoftHalf h) { return std::bit_cast<std::uint16_t>(h); }
SoftHalf from_bits(unsigned b) { return std::bit_cast<SoftHalf>(static_cast<std::uint16_t>(b)); }

TEST(Half, every_number_survives_the_way_through_float) {
  for (unsigned b = 0; b < 0x10000; ++b) {
    const float value = from_bits(b);
    if (std::isnan(value))
      EXPECT_EQ(bits(SoftHalf(value)), b | 0x200);
    else
      ASSERT_EQ(bits(SoftHalf(value)), b) << value;
  }
}

TEST(Half, results_are_rounded_to_nearest_and_ties_to_even) {
  EXPECT_EQ(bits(SoftHalf(1.0f)), 0x3c00);
  EXPECT_EQ(bits(SoftHalf(1.0f + 0x1p-11f)), 0x3c00);
  EXPECT_EQ(bits(SoftHalf(1.0f + 0x3p-11f)), 0x3c02);
  EXPECT_EQ(bits(SoftHalf(65504.0f)), 0x7bff);
  EXPECT_EQ(bits(SoftHalf(65519.0f)), 0x7bff);
  EXPECT_EQ(bits(SoftHalf(65520.0f)), 0x7c00);
  EXPECT_EQ(bits(SoftHalf(0x1p-24f)), 0x0001);
  EXPECT_EQ(bits(SoftHalf(0x1p-25f)), 0x0000);
  EXPECT_EQ(bits(SoftHalf(0x3p-25f)), 0x0002);
  EXPECT_EQ(bits(SoftHalf(-std::numeric_limits<float>::infinity())), 0xfc00);
  EXPECT_EQ(float{SoftHalf(3.0f) * SoftHalf(0.5f) - SoftHalf(4.0f) + SoftHalf(1.0f)}, -1.5f);
}

#ifdef __FLT16_MANT_DIG__
TEST(Half, rounds_as_the_compiler_does) {
  std::mt19937 random(1);
  for (int i = 0; i < 2'000'000; ++i) {
    const auto value = std::bit_cast<float>((static_cast<std::uint32_t>(random()) & 0x8fffffff) | (i & 1 ? 0x30000000u : 0x40000000u));
    if (std::isnan(value)) continue;
    ASSERT_EQ(bits(SoftHalf(value)), std::bit_cast<std::uint16_t>(static_cast<_Float16>(value))) << value;
  }
}
#endif

}  // namespace
}  // namespace heddle
