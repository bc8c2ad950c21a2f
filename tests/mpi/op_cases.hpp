// Each predefined operation on each datatype that it is defined for, beside plain C++ that says what it gives: what reductions and
// accumulates are compared with.
#pragma once

#include <complex>
#include <type_traits>

#include "support.hpp"

namespace test {

template <typename V, typename I>
struct Pair {
  V value;
  I index;
  bool operator==(const Pair& o) const { return value == o.value && index == o.index; }
};

/// A value that makes exact results: small enough that sums and products of all ranks are exact.
template <typename T>
T sample(std::uint64_t random) {
  if constexpr (std::is_same_v<T, bool>)
    return random & 1;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(random >> 7);
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(static_cast<int>(random >> 9 & 15) - 7);
  else
    return T(static_cast<typename T::value_type>(static_cast<int>(random >> 9 & 7) - 3),
             static_cast<typename T::value_type>(static_cast<int>(random >> 13 & 7) - 3));
}
template <typename T>
T sometimes_zero(std::uint64_t random) {
  return static_cast<T>(random % 3 ? random >> 40 | 1 : 0);
}
template <typename P>
P sample_pair(std::uint64_t random) {
  return {static_cast<decltype(P::value)>(random >> 5 & 3), static_cast<decltype(P::index)>(random >> 11 & 7)};
}

// A type and an operation without their C++ types, so that the checks are compiled once and not for every pair of them.
struct OpCase {
  const char* what;
  MPI_Datatype type;
  MPI_Op op;
  std::size_t size;  // of an element in bytes
  void (*make)(std::uint64_t random, void* element);
  void (*combine)(const void* lower, const void* upper, void* result);
  bool (*equal)(const void* a, const void* b);
};

// C++ has no other way to give a lambda the expression of its case.
#define ADD_CASE(T, type, op, make, expression)                                                  \
  add<T, make>(#type " " #op, type, op, [](const void* lower, const void* upper, void* result) { \
    const T &a = *static_cast<const T*>(lower), &b = *static_cast<const T*>(upper);              \
    *static_cast<T*>(result) = expression;                                                       \
  })

struct OpCases {
  std::vector<OpCase> all;

  OpCases() {
    integer<short>(MPI_SHORT);
    integer<int>(MPI_INT);
    integer<long>(MPI_LONG);
    integer<long long>(MPI_LONG_LONG);
    integer<unsigned short>(MPI_UNSIGNED_SHORT);
    integer<unsigned>(MPI_UNSIGNED);
    integer<unsigned long>(MPI_UNSIGNED_LONG);
    integer<unsigned long long>(MPI_UNSIGNED_LONG_LONG);
    integer<signed char>(MPI_SIGNED_CHAR);
    integer<unsigned char>(MPI_UNSIGNED_CHAR);
    integer<std::int8_t>(MPI_INT8_T);
    integer<std::int16_t>(MPI_INT16_T);
    integer<std::int32_t>(MPI_INT32_T);
    integer<std::int64_t>(MPI_INT64_T);
    integer<std::uint8_t>(MPI_UINT8_T);
    integer<std::uint16_t>(MPI_UINT16_T);
    integer<std::uint32_t>(MPI_UINT32_T);
    integer<std::uint64_t>(MPI_UINT64_T);
    order<MPI_Aint>(MPI_AINT), arithmetic<MPI_Aint>(MPI_AINT), bits<MPI_Aint>(MPI_AINT);
    order<MPI_Count>(MPI_COUNT), arithmetic<MPI_Count>(MPI_COUNT), bits<MPI_Count>(MPI_COUNT);
    order<MPI_Offset>(MPI_OFFSET), arithmetic<MPI_Offset>(MPI_OFFSET), bits<MPI_Offset>(MPI_OFFSET);
    real<float>(MPI_FLOAT);
    real<double>(MPI_DOUBLE);
    real<long double>(MPI_LONG_DOUBLE);
    arithmetic<std::complex<float>>(MPI_C_FLOAT_COMPLEX);
    arithmetic<std::complex<double>>(MPI_C_DOUBLE_COMPLEX);
    arithmetic<std::complex<long double>>(MPI_C_LONG_DOUBLE_COMPLEX);
    arithmetic<std::complex<float>>(MPI_CXX_FLOAT_COMPLEX);
    arithmetic<std::complex<double>>(MPI_CXX_DOUBLE_COMPLEX);
    arithmetic<std::complex<long double>>(MPI_CXX_LONG_DOUBLE_COMPLEX);
    bits<unsigned char>(MPI_BYTE);
    logic<unsigned char>(MPI_C_BOOL);
    location<Pair<float, int>>(MPI_FLOAT_INT);
    location<Pair<double, int>>(MPI_DOUBLE_INT);
    location<Pair<long, int>>(MPI_LONG_INT);
    location<Pair<int, int>>(MPI_2INT);
    location<Pair<short, int>>(MPI_SHORT_INT);
    location<Pair<long double, int>>(MPI_LONG_DOUBLE_INT);

    // Fortran's types, where the library has them (their size is MPI_UNDEFINED where not).
    const auto exists = [](MPI_Datatype type) {
      int size = 0;
      MPI_Type_size(type, &size);
      return size != MPI_UNDEFINED && size > 0;
    };
    if (exists(MPI_INTEGER)) order<int>(MPI_INTEGER), arithmetic<int>(MPI_INTEGER), bits<int>(MPI_INTEGER);
    if (exists(MPI_INTEGER1)) order<std::int8_t>(MPI_INTEGER1), bits<std::int8_t>(MPI_INTEGER1);
    if (exists(MPI_INTEGER8)) order<std::int64_t>(MPI_INTEGER8), arithmetic<std::int64_t>(MPI_INTEGER8);
    if (exists(MPI_REAL)) real<float>(MPI_REAL);
    if (exists(MPI_REAL8)) real<double>(MPI_REAL8);
    if (exists(MPI_DOUBLE_PRECISION)) real<double>(MPI_DOUBLE_PRECISION);
    if (exists(MPI_COMPLEX)) arithmetic<std::complex<float>>(MPI_COMPLEX);
    if (exists(MPI_DOUBLE_COMPLEX)) arithmetic<std::complex<double>>(MPI_DOUBLE_COMPLEX);
    if (exists(MPI_COMPLEX16)) arithmetic<std::complex<double>>(MPI_COMPLEX16);
    if (exists(MPI_2REAL)) location<Pair<float, float>>(MPI_2REAL);
    if (exists(MPI_2DOUBLE_PRECISION)) location<Pair<double, double>>(MPI_2DOUBLE_PRECISION);
    if (exists(MPI_2INTEGER)) location<Pair<int, int>>(MPI_2INTEGER);
  }

