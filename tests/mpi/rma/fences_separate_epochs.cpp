// ranks: 1 2 4
// timeout: 60
// Between two fences operations are neither seen too early nor too late: what was put is there behind the next fence, and stores
// before a fence are what gets behind it read. With every assertion where it is true; fences beside messages; fences of windows that
// take turns; locks after the last fence.
#include "windows.hpp"

using namespace test;

namespace {

// A ring of values that moves by one rank per fence.
void circulate(Flavour flavour, int assertion_of_odd, int assertion_of_even) {
  const World w = world();
  Memory memory(flavour, 4096, MPI_COMM_WORLD, sizeof(int));
  int* const own = memory.as<int>();
  const int next = (w.rank + 1) % w.size, before = (w.rank + w.size - 1) % w.size;
  for (int round = 0; round < 30; ++round) {
    own[1] = w.rank * 100 + round;  // before this fence: gets of the others come behind it
    CHECK_OK(MPI_Win_fence(assertion_of_odd, memory.win));
    int got = -1;
    const int value = w.rank * 1000 + round;
    CHECK_OK(MPI_Put(&value, 1, MPI_INT, next, memory.at(next, 0), 1, MPI_INT, memory.win));
    CHECK_OK(MPI_Get(&got, 1, MPI_INT, before, memory.at(before, 4), 1, MPI_INT, memory.win));
    const int one = 1;
    CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT, next, memory.at(next, 8), 1, MPI_INT, MPI_SUM, memory.win));
    CHECK_OK(MPI_Win_fence(assertion_of_even, memory.win));
    CHECK_EQ(own[0], before * 1000 + round);
    CHECK_EQ(own[2], round + 1);
    CHECK_EQ(got, before * 100 + round);
  }
  CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED | MPI_MODE_NOPRECEDE | MPI_MODE_NOPUT | MPI_MODE_NOSTORE, memory.win));
  memory.free();
}

}  // namespace

int main() {
  const World w = init();
  MPI_Comm comm = MPI_COMM_WORLD;
  for (const Flavour flavour : flavours_on(comm)) {
    circulate(flavour, 0, 0);
    circulate(flavour, MPI_MODE_NOPRECEDE, MPI_MODE_NOSUCCEED);
    circulate(flavour, MPI_MODE_NOPRECEDE, MPI_MODE_NOSUCCEED | MPI_MODE_NOSTORE);
  }

  // Only reads: MPI_MODE_NOPUT says that nobody puts until the next fence.
  Memory first(Flavour::allocate, 1024, comm, 4), second(Flavour::create, 1024, comm, 4);
  const int next = (w.rank + 1) % w.size, before = (w.rank + w.size - 1) % w.size;
  for (int i = 0; i < 256; ++i) first.as<int>()[i] = w.rank * 256 + i;
  CHECK_OK(MPI_Win_fence(MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE, first.win));
  std::vector<int> got(256);
  CHECK_OK(MPI_Get(got.data(), 256, MPI_INT, next, 0, 256, MPI_INT, first.win));
  CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, first.win));
  for (int i = 0; i < 256; ++i) CHECK_EQ(got[static_cast<std::size_t>(i)], next * 256 + i);

  // A fence beside messages, and windows that take turns.
  for (int round = 0; round < 50; ++round) {
    const int value = round;
    int received = -1;
    MPI_Request request;
    CHECK_OK(MPI_Irecv(&received, 1, MPI_INT, before, round, comm, &request));
    CHECK_OK(MPI_Win_fence(0, first.win));
    CHECK_OK(MPI_Put(&value, 1, MPI_INT, next, 3, 1, MPI_INT, first.win));
    CHECK_OK(MPI_Win_fence(0, second.win));
    CHECK_OK(MPI_Put(&value, 1, MPI_INT, next, 4, 1, MPI_INT, second.win));
    CHECK_OK(MPI_Send(&value, 1, MPI_INT, next, round, comm));
    CHECK_OK(MPI_Win_fence(0, first.win));
    CHECK_EQ(first.as<int>()[3], round);
    CHECK_OK(MPI_Win_fence(0, second.win));
    CHECK_EQ(second.as<int>()[4], round);
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(received, round);
  }
  CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, first.win));
  CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, second.win));

  // The last fence ended the epoch: now locks, and fences again.
  CHECK_OK(MPI_Barrier(comm));
  CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, first.win));
  int count = 0;
  CHECK_OK(MPI_Get(&count, 1, MPI_INT, 0, 9, 1, MPI_INT, first.win));
  CHECK_OK(MPI_Win_flush(0, first.win));
  ++count;
  CHECK_OK(MPI_Put(&count, 1, MPI_INT, 0, 9, 1, MPI_INT, first.win));
  CHECK_OK(MPI_Win_unlock(0, first.win));
  CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, first.win));
  CHECK_OK(MPI_Get(&count, 1, MPI_INT, 0, 9, 1, MPI_INT, first.win));
  CHECK_OK(MPI_Win_fence(0, first.win));
  CHECK_EQ(count, 9 + w.size);  // 9 of rank 0 at first
  // Fences alone.
  for (int i = 0; i < 100; ++i) CHECK_OK(MPI_Win_fence(0, second.win));
  first.free();
  second.free();
  return finish();
}
