// ranks: 1 2 4
// timeout: 60
// Accumulates of one origin to one place are applied in the order of their calls, of any size and of either kind (those that read,
// those that write), unless the window says otherwise; with accumulate_ordering none, each is still atomic.
#include "windows.hpp"

using namespace test;

namespace {

constexpr int places = 70000;

Memory make(Flavour flavour, const char* ordering) {
  MPI_Info info = MPI_INFO_NULL;
  if (ordering) {
    CHECK_OK(MPI_Info_create(&info));
    CHECK_OK(MPI_Info_set(info, "accumulate_ordering", ordering));
  }
  Memory memory(flavour, places * sizeof(long), MPI_COMM_WORLD, sizeof(long), info);
  if (ordering) MPI_Info_free(&info);
  return memory;
}

// MPI_REPLACE by ever higher numbers: the last stays; reads between them see the last before them.
void replace_and_read(Flavour flavour, Epoch epoch, int rounds, int length) {
  const World w = world();
  Memory memory = make(flavour, nullptr);
  const int next = (w.rank + 1) % w.size, before = (w.rank + w.size - 1) % w.size;
  const auto n = static_cast<std::size_t>(length);
  std::vector<std::vector<long>> values(static_cast<std::size_t>(rounds)), read(values.size());
  std::vector<long> single(values.size(), -1);
  in_epoch(epoch, memory.win, MPI_COMM_WORLD, [&] {
    const MPI_Aint at = memory.at(next, 8 * static_cast<std::size_t>(w.rank));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i].assign(n, w.rank * 10000 + static_cast<long>(i));
      read[i].assign(n, -1);
      CHECK_OK(MPI_Accumulate(values[i].data(), length, MPI_LONG, next, at, length, MPI_LONG, MPI_REPLACE, memory.win));
      if (i % 3 == 0)
        CHECK_OK(MPI_Get_accumulate(nullptr, 0, MPI_LONG, read[i].data(), length, MPI_LONG, next, at, length, MPI_LONG, MPI_NO_OP, memory.win));
      if (i % 3 == 1) CHECK_OK(MPI_Fetch_and_op(nullptr, &single[i], MPI_LONG, next, at, MPI_NO_OP, memory.win));
      // A single element in the midst of a run.
      if (i % 5 == 4) CHECK_OK(MPI_Accumulate(values[i].data(), 1, MPI_LONG, next, at, 1, MPI_LONG, MPI_SUM, memory.win));
    }
  });
  const long last = before * 10000 + rounds - 1;
  for (int i = 0; i < length; ++i) {
    const long wanted = i == 0 && rounds % 5 == 0 ? 2 * last : last;
    CHECK_EQ(memory.as<long>()[before + i], wanted);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % 3 == 0)
      for (const long got : read[i]) CHECK_EQ(got, values[i][0]);
    if (i % 3 == 1) CHECK_EQ(single[i], values[i][0]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  memory.free();
}

// x becomes 2x + 1 again and again, by two operations: any other order gives another number.
void not_commutative(Flavour flavour) {
  const World w = world();
  Memory memory = make(flavour, "rar,raw,war,waw");
  const int next = (w.rank + 1) % w.size;
  const long two = 2, one = 1;
  long old[62];
  in_epoch(Epoch::lock_all, memory.win, MPI_COMM_WORLD, [&] {
    const MPI_Aint at = memory.at(next, 8 * 1000);
    for (int i = 0; i < 31; ++i) {
      CHECK_OK(MPI_Fetch_and_op(&two, &old[2 * i], MPI_LONG, next, at, MPI_PROD, memory.win));
      CHECK_OK(MPI_Get_accumulate(&one, 1, MPI_LONG, &old[2 * i + 1], 1, MPI_LONG, next, at, 1, MPI_LONG, MPI_SUM, memory.win));
    }
  });
  long x = 0;
  for (int i = 0; i < 31; ++i) {
    CHECK_EQ(old[2 * i], x);
    CHECK_EQ(old[2 * i + 1], 2 * x);
    x = 2 * x + 1;
  }
  CHECK_EQ(memory.as<long>()[1000], x);
  memory.free();
}

// Every rank adds to the same places of rank 0, from runs of all lengths that overlap.
void sums(Flavour flavour, const char* ordering) {
  const World w = world();
  Memory memory = make(flavour, ordering);
  std::vector<long> ones(4096, 1), got(4096);
  std::vector<long> wanted(places, 0);
  in_epoch(Epoch::lock_all, memory.win, MPI_COMM_WORLD, [&] {
    for (int i = 0; i < 200; ++i) {
      const int length = i % 4 ? 1 + i % 7 : 1 << i % 13, start = i * 13 % 500;
      const MPI_Aint at = memory.at(0, 8u * static_cast<unsigned>(start));
      if (i % 2) {
        CHECK_OK(MPI_Accumulate(ones.data(), length, MPI_LONG, 0, at, length, MPI_LONG, MPI_SUM, memory.win));
      } else {
        CHECK_OK(MPI_Get_accumulate(ones.data(), length, MPI_LONG, got.data(), length, MPI_LONG, 0, at, length, MPI_LONG, MPI_SUM, memory.win));
        CHECK_OK(MPI_Win_flush(0, memory.win));  // the result is used again
      }
      for (int k = start; k < start + length; ++k) wanted[static_cast<std::size_t>(k)] += w.size;
    }
  });
  if (w.rank == 0)
    for (int k = 0; k < places; ++k) CHECK_EQ(memory.as<long>()[k], wanted[static_cast<std::size_t>(k)]);
  MPI_Barrier(MPI_COMM_WORLD);
  memory.free();
}

}  // namespace

int main() {
  init();
  for (const Flavour flavour : flavours_on(MPI_COMM_WORLD)) {
    replace_and_read(flavour, Epoch::lock_all, 100, 1);
    replace_and_read(flavour, Epoch::fence, 60, 3);
    replace_and_read(flavour, Epoch::start, 40, 300);
    replace_and_read(flavour, Epoch::lock, 10, 60000);
    not_commutative(flavour);
    for (const char* ordering : {static_cast<const char*>(nullptr), "none", "waw", "rar,raw"}) sums(flavour, ordering);
  }
  return finish();
}