 private:
  template <typename T, T (*make)(std::uint64_t)>
  void add(const char* what, MPI_Datatype type, MPI_Op op, void (*combine)(const void*, const void*, void*)) {
    all.push_back({what, type, op, sizeof(T), [](std::uint64_t random, void* element) { *static_cast<T*>(element) = make(random); }, combine,
                   [](const void* a, const void* b) { return *static_cast<const T*>(a) == *static_cast<const T*>(b); }});
  }

  template <typename T>
  void bits(MPI_Datatype type) {
    ADD_CASE(T, type, MPI_BAND, sample<T>, static_cast<T>(a & b));
    ADD_CASE(T, type, MPI_BOR, sample<T>, static_cast<T>(a | b));
    ADD_CASE(T, type, MPI_BXOR, sample<T>, static_cast<T>(a ^ b));
  }
  template <typename T>
  void logic(MPI_Datatype type) {
    ADD_CASE(T, type, MPI_LAND, sometimes_zero<T>, static_cast<T>(a && b));
    ADD_CASE(T, type, MPI_LOR, sometimes_zero<T>, static_cast<T>(a || b));
    ADD_CASE(T, type, MPI_LXOR, sometimes_zero<T>, static_cast<T>(!a != !b));
  }
  template <typename T>
  void order(MPI_Datatype type) {
    ADD_CASE(T, type, MPI_MAX, sample<T>, a > b ? a : b);
    ADD_CASE(T, type, MPI_MIN, sample<T>, a < b ? a : b);
  }
  template <typename T>
  void arithmetic(MPI_Datatype type) {
    if constexpr (std::is_integral_v<T>) {  // wraps around
      ADD_CASE(T, type, MPI_SUM, sample<T>,
               static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b)));
      ADD_CASE(T, type, MPI_PROD, sample<T>,
               static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)));
    } else {
      ADD_CASE(T, type, MPI_SUM, sample<T>, a + b);
      ADD_CASE(T, type, MPI_PROD, sample<T>, a * b);
    }
  }
  template <typename T>
  void integer(MPI_Datatype type) {
    order<T>(type);
    arithmetic<T>(type);
    bits<T>(type);
    logic<T>(type);
  }
  template <typename T>
  void real(MPI_Datatype type) {
    order<T>(type);
    arithmetic<T>(type);
  }
  template <typename P>
  void location(MPI_Datatype type) {
    ADD_CASE(P, type, MPI_MINLOC, sample_pair<P>, a.value < b.value || (a.value == b.value && a.index < b.index) ? a : b);
    ADD_CASE(P, type, MPI_MAXLOC, sample_pair<P>, a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b);
  }
};

#undef ADD_CASE

}  // namespace test
