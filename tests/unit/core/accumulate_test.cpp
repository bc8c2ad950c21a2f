// Accumulates against one element at a time: every operation on every type, at any address, in any pattern.
#include "core/accumulate.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "core/datatype_envelope.hpp"
#include "core/half.hpp"
#include "core/pieces.hpp"
#include "counting.hpp"
#include "sync/thread_sanitizer.hpp"
#include "sys/error.hpp"

using namespace heddle;
using std::int64_t;
using std::size_t;
using std::uint64_t;

namespace {

Datatype& type_of(MPI_Datatype handle) { return *builtin_datatype(reinterpret_cast<std::uintptr_t>(handle)); }
Op& op_of(MPI_Op handle) { return *builtin_op(reinterpret_cast<std::uintptr_t>(handle)); }

const MPI_Op all_ops[] = {MPI_SUM,  MPI_MIN,  MPI_MAX, MPI_PROD,   MPI_BAND,   MPI_BOR,     MPI_BXOR,
                          MPI_LAND, MPI_LOR, MPI_LXOR, MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP};

template <typename T>
T get(const unsigned char* from) {
  T t;
  std::memcpy(&t, from, sizeof t);
  return t;
}
template <typename T>
void put(unsigned char* to, T t) {
  std::memcpy(to, &t, sizeof t);
}

template <typename T>
T integer(OpCode op, T a, T b) {
  using Wide = __int128;
  switch (op) {
    case OpCode::sum:
      return static_cast<T>(static_cast<unsigned __int128>(a) + static_cast<unsigned __int128>(b));
    case OpCode::prod:
      return static_cast<T>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
    case OpCode::min:
      return static_cast<Wide>(a) < static_cast<Wide>(b) ? a : b;
    case OpCode::max:
      return static_cast<Wide>(a) < static_cast<Wide>(b) ? b : a;
    case OpCode::band:
      return static_cast<T>(a & b);
    case OpCode::bor:
      return static_cast<T>(a | b);
    case OpCode::bxor:
      return static_cast<T>(a ^ b);
    case OpCode::land:
      return a != 0 && b != 0;
    case OpCode::lor:
      return a != 0 || b != 0;
    case OpCode::lxor:
      return (a != 0) != (b != 0);
    default:
      ADD_FAILURE();
      return a;
  }
}
template <typename T>
T real(OpCode op, T a, T b) {
  switch (op) {
    case OpCode::sum:
      return static_cast<T>(a + b);
    case OpCode::prod:
      return static_cast<T>(a * b);
    case OpCode::min:
      return b < a ? b : a;
    case OpCode::max:
      return a < b ? b : a;
    default:
      ADD_FAILURE();
      return a;
  }
}

template <typename T>
void integers(OpCode op, const unsigned char* a, unsigned char* b) {
  put(b, integer<T>(op, get<T>(a), get<T>(b)));
}
template <typename T>
void reals(OpCode op, const unsigned char* a, unsigned char* b) {
  put(b, real<T>(op, get<T>(a), get<T>(b)));
}
template <typename T>
void complexes(OpCode op, const unsigned char* a, unsigned char* b) {
  const T ar = get<T>(a), ai = get<T>(a + sizeof(T)), br = get<T>(b), bi = get<T>(b + sizeof(T));
  if (op == OpCode::sum) {
    put(b, static_cast<T>(ar + br));
    put(b + sizeof(T), static_cast<T>(ai + bi));
  } else {
    put(b, static_cast<T>(ar * br - ai * bi));
    put(b + sizeof(T), static_cast<T>(ar * bi + ai * br));
  }
}
template <typename V, typename I>
void pairs(OpCode op, const BasicInfo& info, const unsigned char* a, unsigned char* b) {
  const V av = get<V>(a), bv = get<V>(b);
  const I ai = get<I>(a + info.second_offset), bi = get<I>(b + info.second_offset);
  const bool first = op == OpCode::minloc ? av < bv : bv < av;
  put(b, first ? av : bv);
  put(b + info.second_offset, av == bv ? std::min(ai, bi) : first ? ai : bi);
}

/// b = a op b for one element: by the standard's words, and a switch.
void one(OpCode op, const BasicInfo& info, const unsigned char* a, unsigned char* b) {
  using R = Representation;
  if (op == OpCode::no_op) return;
  if (op == OpCode::replace) {
    if (!info.is_pair()) {
      std::memcpy(b, a, info.size);
    } else {
      std::memcpy(b, a, basic_info(info.first).size);
      std::memcpy(b + info.second_offset, a + info.second_offset, basic_info(info.second).size);
    }
    return;
  }
  switch (info.representation) {
    case R::i8:
    case R::character:
      return integers<std::int8_t>(op, a, b);
    case R::i16:
      return integers<std::int16_t>(op, a, b);
    case R::i32:
      return integers<std::int32_t>(op, a, b);
    case R::i64:
      return integers<std::int64_t>(op, a, b);
    case R::i128:
      return integers<__int128>(op, a, b);
    case R::bytes:
    case R::u8:
    case R::l8:
      return integers<std::uint8_t>(op, a, b);
    case R::u16:
    case R::l16:
      return integers<std::uint16_t>(op, a, b);
    case R::u32:
    case R::l32:
      return integers<std::uint32_t>(op, a, b);
    case R::u64:
    case R::l64:
      return integers<std::uint64_t>(op, a, b);
    case R::l128:
      return integers<unsigned __int128>(op, a, b);
    case R::f16:
      return reals<Half>(op, a, b);
    case R::f32:
      return reals<float>(op, a, b);
    case R::f64:
      return reals<double>(op, a, b);
    case R::f80:
      return reals<long double>(op, a, b);
    case R::f128:
      return reals<__float128>(op, a, b);
    case R::c_f16:
      return complexes<Half>(op, a, b);
    case R::c_f32:
      return complexes<float>(op, a, b);
    case R::c_f64:
      return complexes<double>(op, a, b);
    case R::c_f80:
      return complexes<long double>(op, a, b);
    case R::c_f128:
      return complexes<__float128>(op, a, b);
    case R::pair:
      switch (info.value) {
        case 0x28:
          return pairs<float, int>(op, info, a, b);
        case 0x29:
          return pairs<double, int>(op, info, a, b);
        case 0x2a:
          return pairs<long, int>(op, info, a, b);
        case 0x2b:
        case 0x32:
          return pairs<int, int>(op, info, a, b);
        case 0x2c:
          return pairs<short, int>(op, info, a, b);
        case 0x2d:
          return pairs<long double, int>(op, info, a, b);
        case 0x30:
          return pairs<float, float>(op, info, a, b);
        default:
          return pairs<double, double>(op, info, a, b);
      }
    case R::none:
      ADD_FAILURE();
  }
}

/// The unused bytes of an x87 number may be anything.
bool same_element(const BasicInfo& info, const unsigned char* a, const unsigned char* b) {
  const auto part = [&](const BasicInfo& i, size_t at) {
    using R = Representation;
    if (i.representation == R::f80) return std::memcmp(a + at, b + at, 10) == 0;
    if (i.representation == R::c_f80) return std::memcmp(a + at, b + at, 10) == 0 && std::memcmp(a + at + 16, b + at + 16, 10) == 0;
    return std::memcmp(a + at, b + at, i.size) == 0;
  };
  if (info.is_pair()) return part(basic_info(info.first), 0) && part(basic_info(info.second), info.second_offset);
  return part(info, 0);
}

/// A value of the type: small, so that sums of halves and products stay exact and pairs tie often.
void set_random(std::mt19937& random, const BasicInfo& info, unsigned char* to) {
  using R = Representation;
  const int v = static_cast<int>(random() % 9) - 4;
  switch (info.representation) {
    case R::f16:
      return put(to, static_cast<Half>(static_cast<float>(v)));
    case R::f32:
      return put(to, static_cast<float>(v));
    case R::f64:
      return put(to, static_cast<double>(v));
    case R::f80:
      return put(to, static_cast<long double>(v));
    case R::f128:
      return put(to, static_cast<__float128>(v));
    case R::c_f16:
    case R::c_f32:
    case R::c_f64:
    case R::c_f80:
    case R::c_f128: {
      BasicInfo half = info;
      half.representation = static_cast<R>(static_cast<int>(info.representation) - static_cast<int>(R::c_f16) + static_cast<int>(R::f16));
      set_random(random, half, to);
      return set_random(random, half, to + info.size / 2);
    }
    case R::l8:
    case R::l16:
    case R::l32:
    case R::l64:
    case R::l128:
      std::memset(to, 0, info.size);
      to[0] = random() % 2;
      return;
    case R::pair:
      set_random(random, basic_info(info.first), to);
      return set_random(random, basic_info(info.second), to + info.second_offset);
    default:
      for (size_t i = 0; i < info.size; ++i) to[i] = static_cast<unsigned char>(random());
  }
}

/// Memory with a name in every byte.
std::vector<unsigned char> filled(size_t bytes, unsigned seed) {
  std::vector<unsigned char> all(bytes);
  for (size_t i = 0; i < bytes; ++i) all[i] = static_cast<unsigned char>(i * 37 + seed);
  return all;
}

struct Locks {
  std::unique_ptr<sync::StripeLocks> owner = std::make_unique<sync::StripeLocks>();
  sync::StripeLocks& all = *owner;
};

}  // namespace

