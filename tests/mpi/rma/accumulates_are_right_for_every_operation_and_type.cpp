// ranks: 1 2 3
// timeout: 120
// MPI_Accumulate, MPI_Get_accumulate and MPI_Fetch_and_op with each predefined operation on each datatype that it is defined for, and
// with MPI_REPLACE and MPI_NO_OP, against plain C++: from all ranks at once, also of derived types at either end;
// MPI_Compare_and_swap on all its types.
#include <memory>

#include "../op_cases.hpp"
#include "windows.hpp"

using namespace test;

namespace {

constexpr int elements = 13;

using Bytes = std::vector<unsigned char>;

class Sample {
 public:
  Sample(const OpCase& c, int who) : size_(c.size), bytes_(c.size * elements + 64) {
    for (int i = 0; i < elements; ++i) c.make(mix(static_cast<std::uint64_t>(who * 7919 + i)), at(i));
  }
  void* at(int i) {
    const auto start = (64 - reinterpret_cast<std::uintptr_t>(bytes_.data()) % 64) % 64;
    return bytes_.data() + start + size_ * static_cast<std::size_t>(i);
  }
  void* data() { return at(0); }

 private:
  std::size_t size_;
  Bytes bytes_;
};

void expect(const OpCase& c, const char* call, int i, const void* got, const void* wanted) {
  if (!c.equal(got, wanted)) check_fail(__FILE__, __LINE__, "%s: %s: element %d is wrong", c.what, call, i);
}

// What is the same for every case of one element size: the window.
class Target {
 public:
  explicit Target(Flavour flavour) : memory(flavour, room, MPI_COMM_WORLD) {}
  static constexpr std::size_t room = 32 * 64 * 2;
  Memory memory;

