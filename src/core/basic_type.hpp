// The predefined datatypes: what each one is made of. One table; reductions, external32 and the names come from it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace heddle {

/// A predefined datatype as a small number: its ABI handle value minus 0x200 (MPI_INT is 0x09). 0 means "none or
/// mixed". \see MPI-5.0 §20 (ABI constants)
using BasicType = std::uint8_t;

/// How the bytes of a predefined datatype are to be understood: what arithmetic sees.
enum class Representation : std::uint8_t {
  none,
  bytes,      ///< MPI_BYTE, MPI_PACKED: no value, only bits
  character,  ///< MPI_CHAR, MPI_CHARACTER, MPI_WCHAR: no arithmetic
  i8,
  i16,
  i32,
  i64,
  i128,
  u8,
  u16,
  u32,
  u64,
  f16,
  f32,
  f64,
  f80,
  f128,  ///< f80 is the x87 format in 16 bytes (C long double)
  c_f16,
  c_f32,
  c_f64,
  c_f80,
  c_f128,  ///< complex: two of them
  l8,
  l16,
  l32,
  l64,
  l128,  ///< logical of that many bits: zero is false
  pair,  ///< value and index: see BasicInfo::first, second
};

/// Everything there is to know about one predefined datatype. Sizes in bytes.
struct BasicInfo {
  const char* name = nullptr;  ///< nullptr: no such predefined datatype
  BasicType value = 0;
  Representation representation = Representation::none;
  std::uint8_t size = 0;
  std::uint8_t alignment = 1;
  std::uint8_t external = 0;  ///< size in external32 \see MPI-5.0 §14.5.2
  std::uint8_t extent = 0;
  // Pairs only: the two members and where the second one lies (the layout of a C struct).
  BasicType first = 0, second = 0;
  std::uint8_t second_offset = 0;

  [[nodiscard]] constexpr bool is_pair() const noexcept { return first != 0; }
  /// Whether an element in memory has bytes that are not its own: between or behind the members of some pairs.
  [[nodiscard]] constexpr bool has_holes() const noexcept { return size != extent; }
  /// How many basic elements MPI_Get_elements sees: two in a pair.
  [[nodiscard]] constexpr int elements() const noexcept { return first ? 2 : 1; }
};

