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
struct Case {
  const char* what;
  MPI_Datatype type;
  MPI_Op op;
  std::size_t size;  // of an element in bytes
  void (*make)(std::uint64_t random, void* element);
  void (*combine)(const void* lower, const void* upper, void* result);
  bool (*equal)(const void* a, const void* b);
};

/// Elements of a Case.
class Vector {
 public:
  Vector(const Case& c, int count) : case_(&c), bytes_(c.size * static_cast<std::size_t>(count)) {}
  Vector(const Case& c, int rank, int count) : Vector(c, count) {
    for (int i = 0; i < count; ++i) c.make(mix(static_cast<std::uint64_t>(rank * 7919 + i)), at(i));
  }
  void* data() { return bytes_.data(); }
  void* at(int i) { return bytes_.data() + case_->size * static_cast<std::size_t>(i); }
  const void* at(int i) const { return bytes_.data() + case_->size * static_cast<std::size_t>(i); }
  int count() const { return static_cast<int>(bytes_.size() / case_->size); }

 private:
  const Case* case_;
  std::vector<unsigned char> bytes_;
};

Vector combine(const Case& c, const Vector& a, const Vector& b) {
  Vector result(c, a.count());
  for (int i = 0; i < a.count(); ++i) c.combine(a.at(i), b.at(i), result.at(i));
  return result;
}

void check_case(const Case& c, int count) {
  MPI_Comm comm = MPI_COMM_WORLD;
  const int rank = rank_of(comm), n = size_of(comm), total = count * n;
  std::vector<Vector> combined{Vector(c, 0, total)};  // [r]: the values of ranks 0 to r
  for (int r = 1; r < n; ++r) combined.push_back(combine(c, combined.back(), Vector(c, r, total)));
  Vector own(c, rank, total);
  const void* from = own.data();
  const auto expect = [&](const Vector& got, const Vector& wanted, int first, int length) {
    for (int i = 0; i < length; ++i)
      if (!c.equal(got.at(i), wanted.at(first + i)))
        check_fail(__FILE__, __LINE__, "%s: element %d is wrong", c.what, i);
  };
  // What differs between the forms does not depend on the type: all of them for one type of each kind.
  const bool every_form =
      c.type == MPI_INT || c.type == MPI_DOUBLE || c.type == MPI_C_DOUBLE_COMPLEX || c.type == MPI_DOUBLE_INT;
  for (const Form form : all_forms) {
    if (form != Form::blocking && !every_form) continue;
    Vector result(c, total);
    allreduce(form, comm, from, result.data(), total, c.type, c.op);
    expect(result, combined.back(), 0, total);
    result = own;
    allreduce_once(form, comm, MPI_IN_PLACE, result.data(), total, c.type, c.op);
    expect(result, combined.back(), 0, total);
    for (int root = 0; root < n; ++root) {
      result = own;
      reduce(form, comm, from, rank == root ? result.data() : nullptr, count, c.type, c.op, root);
      if (rank == root) expect(result, combined.back(), 0, count);
    }
    const int root = n - 1;
    result = own;
    reduce_once(form, comm, rank == root ? MPI_IN_PLACE : from, rank == root ? result.data() : nullptr, total, c.type,
                c.op, root);
    if (rank == root) expect(result, combined.back(), 0, total);
    result = own;
    reduce_scatter_block(form, comm, from, result.data(), count, c.type, c.op);
    expect(result, combined.back(), rank * count, count);
    result = own;
    reduce_scatter_block_once(form, comm, MPI_IN_PLACE, result.data(), count, c.type, c.op);
    expect(result, combined.back(), rank * count, count);
    std::vector<int> counts(static_cast<std::size_t>(n), 0);
    counts[0] = total - (n - 1) / 2;
    for (int r = 1; r <= (n - 1) / 2; ++r) counts[static_cast<std::size_t>(r)] = 1;
    int start = 0;
    for (int r = 0; r < rank; ++r) start += counts[static_cast<std::size_t>(r)];
    result = own;
    reduce_scatter(form, comm, from, result.data(), counts.data(), c.type, c.op);
    expect(result, combined.back(), start, counts[static_cast<std::size_t>(rank)]);
    result = own;
    reduce_scatter_once(form, comm, MPI_IN_PLACE, result.data(), counts.data(), c.type, c.op);
    expect(result, combined.back(), start, counts[static_cast<std::size_t>(rank)]);
    scan(form, comm, from, result.data(), total, c.type, c.op);
    expect(result, combined[static_cast<std::size_t>(rank)], 0, total);
    result = own;
    scan_once(form, comm, MPI_IN_PLACE, result.data(), total, c.type, c.op);
    expect(result, combined[static_cast<std::size_t>(rank)], 0, total);
    exscan(form, comm, from, result.data(), total, c.type, c.op);
    if (rank > 0) expect(result, combined[static_cast<std::size_t>(rank - 1)], 0, total);
    result = own;
    exscan_once(form, comm, MPI_IN_PLACE, result.data(), total, c.type, c.op);
    if (rank > 0) expect(result, combined[static_cast<std::size_t>(rank - 1)], 0, total);
  }
  Vector a(c, 1, total), b(c, 2, total);  // the local form: inout = in op inout
  const Vector expected = combine(c, a, b);
  CHECK_OK(MPI_Reduce_local(a.data(), b.data(), total, c.type, c.op));
  expect(b, expected, 0, total);
}

template <typename T, T (*make)(std::uint64_t)>
void check_op(const char* what, MPI_Datatype type, MPI_Op op, void (*combine)(const void*, const void*, void*)) {
  const Case c{what,
               type,
               op,
               sizeof(T),
               [](std::uint64_t random, void* element) { *static_cast<T*>(element) = make(random); },
               combine,
               [](const void* a, const void* b) { return *static_cast<const T*>(a) == *static_cast<const T*>(b); }};
  check_case(c, 13);
}

#define CHECK_OP(T, type, op, make, expression)                                                       \
  check_op<T, make>(#type " " #op, type, op, [](const void* lower, const void* upper, void* result) { \
    const T &a = *static_cast<const T*>(lower), &b = *static_cast<const T*>(upper);                   \
    *static_cast<T*>(result) = expression;                                                            \
  })

template <typename T>
void bits(MPI_Datatype type) {
  CHECK_OP(T, type, MPI_BAND, sample<T>, static_cast<T>(a & b));
  CHECK_OP(T, type, MPI_BOR, sample<T>, static_cast<T>(a | b));
  CHECK_OP(T, type, MPI_BXOR, sample<T>, static_cast<T>(a ^ b));
}
template <typename T>
void logic(MPI_Datatype type) {
  CHECK_OP(T, type, MPI_LAND, sometimes_zero<T>, static_cast<T>(a && b));
  CHECK_OP(T, type, MPI_LOR, sometimes_zero<T>, static_cast<T>(a || b));
  CHECK_OP(T, type, MPI_LXOR, sometimes_zero<T>, static_cast<T>(!a != !b));
}
template <typename T>
void order(MPI_Datatype type) {
  CHECK_OP(T, type, MPI_MAX, sample<T>, a > b ? a : b);
  CHECK_OP(T, type, MPI_MIN, sample<T>, a < b ? a : b);
}
template <typename T>
void arithmetic(MPI_Datatype type) {
  if constexpr (std::is_integral_v<T>) {  // wraps around
    CHECK_OP(T, type, MPI_SUM, sample<T>,
             static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b)));
    CHECK_OP(T, type, MPI_PROD, sample<T>,
             static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)));
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