  void set(const OpCase& c, int who) {
    Sample initial(c, who);
    std::memcpy(memory.base, initial.data(), c.size * elements);
  }
};

// Everyone combines into rank 0: the operations commute and are exact, so the order does not show.
void check_all_at_once(const OpCase& c, Target& target, Epoch epoch) {
  const World w = world();
  MPI_Win win = target.memory.win;
  Sample own(c, w.rank + 1);
  const auto at = [&](int i) { return target.memory.at(0, c.size * static_cast<std::size_t>(i)); };
  Sample initial(c, 0), wanted(c, 0);
  for (int r = 0; r < w.size; ++r) {
    Sample theirs(c, r + 1);
    for (int i = 0; i < elements; ++i) c.combine(wanted.at(i), theirs.at(i), wanted.at(i));
  }
  const auto check = [&](const char* call) {
    if (w.rank == 0)
      for (int i = 0; i < elements; ++i) expect(c, call, i, target.memory.base + c.size * static_cast<std::size_t>(i), wanted.at(i));
    MPI_Barrier(MPI_COMM_WORLD);
  };

  target.set(c, 0);
  in_epoch(epoch, win, MPI_COMM_WORLD, [&] { CHECK_OK(MPI_Accumulate(own.data(), elements, c.type, 0, at(0), elements, c.type, c.op, win)); });
  check("MPI_Accumulate");

  target.set(c, 0);
  Sample fetched(c, 99);
  in_epoch(epoch, win, MPI_COMM_WORLD, [&] {
    CHECK_OK(MPI_Get_accumulate(own.data(), elements, c.type, fetched.data(), elements, c.type, 0, at(0), elements, c.type, c.op, win));
  });
  check("MPI_Get_accumulate");
  if (w.size == 1)
    for (int i = 0; i < elements; ++i) expect(c, "the result of MPI_Get_accumulate", i, fetched.at(i), initial.at(i));

  target.set(c, 0);
  in_epoch(epoch, win, MPI_COMM_WORLD, [&] {
    for (int i = 0; i < elements; ++i) CHECK_OK(MPI_Fetch_and_op(own.at(i), fetched.at(i), c.type, 0, at(i), c.op, win));
  });
  check("MPI_Fetch_and_op");
  if (w.size == 1)
    for (int i = 0; i < elements; ++i) expect(c, "the result of MPI_Fetch_and_op", i, fetched.at(i), initial.at(i));
}

// One after another at the next rank: what is fetched is what the operation before left.
void check_in_turn(const OpCase& c, Target& target) {
  const World w = world();
  MPI_Win win = target.memory.win;
  const int next = (w.rank + 1) % w.size;
  const auto at = [&](int i) { return target.memory.at(next, c.size * static_cast<std::size_t>(i)); };
  target.set(c, w.rank);
  Sample initial(c, next), a(c, 11), b(c, 12), first(c, 1), second(c, 2), third(c, 3), now(c, next);
  in_epoch(Epoch::lock_all, win, MPI_COMM_WORLD, [&] {
    CHECK_OK(MPI_Get_accumulate(a.data(), elements, c.type, first.data(), elements, c.type, next, at(0), elements, c.type, c.op, win));
    CHECK_OK(MPI_Get_accumulate(b.data(), elements, c.type, second.data(), elements, c.type, next, at(0), elements, c.type, MPI_REPLACE, win));
    CHECK_OK(MPI_Get_accumulate(nullptr, 0, c.type, third.data(), elements, c.type, next, at(0), elements, c.type, MPI_NO_OP, win));
    CHECK_OK(MPI_Win_flush(next, win));
    for (int i = 0; i < elements; ++i) {
      expect(c, "the first value fetched", i, first.at(i), initial.at(i));
      c.combine(initial.at(i), a.at(i), now.at(i));
      expect(c, "the value after the operation", i, second.at(i), now.at(i));
      expect(c, "the value after MPI_REPLACE", i, third.at(i), b.at(i));
    }
    for (int i = 0; i < elements; ++i) {
      CHECK_OK(MPI_Fetch_and_op(a.at(i), first.at(i), c.type, next, at(i), c.op, win));
      CHECK_OK(MPI_Fetch_and_op(a.at(i), second.at(i), c.type, next, at(i), MPI_REPLACE, win));
      CHECK_OK(MPI_Fetch_and_op(nullptr, third.at(i), c.type, next, at(i), MPI_NO_OP, win));
    }
    CHECK_OK(MPI_Win_flush(next, win));
    for (int i = 0; i < elements; ++i) {
      expect(c, "the value MPI_Fetch_and_op fetched", i, first.at(i), b.at(i));
      c.combine(b.at(i), a.at(i), now.at(i));
      expect(c, "the value MPI_Fetch_and_op left", i, second.at(i), now.at(i));
      expect(c, "the value MPI_Fetch_and_op replaced", i, third.at(i), a.at(i));
    }
    CHECK_OK(MPI_Accumulate(b.data(), elements, c.type, next, at(0), elements, c.type, MPI_REPLACE, win));
  });
  for (int i = 0; i < elements; ++i) expect(c, "MPI_Accumulate(MPI_REPLACE)", i, target.memory.base + c.size * static_cast<std::size_t>(i), b.at(i));
  MPI_Barrier(MPI_COMM_WORLD);
}

// Every second element at the target, in reverse order at the origin.
void check_derived(const OpCase& c, Target& target) {
  const World w = world();
  MPI_Win win = target.memory.win;
  const int next = (w.rank + 1) % w.size, before = (w.rank + w.size - 1) % w.size, half = (elements + 1) / 2;
  MPI_Datatype strided, backwards;
  CHECK_OK(MPI_Type_vector(half, 1, 2, c.type, &strided));
  CHECK_OK(MPI_Type_commit(&strided));
  CHECK_OK(MPI_Type_create_hvector(half, 1, -static_cast<MPI_Aint>(c.size), c.type, &backwards));
  CHECK_OK(MPI_Type_commit(&backwards));
  target.set(c, w.rank);
  Sample own(c, w.rank + 21), result(c, 1), initial(c, w.rank), theirs(c, before + 21), at_next(c, next), now(c, 1);
  in_epoch(Epoch::fence, win, MPI_COMM_WORLD, [&] {
    CHECK_OK(MPI_Get_accumulate(own.at(half - 1), 1, backwards, result.data(), half, c.type, next, target.memory.at(next, 0), 1, strided, c.op, win));
    CHECK_OK(MPI_Accumulate(own.at(half - 1), 1, backwards, next, target.memory.at(next, 0), 1, strided, MPI_REPLACE, win));
  });
  for (int i = 0; i < elements; ++i) {
    unsigned char* const got = target.memory.base + c.size * static_cast<std::size_t>(i);
    expect(c, "MPI_Accumulate of derived types", i, got, i % 2 ? initial.at(i) : theirs.at(half - 1 - i / 2));
    if (i % 2 == 0) expect(c, "MPI_Get_accumulate of derived types", i, result.at(i / 2), at_next.at(i));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  // A result of a derived type, with the operation's result read behind it.
  target.set(c, w.rank);
  Sample spread(c, 31);
  Sample untouched(c, 31);
  in_epoch(Epoch::lock, win, MPI_COMM_WORLD, [&] {
    CHECK_OK(MPI_Get_accumulate(own.data(), half, c.type, spread.data(), 1, strided, next, target.memory.at(next, 0), half, c.type, c.op, win));
    CHECK_OK(MPI_Get_accumulate(nullptr, 0, MPI_DATATYPE_NULL == c.type ? MPI_INT : c.type, result.data(), half, c.type, next,
                                target.memory.at(next, 0), half, c.type, MPI_NO_OP, win));
  });
  for (int i = 0; i < elements; ++i) expect(c, "a result of a derived type", i, spread.at(i), i % 2 ? untouched.at(i) : at_next.at(i / 2));
  for (int i = 0; i < half; ++i) {
    c.combine(at_next.at(i), own.at(i), now.at(i));
    expect(c, "what was combined", i, result.at(i), now.at(i));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Type_free(&strided);
  MPI_Type_free(&backwards);
}

// Each rank swaps its own number in for the one before, round and round.
template <typename T>
void check_swap(MPI_Datatype type, Target& target) {
  int exists = 0;
  MPI_Type_size(type, &exists);
  if (exists == MPI_UNDEFINED || exists <= 0) return;
  CHECK_EQ(exists, sizeof(T));
  const World w = world();
  MPI_Win win = target.memory.win;
  T* const own = target.memory.as<T>();
  own[0] = T(0), own[1] = T(1), own[2] = T(1), own[3] = T(0);
  in_epoch(Epoch::lock_all, win, MPI_COMM_WORLD, [&] {
    // Element 1 of every rank: exactly one of all ranks swaps 1 for 0.
    int swapped = 0, all = 0;
    const T zero = T(0), one = T(1);
    for (int r = 0; r < w.size; ++r) {
      T seen = T(0);
      CHECK_OK(MPI_Compare_and_swap(&zero, &one, &seen, type, r, target.memory.at(r, sizeof(T)), win));
      CHECK_OK(MPI_Win_flush(r, win));
      swapped += seen == one;
      if (seen != one) CHECK(seen == zero);
    }
    MPI_Allreduce(&swapped, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(all, w.size);
  });
  CHECK(own[0] == T(0) && own[1] == T(0) && own[2] == T(1) && own[3] == T(0));
  MPI_Barrier(MPI_COMM_WORLD);
}

void check_swaps(Target& target) {
  check_swap<signed char>(MPI_SIGNED_CHAR, target);
  check_swap<unsigned char>(MPI_UNSIGNED_CHAR, target);
  check_swap<short>(MPI_SHORT, target);
  check_swap<unsigned short>(MPI_UNSIGNED_SHORT, target);
  check_swap<int>(MPI_INT, target);
  check_swap<unsigned>(MPI_UNSIGNED, target);
  check_swap<long>(MPI_LONG, target);
  check_swap<unsigned long>(MPI_UNSIGNED_LONG, target);
  check_swap<long long>(MPI_LONG_LONG, target);
  check_swap<unsigned long long>(MPI_UNSIGNED_LONG_LONG, target);
  check_swap<std::int8_t>(MPI_INT8_T, target);
  check_swap<std::int16_t>(MPI_INT16_T, target);
  check_swap<std::int32_t>(MPI_INT32_T, target);
  check_swap<std::int64_t>(MPI_INT64_T, target);
  check_swap<std::uint8_t>(MPI_UINT8_T, target);
  check_swap<std::uint16_t>(MPI_UINT16_T, target);
  check_swap<std::uint32_t>(MPI_UINT32_T, target);
  check_swap<std::uint64_t>(MPI_UINT64_T, target);
  check_swap<MPI_Aint>(MPI_AINT, target);
  check_swap<MPI_Count>(MPI_COUNT, target);
  check_swap<MPI_Offset>(MPI_OFFSET, target);
  check_swap<bool>(MPI_C_BOOL, target);
  check_swap<bool>(MPI_CXX_BOOL, target);
  check_swap<unsigned char>(MPI_BYTE, target);
  check_swap<int>(MPI_INTEGER, target);
  check_swap<std::int8_t>(MPI_INTEGER1, target);
  check_swap<std::int16_t>(MPI_INTEGER2, target);
  check_swap<std::int32_t>(MPI_INTEGER4, target);
  check_swap<std::int64_t>(MPI_INTEGER8, target);
  if (!library_is_mpich()) check_swap<int>(MPI_LOGICAL, target);  // 5.0.2 refuses what the standard lists
}

}  // namespace

int main() {
  init();
  const OpCases cases;
  std::vector<std::unique_ptr<Target>> targets;
  for (const Flavour flavour : flavours_on(MPI_COMM_WORLD)) targets.push_back(std::make_unique<Target>(flavour));
  std::size_t round = 0, seen = 0;
  for (const OpCase& c : cases.all) {  // each in one flavour: what they do to memory is the same
    if (world().size > 2 && ++seen % 3) continue;
    Target& target = *targets[round * 7 / 4 % targets.size()];
    check_all_at_once(c, target, all_epochs[round % 4]);
    check_in_turn(c, target);
    if (round++ % 3 == 0) check_derived(c, target);
  }
  for (const auto& target : targets) {
    check_swaps(*target);
    target->memory.free();
  }
  return finish();
}