TEST(Accumulate, every_operation_on_every_type_is_the_loop_over_its_elements_and_touches_nothing_else) {
  std::mt19937 random(7);
  int combinations = 0;
  for (const BasicInfo& info : basic_types) {
    if (!info.name) continue;
    for (const MPI_Op handle : all_ops) {
      const Op& op = op_of(handle);
      if (check_accumulate(op, *builtin_datatype(0x200u + info.value), *builtin_datatype(0x200u + info.value)) != MPI_SUCCESS) continue;
      ++combinations;
      for (int round = 0; round < 24; ++round) {
        const size_t n = round < 8 ? static_cast<size_t>(round) : random() % 600, extent = info.extent;
        const bool aligned = round % 3 != 2, packed = round % 4 == 3, fetch = round % 2;
        const size_t slack = 64, skew = aligned ? 0 : random() % 17, origin_skew = aligned ? 0 : random() % 17;
        auto target = filled(n * extent + 2 * slack + skew, 1), origin = filled(n * extent + 2 * slack + skew, 2);
        auto fetched = filled(n * extent + 2 * slack, 3);
        // malloc aligns to 16 bytes, and so does the slack.
        unsigned char *t = target.data() + slack + skew, *o = origin.data() + slack + origin_skew, *f = fetched.data() + slack;
        for (size_t i = 0; i < n; ++i) {
          set_random(random, info, t + i * extent);
          set_random(random, info, o + i * extent);
        }
        auto expected = target, expected_fetched = fetched;
        for (size_t i = 0; i < n; ++i) {
          one(op.code, info, o + i * extent, expected.data() + (t - target.data()) + i * extent);
          if (fetch) one(OpCode::replace, info, t + i * extent, expected_fetched.data() + slack + i * extent);
        }
        const void* from = op.code == OpCode::no_op ? nullptr : o;
        if (packed) {
          std::vector<unsigned char> flat_origin(n * info.size + 1), flat_fetched(n * info.size + 1, 0xee);
          PackCursor in, out;
          const auto count = static_cast<MPI_Count>(n);
          Datatype& type = *builtin_datatype(0x200u + info.value);
          pack(o, count, type, in, flat_origin.data() + 1, n * info.size);  // at an odd address
          accumulate_packed(op.code, info.value, from ? flat_origin.data() + 1 : nullptr, t, count, fetch ? flat_fetched.data() + 1 : nullptr);
          if (fetch) unpack(f, count, type, out, flat_fetched.data() + 1, n * info.size);
        } else {
          accumulate(op.code, info.value, from, t, static_cast<int64_t>(n), fetch ? f : nullptr);
        }
        const std::string what = std::string(op_name(op)) + " on " + info.name + ", round " + std::to_string(round);
        for (size_t i = 0; i < n; ++i) {
          ASSERT_TRUE(same_element(info, t + i * extent, expected.data() + (t - target.data()) + i * extent)) << what << " element " << i;
          std::memcpy(expected.data() + (t - target.data()) + i * extent, t + i * extent, basic_info(info.is_pair() ? info.first : info.value).size);
        }
        ASSERT_TRUE(target == expected) << what << ": a byte outside of the elements has changed";
        ASSERT_TRUE(fetched == expected_fetched) << what;
      }
    }
  }
  EXPECT_GT(combinations, 500);
}