namespace detail {

constexpr BasicInfo simple(const char* name, unsigned value, Representation r, unsigned size, unsigned alignment,
                           unsigned external) {
  BasicInfo b;
  b.name = name;
  b.value = static_cast<BasicType>(value - 0x200);
  b.representation = r;
  b.size = b.extent = static_cast<std::uint8_t>(size);
  b.alignment = static_cast<std::uint8_t>(alignment);
  b.external = static_cast<std::uint8_t>(external);
  return b;
}

constexpr std::array<BasicInfo, 256> make_basic_table() {
  using R = Representation;
  std::array<BasicInfo, 256> table{};
  const auto add = [&](const BasicInfo& b) { table[b.value] = b; };
  const auto plain = [&](const char* name, unsigned value, R r, unsigned size) {
    add(simple(name, value, r, size, size, size));
  };
  const auto complex = [&](const char* name, unsigned value, R r, unsigned size) {
    add(simple(name, value, r, size, size / 2, size));
  };
  const auto pair = [&](const char* name, unsigned value, unsigned first, unsigned second) {
    const BasicInfo &a = table[first - 0x200], &c = table[second - 0x200];
    const auto round = [](unsigned n, unsigned to) { return (n + to - 1) / to * to; };
    BasicInfo b;
    b.name = name;
    b.value = static_cast<BasicType>(value - 0x200);
    b.representation = R::pair;
    b.first = a.value;
    b.second = c.value;
    b.size = static_cast<std::uint8_t>(a.size + c.size);
    b.external = static_cast<std::uint8_t>(a.external + c.external);
    b.alignment = a.alignment > c.alignment ? a.alignment : c.alignment;
    b.second_offset = static_cast<std::uint8_t>(round(a.size, c.alignment));
    b.extent = static_cast<std::uint8_t>(round(b.second_offset + c.size, b.alignment));
    add(b);
  };

  plain("MPI_AINT", 0x201, R::i64, 8);
  plain("MPI_COUNT", 0x202, R::i64, 8);
  plain("MPI_OFFSET", 0x203, R::i64, 8);
  plain("MPI_PACKED", 0x207, R::bytes, 1);
  plain("MPI_SHORT", 0x208, R::i16, 2);
  plain("MPI_INT", 0x209, R::i32, 4);
  add(simple("MPI_LONG", 0x20a, R::i64, 8, 8, 4));
  plain("MPI_LONG_LONG_INT", 0x20b, R::i64, 8);
  plain("MPI_UNSIGNED_SHORT", 0x20c, R::u16, 2);
  plain("MPI_UNSIGNED", 0x20d, R::u32, 4);
  add(simple("MPI_UNSIGNED_LONG", 0x20e, R::u64, 8, 8, 4));
  plain("MPI_UNSIGNED_LONG_LONG", 0x20f, R::u64, 8);
  plain("MPI_FLOAT", 0x210, R::f32, 4);
  complex("MPI_C_COMPLEX", 0x212, R::c_f32, 8);
  complex("MPI_CXX_FLOAT_COMPLEX", 0x213, R::c_f32, 8);
  plain("MPI_DOUBLE", 0x214, R::f64, 8);
  complex("MPI_C_DOUBLE_COMPLEX", 0x216, R::c_f64, 16);
  complex("MPI_CXX_DOUBLE_COMPLEX", 0x217, R::c_f64, 16);
  plain("MPI_LOGICAL", 0x218, R::l32, 4);
  plain("MPI_INTEGER", 0x219, R::i32, 4);
  plain("MPI_REAL", 0x21a, R::f32, 4);
  complex("MPI_COMPLEX", 0x21b, R::c_f32, 8);
  plain("MPI_DOUBLE_PRECISION", 0x21c, R::f64, 8);
  complex("MPI_DOUBLE_COMPLEX", 0x21d, R::c_f64, 16);
  plain("MPI_CHARACTER", 0x21e, R::character, 1);
  plain("MPI_LONG_DOUBLE", 0x220, R::f80, 16);
  complex("MPI_C_LONG_DOUBLE_COMPLEX", 0x224, R::c_f80, 32);
  complex("MPI_CXX_LONG_DOUBLE_COMPLEX", 0x225, R::c_f80, 32);
  plain("MPI_C_BOOL", 0x238, R::l8, 1);
  plain("MPI_CXX_BOOL", 0x239, R::l8, 1);
  add(simple("MPI_WCHAR", 0x23c, R::character, 4, 4, 2));
  plain("MPI_INT8_T", 0x240, R::i8, 1);
  plain("MPI_UINT8_T", 0x241, R::u8, 1);
  plain("MPI_CHAR", 0x243, R::character, 1);
  plain("MPI_SIGNED_CHAR", 0x244, R::i8, 1);
  plain("MPI_UNSIGNED_CHAR", 0x245, R::u8, 1);
  plain("MPI_BYTE", 0x247, R::bytes, 1);
  plain("MPI_INT16_T", 0x248, R::i16, 2);
  plain("MPI_UINT16_T", 0x249, R::u16, 2);
  plain("MPI_INT32_T", 0x250, R::i32, 4);
  plain("MPI_UINT32_T", 0x251, R::u32, 4);
  plain("MPI_INT64_T", 0x258, R::i64, 8);
  plain("MPI_UINT64_T", 0x259, R::u64, 8);
  plain("MPI_LOGICAL1", 0x2c0, R::l8, 1);
  plain("MPI_INTEGER1", 0x2c1, R::i8, 1);
  plain("MPI_LOGICAL2", 0x2c8, R::l16, 2);
  plain("MPI_INTEGER2", 0x2c9, R::i16, 2);
  plain("MPI_REAL2", 0x2ca, R::f16, 2);
  plain("MPI_LOGICAL4", 0x2d0, R::l32, 4);
  plain("MPI_INTEGER4", 0x2d1, R::i32, 4);
  plain("MPI_REAL4", 0x2d2, R::f32, 4);
  complex("MPI_COMPLEX4", 0x2d3, R::c_f16, 4);
  plain("MPI_LOGICAL8", 0x2d8, R::l64, 8);
  plain("MPI_INTEGER8", 0x2d9, R::i64, 8);
  plain("MPI_REAL8", 0x2da, R::f64, 8);
  complex("MPI_COMPLEX8", 0x2db, R::c_f32, 8);
  plain("MPI_LOGICAL16", 0x2e0, R::l128, 16);
  plain("MPI_INTEGER16", 0x2e1, R::i128, 16);
  plain("MPI_REAL16", 0x2e2, R::f128, 16);
  complex("MPI_COMPLEX16", 0x2e3, R::c_f64, 16);
  complex("MPI_COMPLEX32", 0x2eb, R::c_f128, 32);

  pair("MPI_FLOAT_INT", 0x228, 0x210, 0x209);
  pair("MPI_DOUBLE_INT", 0x229, 0x214, 0x209);
  pair("MPI_LONG_INT", 0x22a, 0x20a, 0x209);
  pair("MPI_2INT", 0x22b, 0x209, 0x209);
  pair("MPI_SHORT_INT", 0x22c, 0x208, 0x209);
  pair("MPI_LONG_DOUBLE_INT", 0x22d, 0x220, 0x209);
  pair("MPI_2REAL", 0x230, 0x21a, 0x21a);
  pair("MPI_2DOUBLE_PRECISION", 0x231, 0x21c, 0x21c);
  pair("MPI_2INTEGER", 0x232, 0x219, 0x219);
  return table;
}

}  // namespace detail

/// The table, by BasicType; entries without a name do not exist.
inline constexpr std::array<BasicInfo, 256> basic_types = detail::make_basic_table();

[[nodiscard]] constexpr const BasicInfo& basic_info(BasicType basic) noexcept { return basic_types[basic]; }

static_assert(basic_info(0x2d).extent == 32 && basic_info(0x2d).second_offset == 16, "struct { long double; int; }");
static_assert(basic_info(0x2c).size == 6 && basic_info(0x2c).extent == 8, "struct { short; int; }");

}  // namespace heddle
