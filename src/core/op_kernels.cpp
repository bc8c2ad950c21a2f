// The predefined operations on the predefined types: one loop for each pair, in a table.
#include <cstdint>
#include <type_traits>

#include "core/basic_type.hpp"
#include "core/half.hpp"
#include "core/op.hpp"

namespace heddle {
namespace {

template <typename T>
struct Complex {
  T re, im;
};
template <typename V, typename I>
struct Pair {
  V value;
  I index;
};
/// A logical of the storage of T: zero is false, one is written for true.
template <typename T>
struct Logical {
  T value;
};
/// Bits without arithmetic.
struct Byte {
  std::uint8_t value;
};

enum class Class { integer, real, complex, logical, bytes, pair };

template <typename T>
struct Traits {
  static constexpr Class group =
      std::is_integral_v<T> || std::is_same_v<T, __int128> || std::is_same_v<T, unsigned __int128> ? Class::integer
                                                                                                   : Class::real;
};
template <typename T>
struct Traits<Complex<T>> {
  static constexpr Class group = Class::complex;
};
template <typename T>
struct Traits<Logical<T>> {
  static constexpr Class group = Class::logical;
};
template <>
struct Traits<Byte> {
  static constexpr Class group = Class::bytes;
};
template <typename V, typename I>
struct Traits<Pair<V, I>> {
  static constexpr Class group = Class::pair;
};

/// Where each operation is defined. \see MPI-5.0 §6.9.2, table of groups
constexpr bool is_defined(OpCode code, Class group) {
  switch (code) {
    case OpCode::min:
    case OpCode::max:
      return group == Class::integer || group == Class::real;
    case OpCode::sum:
    case OpCode::prod:
      return group == Class::integer || group == Class::real || group == Class::complex;
    case OpCode::band:
    case OpCode::bor:
    case OpCode::bxor:
      return group == Class::integer || group == Class::bytes;
    case OpCode::land:
    case OpCode::lor:
    case OpCode::lxor:
      return group == Class::integer || group == Class::logical;
    case OpCode::minloc:
    case OpCode::maxloc:
      return group == Class::pair;
    default:
      return false;
  }
}

// Overflow wraps around, as it does in every MPI: arithmetic is done in an unsigned type of at least int's width.
template <typename T>
struct Wrapping {
  using type = std::conditional_t<(sizeof(T) <= 4), std::uint32_t,
                                  std::conditional_t<(sizeof(T) <= 8), std::uint64_t, unsigned __int128>>;
};

template <OpCode code, typename T>
inline T combine(T a, T b) noexcept {
  constexpr Class group = Traits<T>::group;
  if constexpr (group == Class::integer) {
    using U = typename Wrapping<T>::type;
    if constexpr (code == OpCode::sum) return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    if constexpr (code == OpCode::prod) return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    if constexpr (code == OpCode::min) return a < b ? a : b;
    if constexpr (code == OpCode::max) return a > b ? a : b;
    if constexpr (code == OpCode::band) return static_cast<T>(a & b);
    if constexpr (code == OpCode::bor) return static_cast<T>(a | b);
    if constexpr (code == OpCode::bxor) return static_cast<T>(a ^ b);
    if constexpr (code == OpCode::land) return static_cast<T>(a && b);
    if constexpr (code == OpCode::lor) return static_cast<T>(a || b);
    if constexpr (code == OpCode::lxor) return static_cast<T>(!a != !b);
  } else if constexpr (group == Class::real) {
    if constexpr (code == OpCode::sum) return static_cast<T>(a + b);
    if constexpr (code == OpCode::prod) return static_cast<T>(a * b);
    if constexpr (code == OpCode::min) return a < b ? a : b;
    if constexpr (code == OpCode::max) return a > b ? a : b;
  } else if constexpr (group == Class::complex) {
    if constexpr (code == OpCode::sum) return {a.re + b.re, a.im + b.im};
    if constexpr (code == OpCode::prod) return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  } else if constexpr (group == Class::bytes) {
    if constexpr (code == OpCode::band) return {static_cast<std::uint8_t>(a.value & b.value)};
    if constexpr (code == OpCode::bor) return {static_cast<std::uint8_t>(a.value | b.value)};
    if constexpr (code == OpCode::bxor) return {static_cast<std::uint8_t>(a.value ^ b.value)};
  } else if constexpr (group == Class::logical) {
    if constexpr (code == OpCode::land) return {a.value && b.value};
    if constexpr (code == OpCode::lor) return {a.value || b.value};
    if constexpr (code == OpCode::lxor) return {!a.value != !b.value};
  } else {  // equal values: the smaller index, whoever's it is
    if (a.value == b.value) return {a.value, a.index < b.index ? a.index : b.index};
    if constexpr (code == OpCode::minloc) return a.value < b.value ? a : b;
    if constexpr (code == OpCode::maxloc) return a.value > b.value ? a : b;
  }
}

// Pairs are read and written member by member: the bytes between and behind them may be somebody else's.
template <typename T>
inline T load(const T& from) noexcept {
  return from;
}
template <typename V, typename I>
inline Pair<V, I> load(const Pair<V, I>& from) noexcept {
  return {from.value, from.index};
}
template <typename T>
inline void store(T& to, T value) noexcept {
  to = value;
}
template <typename V, typename I>
inline void store(Pair<V, I>& to, Pair<V, I> pair) noexcept {
  to.value = pair.value;
  to.index = pair.index;
}

template <OpCode code, typename T>
void kernel(const void* in, void* inout, MPI_Count count) noexcept {
  const T* __restrict from = static_cast<const T*>(in);
  T* __restrict to = static_cast<T*>(inout);
  for (MPI_Count i = 0; i < count; ++i) store(to[i], combine<code>(load(from[i]), load(to[i])));
}

template <OpCode code, typename T>
constexpr OpKernel entry() {
  if constexpr (is_defined(code, Traits<T>::group))
    return kernel<code, T>;
  else
    return nullptr;
}

template <OpCode code>
constexpr OpKernel pair_kernel(const BasicInfo& info) {
  switch (info.value) {
    case 0x28:
      return entry<code, Pair<float, int>>();
    case 0x29:
      return entry<code, Pair<double, int>>();
    case 0x2a:
      return entry<code, Pair<long, int>>();
    case 0x2b:
      return entry<code, Pair<int, int>>();
    case 0x2c:
      return entry<code, Pair<short, int>>();
    case 0x2d:
      return entry<code, Pair<long double, int>>();
    case 0x30:
      return entry<code, Pair<float, float>>();
    case 0x31:
      return entry<code, Pair<double, double>>();
    case 0x32:
      return entry<code, Pair<int, int>>();
    default:
      return nullptr;
  }
}

template <OpCode code>
constexpr OpKernel select(const BasicInfo& info) {
  using R = Representation;
  switch (info.representation) {
    case R::none:
      return nullptr;
    case R::bytes:
      return entry<code, Byte>();
    // The standard keeps characters out of reductions, but programs reduce MPI_CHAR and other libraries let them.
    case R::character:
      return info.value == 0x43 ? entry<code, signed char>() : nullptr;
    case R::i8:
      return entry<code, std::int8_t>();
    case R::i16:
      return entry<code, std::int16_t>();
    case R::i32:
      return entry<code, std::int32_t>();
    case R::i64:
      return entry<code, std::int64_t>();
    case R::i128:
      return entry<code, __int128>();
    case R::u8:
      return entry<code, std::uint8_t>();
    case R::u16:
      return entry<code, std::uint16_t>();
    case R::u32:
      return entry<code, std::uint32_t>();
    case R::u64:
      return entry<code, std::uint64_t>();
    case R::f16:
      return entry<code, Half>();
    case R::f32:
      return entry<code, float>();
    case R::f64:
      return entry<code, double>();
    case R::f80:
      return entry<code, long double>();
    case R::f128:
      return entry<code, __float128>();
    case R::c_f16:
      return entry<code, Complex<Half>>();
    case R::c_f32:
      return entry<code, Complex<float>>();
    case R::c_f64:
      return entry<code, Complex<double>>();
    case R::c_f80:
      return entry<code, Complex<long double>>();
    case R::c_f128:
      return entry<code, Complex<__float128>>();
    case R::l8:
      return entry<code, Logical<std::uint8_t>>();
    case R::l16:
      return entry<code, Logical<std::uint16_t>>();
    case R::l32:
      return entry<code, Logical<std::uint32_t>>();
    case R::l64:
      return entry<code, Logical<std::uint64_t>>();
    case R::l128:
      return entry<code, Logical<unsigned __int128>>();
    case R::pair:
      return pair_kernel<code>(info);
  }
  return nullptr;
}

template <OpCode code>
constexpr std::array<OpKernel, 256> row() {
  std::array<OpKernel, 256> kernels{};
  for (int basic = 0; basic < 256; ++basic) kernels[basic] = select<code>(basic_types[basic]);
  return kernels;
}

// By operation, then by basic type. 28 KiB of read-only memory, of which a program touches a few lines.
constexpr std::array<std::array<OpKernel, 256>, op_codes> kernels = {
    row<OpCode::user>(), row<OpCode::sum>(),    row<OpCode::min>(),    row<OpCode::max>(),     row<OpCode::prod>(),
    row<OpCode::band>(), row<OpCode::bor>(),    row<OpCode::bxor>(),   row<OpCode::land>(),    row<OpCode::lor>(),
    row<OpCode::lxor>(), row<OpCode::minloc>(), row<OpCode::maxloc>(), row<OpCode::replace>(), row<OpCode::no_op>()};

}  // namespace

OpKernel find_kernel(OpCode code, std::uint8_t basic) noexcept { return kernels[static_cast<int>(code)][basic]; }

}  // namespace heddle