TEST(Accumulate, takes_predefined_operations_on_types_made_of_one_predefined_type) {
  const auto verdict = [](const Op& op, const Datatype& a, const Datatype& b) {
    const int code = check_accumulate(op, a, b);
    return code == MPI_SUCCESS ? MPI_SUCCESS : error_class(code);
  };
  Op user;
  EXPECT_EQ(verdict(user, type_of(MPI_INT), type_of(MPI_INT)), MPI_ERR_OP);
  EXPECT_EQ(verdict(op_of(MPI_SUM), type_of(MPI_INT), type_of(MPI_INT)), MPI_SUCCESS);
  EXPECT_EQ(verdict(op_of(MPI_SUM), type_of(MPI_INT), type_of(MPI_FLOAT)), MPI_ERR_TYPE);
  EXPECT_EQ(verdict(op_of(MPI_BAND), type_of(MPI_DOUBLE), type_of(MPI_DOUBLE)), MPI_ERR_OP);
  EXPECT_EQ(verdict(op_of(MPI_MINLOC), type_of(MPI_SHORT_INT), type_of(MPI_SHORT_INT)), MPI_SUCCESS);
  EXPECT_EQ(verdict(op_of(MPI_SUM), type_of(MPI_SHORT_INT), type_of(MPI_SHORT_INT)), MPI_ERR_OP);
  for (const BasicInfo& info : basic_types) {
    if (!info.name) continue;
    Datatype& type = *builtin_datatype(0x200u + info.value);
    EXPECT_EQ(verdict(op_of(MPI_REPLACE), type, type), MPI_SUCCESS) << info.name;
    EXPECT_EQ(verdict(op_of(MPI_NO_OP), type, type), MPI_SUCCESS) << info.name;
  }
  Datatype *same = nullptr, *mixed = nullptr, *empty = nullptr;
  ASSERT_EQ(make_vector(3, 2, 4, type_of(MPI_INT), false, same), MPI_SUCCESS);
  const MPI_Count lengths[] = {1, 1}, places[] = {0, 8};
  Datatype* members[] = {&type_of(MPI_INT), &type_of(MPI_DOUBLE)};
  ASSERT_EQ(make_struct(2, CountArray(lengths), CountArray(places), members, true, mixed), MPI_SUCCESS);
  ASSERT_EQ(make_contiguous(0, type_of(MPI_INT), false, empty), MPI_SUCCESS);
  EXPECT_EQ(verdict(op_of(MPI_SUM), *same, type_of(MPI_INT)), MPI_SUCCESS);
  EXPECT_EQ(verdict(op_of(MPI_SUM), *same, *mixed), MPI_ERR_TYPE);
  EXPECT_EQ(verdict(op_of(MPI_REPLACE), *mixed, *mixed), MPI_ERR_TYPE);
  EXPECT_EQ(verdict(op_of(MPI_SUM), *empty, *same), MPI_SUCCESS);
  for (Datatype* t : {same, mixed, empty}) release(*t);
}

