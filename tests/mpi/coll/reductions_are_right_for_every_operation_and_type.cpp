// ranks: 1 2 3 5
// timeout: 120
// Each predefined operation on each datatype that it is defined for, in every reduction, against plain loops.
#include <complex>
#include <type_traits>

#include "forms.hpp"

using namespace test;

namespace {

template <typename V, typename I>
struct Pair {
  V value;
  I index;
  bool operator==(const Pair& o) const { return value == o.value && index == o.index; }
};

/// A value that makes exact results: small enough that sums and products of all ranks are exact.
template <typename T>
T sample(std::uint64_t random) {
  if constexpr (std::is_same_v<T, bool>) return random & 1;
  else if constexpr (std::is_integral_v<T>) return static_cast<T>(random >> 7);
  else if constexpr (std::is_floating_point_v<T>) return static_cast<T>(static_cast<int>(random >> 9 & 15) - 7);
  else return T(static_cast<typename T::value_type>(static_cast<int>(random >> 9 & 7) - 3),
                static_cast<typename T::value_type>(static_cast<int>(random >> 13 & 7) - 3));
}
template <typename P>
P sample_pair(std::uint64_t random) {
  return {static_cast<decltype(P::value)>(random >> 5 & 3), static_cast<decltype(P::index)>(random >> 11 & 7)};
}

template <typename T, typename Make>
std::vector<T> values(int rank, int count, Make make) {
  std::vector<T> v;
  for (int i = 0; i < count; ++i) v.push_back(make(mix(static_cast<std::uint64_t>(rank * 7919 + i))));
  return v;
}

template <typename T>
void check_equal(const T& got, const T& expected, const char* what, int i) {
  if (!(got == expected)) check_fail(__FILE__, __LINE__, "%s: element %d is wrong", what, i);
}

template <typename T, typename Make, typename Combine>
void check_op(const char* what, MPI_Datatype type, MPI_Op op, int count, Make make, Combine combine) {
  MPI_Comm comm = MPI_COMM_WORLD;
  const int rank = rank_of(comm), n = size_of(comm);
  // combined[r]: the values of ranks 0 to r
  std::vector<std::vector<T>> combined{values<T>(0, count * n, make)};
  for (int r = 1; r < n; ++r) {
    combined.push_back(combined.back());
    const auto next = values<T>(r, count * n, make);
    for (std::size_t i = 0; i < next.size(); ++i) combined.back()[i] = combine(combined.back()[i], next[i]);
  }
  const std::vector<T> own = values<T>(rank, count * n, make);
  const auto expect = [&](const std::vector<T>& got, const std::vector<T>& wanted, int first, int length) {
    for (int i = 0; i < length; ++i)
      check_equal(got[static_cast<std::size_t>(i)], wanted[static_cast<std::size_t>(first + i)], what, i);
  };
  const int total = count * n;
  // What differs between the forms does not depend on the type: all of them for one type of each kind.
  const bool every_form = type == MPI_INT || type == MPI_DOUBLE || type == MPI_C_DOUBLE_COMPLEX || type == MPI_DOUBLE_INT;
  for (const Form form : all_forms) {
    if (form != Form::blocking && !every_form) continue;
    std::vector<T> result(static_cast<std::size_t>(total));
    allreduce(form, comm, static_cast<const void*>(own.data()), static_cast<void*>(result.data()), total, type, op);
    expect(result, combined.back(), 0, total);
    result = own;
    allreduce_once(form, comm, MPI_IN_PLACE, static_cast<void*>(result.data()), total, type, op);
    expect(result, combined.back(), 0, total);
    for (int root = 0; root < n; ++root) {
      result = own;
      reduce(form, comm, static_cast<const void*>(own.data()), static_cast<void*>(rank == root ? result.data() : nullptr),
             count, type, op, root);
      if (rank == root) expect(result, combined.back(), 0, count);
    }
    const int root = n - 1;
    result = own;
    reduce_once(form, comm, static_cast<const void*>(rank == root ? MPI_IN_PLACE : own.data()),
                static_cast<void*>(rank == root ? result.data() : nullptr), total, type, op, root);
    if (rank == root) expect(result, combined.back(), 0, total);
    result = own;
    reduce_scatter_block(form, comm, static_cast<const void*>(own.data()), static_cast<void*>(result.data()), count,
                         type, op);
    expect(result, combined.back(), rank * count, count);
    result = own;
    reduce_scatter_block_once(form, comm, MPI_IN_PLACE, static_cast<void*>(result.data()), count, type, op);
    expect(result, combined.back(), rank * count, count);
    std::vector<int> counts(static_cast<std::size_t>(n), 0);
    counts[0] = total - (n - 1) / 2;
    for (int r = 1; r <= (n - 1) / 2; ++r) counts[static_cast<std::size_t>(r)] = 1;
    int start = 0;
    for (int r = 0; r < rank; ++r) start += counts[static_cast<std::size_t>(r)];
    result = own;
    reduce_scatter(form, comm, static_cast<const void*>(own.data()), static_cast<void*>(result.data()), counts.data(),
                   type, op);
    expect(result, combined.back(), start, counts[static_cast<std::size_t>(rank)]);
    result = own;
    reduce_scatter_once(form, comm, MPI_IN_PLACE, static_cast<void*>(result.data()), counts.data(), type, op);
    expect(result, combined.back(), start, counts[static_cast<std::size_t>(rank)]);
    scan(form, comm, static_cast<const void*>(own.data()), static_cast<void*>(result.data()), total, type, op);
    expect(result, combined[static_cast<std::size_t>(rank)], 0, total);
    result = own;
    scan_once(form, comm, MPI_IN_PLACE, static_cast<void*>(result.data()), total, type, op);
    expect(result, combined[static_cast<std::size_t>(rank)], 0, total);
    exscan(form, comm, static_cast<const void*>(own.data()), static_cast<void*>(result.data()), total, type, op);
    if (rank > 0) expect(result, combined[static_cast<std::size_t>(rank - 1)], 0, total);
    result = own;
    exscan_once(form, comm, MPI_IN_PLACE, static_cast<void*>(result.data()), total, type, op);
    if (rank > 0) expect(result, combined[static_cast<std::size_t>(rank - 1)], 0, total);
  }
  // The local form: inout = in op inout.
  const auto a = values<T>(1, total, make);
  auto b = values<T>(2, total, make);
  auto expected = b;
  for (std::size_t i = 0; i < b.size(); ++i) expected[i] = combine(a[i], b[i]);
  CHECK_OK(MPI_Reduce_local(a.data(), b.data(), total, type, op));
  expect(b, expected, 0, total);
}

#define CHECK_OP(T, type, op, make, combine)                                                       \
  do {                                                                                             \
    check_op<T>(#type " " #op, type, op, 13, make, [](const T& a, const T& b) -> T { return combine; }); \
  } while (0)

template <typename T>
void bits(MPI_Datatype type) {
  CHECK_OP(T, type, MPI_BAND, sample<T>, static_cast<T>(a & b));
  CHECK_OP(T, type, MPI_BOR, sample<T>, static_cast<T>(a | b));
  CHECK_OP(T, type, MPI_BXOR, sample<T>, static_cast<T>(a ^ b));
}
template <typename T>
void logic(MPI_Datatype type) {
  const auto sometimes_zero = [](std::uint64_t random) { return static_cast<T>(random % 3 ? random >> 40 | 1 : 0); };
  CHECK_OP(T, type, MPI_LAND, sometimes_zero, static_cast<T>(a && b));
  CHECK_OP(T, type, MPI_LOR, sometimes_zero, static_cast<T>(a || b));
  CHECK_OP(T, type, MPI_LXOR, sometimes_zero, static_cast<T>(!a != !b));
}
template <typename T>
void order(MPI_Datatype type) {
  CHECK_OP(T, type, MPI_MAX, sample<T>, a > b ? a : b);
  CHECK_OP(T, type, MPI_MIN, sample<T>, a < b ? a : b);
}
template <typename T>
void arithmetic(MPI_Datatype type) {
  if constexpr (std::is_integral_v<T>) {  // wraps around
    CHECK_OP(T, type, MPI_SUM, sample<T>, static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b)));
    CHECK_OP(T, type, MPI_PROD, sample<T>, static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)));
  } else {
    CHECK_OP(T, type, MPI_SUM, sample<T>, a + b);
    CHECK_OP(T, type, MPI_PROD, sample<T>, a * b);
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
  CHECK_OP(P, type, MPI_MINLOC, sample_pair<P>, a.value < b.value || (a.value == b.value && a.index < b.index) ? a : b);
  CHECK_OP(P, type, MPI_MAXLOC, sample_pair<P>, a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b);
}

}  // namespace

int main() {
  init();
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
  return finish();
}