TEST(Accumulate, of_derived_types_changes_the_elements_they_name_in_their_order_and_no_other_byte) {
  const BasicType basics[] = {0x09, 0x14, 0x43, 0x08, 0x20, 0x16, 0x2c, 0x29, 0x2d, 0x2b, 0x28, 0xe1};
  Locks locks;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    std::mt19937 random(seed);
    const BasicInfo& info = basic_info(basics[seed % std::size(basics)]);
    const OpCode code = info.is_pair() ? (random() % 2 ? OpCode::minloc : OpCode::replace)
                                       : std::array{OpCode::sum, OpCode::replace, OpCode::no_op, OpCode::prod}[random() % 4];
    const bool fetch = code == OpCode::no_op || random() % 2;
    const int64_t n = 1 + random() % 80, extent = info.extent;
    // Three sides: scattered elements in any order without overlap (of the target and the result), or an array.
    Datatype* types[3];
    MPI_Count counts[3];
    std::vector<int64_t> places[3];
    std::vector<unsigned char> memory[3];
    for (int s = 0; s < 3; ++s) {
      const int64_t apart = random() % 2 ? 1 : 1 + random() % 3;
      places[s].resize(static_cast<size_t>(n));
      std::iota(places[s].begin(), places[s].end(), 0);
      const auto shape = random() % 3;
      if (shape == 0) std::shuffle(places[s].begin(), places[s].end(), random);
      for (int64_t& p : places[s]) p *= extent * apart;
      if (shape == 1) {
        types[s] = &builtin_datatypes[info.value];
        counts[s] = n;
        for (int64_t i = 0; i < n; ++i) places[s][static_cast<size_t>(i)] = i * extent;
      } else {
        std::vector<MPI_Count> list(places[s].begin(), places[s].end());
        ASSERT_EQ(make_hindexed_block(n, 1, CountArray(list.data()), builtin_datatypes[info.value], true, types[s]), MPI_SUCCESS);
        ASSERT_EQ(commit(*types[s]), MPI_SUCCESS);
        counts[s] = 1;
      }
      memory[s] = filled(static_cast<size_t>(n * extent * 4 + 16), static_cast<unsigned>(s));
      for (const int64_t p : places[s]) set_random(random, info, memory[s].data() + p);
    }
    auto expected = memory[1], expected_result = memory[2];
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
      if (fetch) one(OpCode::replace, info, expected.data() + places[1][i], expected_result.data() + places[2][i]);
      one(code, info, memory[0].data() + places[0][i], expected.data() + places[1][i]);
    }
    const Buffer origin(memory[0].data(), counts[0], *types[0]), target(memory[1].data(), counts[1], *types[1]);
    const Buffer result(memory[2].data(), counts[2], *types[2]);
    accumulate(code, info.value, origin, target, fetch ? &result : nullptr, locks.all, seed * 1000);
    for (size_t i = 0; i < memory[1].size(); ++i) {
      if (info.representation == Representation::f80 || info.value == 0x2d) break;
      ASSERT_EQ(memory[1][i], expected[i]) << info.name << " seed " << seed << " byte " << i;
      ASSERT_EQ(memory[2][i], expected_result[i]) << info.name << " seed " << seed << " byte " << i;
    }
    for (const int64_t p : places[1]) ASSERT_TRUE(same_element(info, memory[1].data() + p, expected.data() + p)) << info.name << " seed " << seed;
    for (Datatype* t : types)
      if (!t->builtin) release(*t);
  }
}

TEST(Accumulate, holes_of_pairs_can_be_other_threads_data) {
  struct Row {
    short value;
    short ours;  // the hole
    int index;
  };
  static_assert(sizeof(Row) == 8);
  std::vector<Row> rows(64, Row{100, 0, 100}), from(64, Row{1, 77, 1});
  Locks locks;
  std::thread neighbour([&] {
    for (int i = 0; i < 100'000; ++i)
      for (Row& row : rows) row.ours = static_cast<short>(row.ours + 1);
  });
  const Buffer origin(from.data(), 64, type_of(MPI_SHORT_INT)), target(rows.data(), 64, type_of(MPI_SHORT_INT));
  for (int i = 0; i < 20'000; ++i) accumulate(i % 2 ? OpCode::minloc : OpCode::replace, 0x2c, origin, target, nullptr, locks.all, 0);
  neighbour.join();
  for (const Row& row : rows) {
    ASSERT_EQ(row.ours, static_cast<short>(100'000));
    ASSERT_EQ(row.value, 1);
    ASSERT_EQ(row.index, 1);
  }
}

TEST(Accumulate, a_concurrent_load_of_an_aligned_number_sees_the_old_or_the_new_value) {
  const auto watch = [](auto zero, BasicType basic) {
    using T = decltype(zero);
    const T low = 0, high = static_cast<T>(~T{0});
    alignas(16) T target[5] = {}, lows[5], highs[5];
    std::fill_n(lows, 5, low);
    std::fill_n(highs, 5, high);
    std::atomic<bool> done{false};
    int torn = 0, changes = 0;
    std::thread reader([&] {
      T before = low;
      while (!done.load(std::memory_order_acquire))
        for (T& t : target) {
          const T seen = __atomic_load_n(&t, __ATOMIC_RELAXED);
          torn += seen != low && seen != high;
          changes += seen != before;
          before = seen;
        }
    });
    for (int i = 0; i < 300'000; ++i)
      for (const auto& from : {highs, lows}) {
        const int first = i % 5, n = 1 + i / 5 % (5 - first);
        if (i % 3 == 0)
          accumulate(OpCode::replace, basic, from, target + first, n, nullptr);
        else
          accumulate(from == highs ? OpCode::bor : OpCode::band, basic, from, target + first, n, nullptr);
      }
    done.store(true, std::memory_order_release);
    reader.join();
    EXPECT_EQ(torn, 0) << basic_info(basic).name;
  };
  if (sync::in_thread_sanitizer) GTEST_SKIP() << "the kernels' stores are not atomic to the sanitizer";
  watch(std::uint16_t{}, 0x49);
  watch(std::uint32_t{}, 0x51);
  watch(std::uint64_t{}, 0x59);
}

TEST(Accumulate, of_one_element_takes_one_read_modify_write_and_of_a_run_one_for_each_stripe) {
  if (!test::can_count()) GTEST_SKIP() << "instructions cannot be counted here";
  Locks locks;
  alignas(4096) static double target[1024];
  double ones[1024] = {1}, before[1024];
  Datatype* every_64th = nullptr;
  ASSERT_EQ(make_vector(16, 1, 64, type_of(MPI_DOUBLE), false, every_64th), MPI_SUCCESS);
  ASSERT_EQ(commit(*every_64th), MPI_SUCCESS);
  const Buffer origin(ones, 1024, type_of(MPI_DOUBLE)), result(before, 1024, type_of(MPI_DOUBLE));
  const auto cost = [&](const Buffer& to, const Buffer* out) {
    return test::count([&] { accumulate(OpCode::sum, 0x14, origin, to, out, locks.all, 0); });
  };
  const Buffer one(target, 1, type_of(MPI_DOUBLE)), run(target + 1, 1023, type_of(MPI_DOUBLE)), scattered(target, 1, *every_64th);
  (void)cost(one, &result);  // resolves symbols
  for (const Buffer* out : {static_cast<const Buffer*>(nullptr), &result}) {
    const test::Counts single = cost(one, out);
    EXPECT_EQ(single.atomics, 1);
    EXPECT_EQ(single.calls, 0);
    EXPECT_EQ(single.allocations, 0);
    EXPECT_LE(single.instructions, 250);
    for (const Buffer& several : {run, scattered}) {
      const test::Counts counts = cost(several, out);
      EXPECT_EQ(counts.atomics, 2);
      EXPECT_EQ(counts.calls, 0);
      EXPECT_EQ(counts.allocations, 0);
    }
  }
  release(*every_64th);
}

TEST(Accumulate, compares_and_swaps_integers_logicals_and_bytes_of_all_sizes) {
  const std::vector<MPI_Datatype> yes = {
      MPI_INT,   MPI_LONG,   MPI_SHORT,  MPI_UNSIGNED_LONG_LONG, MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_BYTE,
      MPI_AINT,  MPI_COUNT,  MPI_OFFSET, MPI_C_BOOL,             MPI_LOGICAL,     MPI_INTEGER,       MPI_INT8_T,
      MPI_INT16_T, MPI_UINT32_T, MPI_UINT64_T, MPI_INTEGER16,    MPI_LOGICAL16};
  for (const MPI_Datatype type : yes) EXPECT_EQ(check_compare_and_swap(type_of(type)), MPI_SUCCESS);
  for (const MPI_Datatype type : {MPI_DOUBLE, MPI_FLOAT, MPI_C_COMPLEX, MPI_2INT, MPI_SHORT_INT, MPI_LONG_DOUBLE, MPI_WCHAR, MPI_PACKED})
    EXPECT_EQ(error_class(check_compare_and_swap(type_of(type))), MPI_ERR_TYPE);
  Datatype *two = nullptr, *same = nullptr;
  ASSERT_EQ(make_contiguous(2, type_of(MPI_INT), false, two), MPI_SUCCESS);
  ASSERT_EQ(make_dup(type_of(MPI_INT), same), MPI_SUCCESS);
  EXPECT_EQ(error_class(check_compare_and_swap(*two)), MPI_ERR_TYPE);
  EXPECT_EQ(check_compare_and_swap(*same), MPI_SUCCESS);
  release(*two);
  release(*same);

  for (const MPI_Datatype handle : yes) {
    const Datatype& type = type_of(handle);
    const auto size = static_cast<size_t>(type.size);
    for (const size_t skew : {size_t{0}, size_t{1}}) {
      alignas(16) unsigned char target[48], old[48], result[16], origin[16], compare[16];
      for (size_t i = 0; i < 48; ++i) old[i] = target[i] = static_cast<unsigned char>(i + 1);
      unsigned char* t = target + 16 + skew;
      std::memset(origin, 0xab, 16);
      std::memcpy(compare, t, size);
      compare[size - 1] ^= 1;  // only the last byte differs
      EXPECT_FALSE(compare_and_swap(type.basic, origin, compare, t, result));
      EXPECT_EQ(std::memcmp(result, t, size), 0);
      EXPECT_EQ(std::memcmp(target, old, 48), 0);
      compare[size - 1] ^= 1;
      EXPECT_TRUE(compare_and_swap(type.basic, origin, compare, t, result));
      EXPECT_EQ(std::memcmp(result, compare, size), 0);
      std::memset(old + 16 + skew, 0xab, size);
      EXPECT_EQ(std::memcmp(target, old, 48), 0);
    }
  }
}

TEST(Accumulate, threads_that_add_to_overlapping_elements_lose_nothing) {
  constexpr int threads = 4, length = 3000;
  std::vector<int64_t> numbers(2 * length, 0);
  const std::vector<int64_t> ones(length, 1);
  Locks locks;
  Datatype* every_second = nullptr;
  ASSERT_EQ(make_vector(length / 2, 1, 2, type_of(MPI_INT64_T), false, every_second), MPI_SUCCESS);
  ASSERT_EQ(commit(*every_second), MPI_SUCCESS);
  std::vector<std::vector<int64_t>> added(threads, std::vector<int64_t>(numbers.size(), 0));
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < 2000; ++i) {
        const auto at = static_cast<int64_t>(random() % length);
        const Buffer origin(ones.data(), length / 2, type_of(MPI_INT64_T));
        if (i % 2) {
          accumulate(OpCode::sum, 0x58, origin, Buffer(&numbers[static_cast<size_t>(at)], 1, *every_second), nullptr, locks.all, 0);
          for (int64_t k = 0; k < length / 2; ++k) ++added[static_cast<size_t>(t)][static_cast<size_t>(at + 2 * k)];
        } else {
          const auto n = static_cast<MPI_Count>(1 + random() % (length / 2));
          accumulate(OpCode::sum, 0x58, origin, Buffer(&numbers[static_cast<size_t>(at)], n, type_of(MPI_INT64_T)), nullptr, locks.all, 0);
          for (int64_t k = 0; k < n; ++k) ++added[static_cast<size_t>(t)][static_cast<size_t>(at + k)];
        }
      }
    });
  for (std::thread& t : all) t.join();
  for (size_t i = 0; i < numbers.size(); ++i) {
    int64_t sum = 0;
    for (const auto& list : added) sum += list[i];
    ASSERT_EQ(numbers[i], sum) << i;
  }
  release(*every_second);
}
