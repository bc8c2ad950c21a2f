// ranks: 1 2 4
// timeout: 60
// MPI_LOCK_EXCLUSIVE excludes exclusive and shared locks and MPI_Win_lock_all on the same target, and nothing elsewhere; shared locks and
// lock_all go together. Unlock and flush complete at the target, the local flushes at the origin. Locks of several targets at once, of
// MPI_PROC_NULL, with MPI_MODE_NOCHECK, in parallel on two windows, taken over and over while others hold theirs.
#include "windows.hpp"

using namespace test;

namespace {

// A counter that is read, changed and written under a lock; and a pair of numbers that readers under shared locks must find equal.
void counters(const Memory& memory, MPI_Comm comm, int rounds) {
  const World w = world();
  Random random(static_cast<std::uint64_t>(w.rank) + 5);
  std::vector<int> added(static_cast<std::size_t>(w.size), 0);
  for (int i = 0; i < rounds; ++i) {
    const int target = static_cast<int>(random.below(static_cast<std::uint64_t>(w.size)));
    const auto kind = random.below(3);
    int pair[2] = {-1, -2};
    if (kind == 0) {
      CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, memory.win));
      CHECK_OK(MPI_Get(pair, 2, MPI_INT, target, memory.at(target, 0), 2, MPI_INT, memory.win));
      CHECK_OK(MPI_Win_flush(target, memory.win));
      CHECK_EQ(pair[0], pair[1]);
      ++pair[0], ++pair[1];
      CHECK_OK(MPI_Put(&pair[0], 1, MPI_INT, target, memory.at(target, 0), 1, MPI_INT, memory.win));
      CHECK_OK(MPI_Put(&pair[1], 1, MPI_INT, target, memory.at(target, 4), 1, MPI_INT, memory.win));
      CHECK_OK(MPI_Win_unlock(target, memory.win));
      ++added[static_cast<std::size_t>(target)];
    } else if (kind == 1) {
      CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, memory.win));
      CHECK_OK(MPI_Get(&pair[0], 1, MPI_INT, target, memory.at(target, 0), 1, MPI_INT, memory.win));
      CHECK_OK(MPI_Get(&pair[1], 1, MPI_INT, target, memory.at(target, 4), 1, MPI_INT, memory.win));
      CHECK_OK(MPI_Win_unlock(target, memory.win));
      CHECK_EQ(pair[0], pair[1]);
    } else {
      CHECK_OK(MPI_Win_lock_all(0, memory.win));
      for (int r = 0; r < w.size; ++r) {
        CHECK_OK(MPI_Get(pair, 1, MPI_INT, r, memory.at(r, 0), 1, MPI_INT, memory.win));
        CHECK_OK(MPI_Get(pair + 1, 1, MPI_INT, r, memory.at(r, 4), 1, MPI_INT, memory.win));
        CHECK_OK(r % 2 ? MPI_Win_flush_local(r, memory.win) : MPI_Win_flush_local_all(memory.win));
        CHECK_EQ(pair[0], pair[1]);
      }
      CHECK_OK(MPI_Win_unlock_all(memory.win));
    }
  }
  std::vector<int> wanted(added.size());
  MPI_Allreduce(added.data(), wanted.data(), w.size, MPI_INT, MPI_SUM, comm);
  for (int r = 0; r < w.size; ++r) {
    int got = -1;
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, r, 0, memory.win));
    CHECK_OK(MPI_Get(&got, 1, MPI_INT, r, memory.at(r, 0), 1, MPI_INT, memory.win));
    CHECK_OK(MPI_Win_unlock(r, memory.win));
    CHECK_EQ(got, wanted[static_cast<std::size_t>(r)]);
  }
  MPI_Barrier(comm);
}

}  // namespace

int main() {
  const World w = init();
  MPI_Comm comm = MPI_COMM_WORLD;
  const int next = (w.rank + 1) % w.size, before = (w.rank + w.size - 1) % w.size;
  for (const Flavour flavour : flavours_on(comm)) {
    Memory memory(flavour, 4096, comm, 4), other(flavour, 64, comm, 4);
    const MPI_Win win = memory.win;
    int* const own = memory.as<int>();
    counters(memory, comm, 300);

    // A lock is there when the call returns or by the first flush; who holds it alone keeps the other out until it is told to let go.
    if (w.size >= 2 && w.rank < 2) {
      int value = 17;
      if (w.rank == 0) {
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        CHECK_OK(MPI_Send(&value, 1, MPI_INT, 1, 0, comm));
        CHECK_OK(MPI_Put(&value, 1, MPI_INT, 0, memory.at(0, 400), 1, MPI_INT, win));
        CHECK_OK(MPI_Win_flush(0, win));
        value = 18;
        CHECK_OK(MPI_Put(&value, 1, MPI_INT, 0, memory.at(0, 400), 1, MPI_INT, win));
        CHECK_OK(MPI_Win_unlock(0, win));
      } else {
        CHECK_OK(MPI_Recv(&value, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE));
        CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        CHECK_OK(MPI_Get(&value, 1, MPI_INT, 0, memory.at(0, 400), 1, MPI_INT, win));
        CHECK_OK(MPI_Win_unlock(0, win));
        CHECK_EQ(value, 18);
      }
    }
    MPI_Barrier(comm);

    // Shared locks go together: everyone has one while everyone passes a barrier.
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    CHECK_OK(MPI_Win_flush(0, win));
    CHECK_OK(MPI_Barrier(comm));
    CHECK_OK(MPI_Win_unlock(0, win));
    if (w.rank % 2) CHECK_OK(MPI_Win_lock_all(0, win));
    else CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    CHECK_OK(w.rank % 2 ? MPI_Win_flush_all(win) : MPI_Win_flush(next, win));
    CHECK_OK(MPI_Barrier(comm));
    CHECK_OK(w.rank % 2 ? MPI_Win_unlock_all(win) : MPI_Win_unlock(next, win));
    // Exclusive locks of different targets, and of the same target in another window.
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, before, 0, other.win));
    CHECK_OK(MPI_Win_flush(next, win));
    CHECK_OK(MPI_Win_flush(before, other.win));
    CHECK_OK(MPI_Barrier(comm));
    CHECK_OK(MPI_Win_unlock(next, win));
    CHECK_OK(MPI_Win_unlock(before, other.win));

    // Flushed to the target: the owner sees it by a load once it is told.
    CHECK_OK(MPI_Win_lock_all(no_check(), win));
    for (int i = 0; i < 50; ++i) {
      const int value = 1000 * w.rank + i;
      int told = 0;
      CHECK_OK(MPI_Put(&value, 1, MPI_INT, next, memory.at(next, 800), 1, MPI_INT, win));
      CHECK_OK(i % 2 ? MPI_Win_flush(next, win) : MPI_Win_flush_all(win));
      CHECK_OK(MPI_Sendrecv(&value, 1, MPI_INT, next, 1, &told, 1, MPI_INT, before, 1, comm, MPI_STATUS_IGNORE));
      CHECK_OK(MPI_Win_sync(win));
      CHECK_EQ(own[200], 1000 * before + i);
      CHECK_OK(MPI_Barrier(comm));
    }
    CHECK_OK(MPI_Win_unlock_all(win));

    // Flushed locally: the buffer is ours again, and a get's data is there.
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, next, no_check(), win));
    int value = w.rank + 5;
    CHECK_OK(MPI_Put(&value, 1, MPI_INT, next, memory.at(next, 1200), 1, MPI_INT, win));
    CHECK_OK(MPI_Win_flush_local(next, win));
    value = -1;
    CHECK_OK(MPI_Accumulate(&value, 1, MPI_INT, next, memory.at(next, 1204), 1, MPI_INT, MPI_SUM, win));
    CHECK_OK(MPI_Win_flush_local_all(win));
    value = -2;
    CHECK_OK(MPI_Win_unlock(next, win));
    CHECK_OK(MPI_Barrier(comm));
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, w.rank, 0, win));
    CHECK(own[300] == before + 5 && own[301] == -1);
    CHECK_OK(MPI_Win_unlock(w.rank, win));

    // All targets at once; nobody's.
    for (int r = 0; r < w.size; ++r) CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, r, 0, win));
    const int one = 1;
    for (int r = 0; r < w.size; ++r) CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT, r, memory.at(r, 1600), 1, MPI_INT, MPI_SUM, win));
    for (int r = w.size - 1; r >= 0; --r) CHECK_OK(MPI_Win_unlock(r, win));
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, MPI_PROC_NULL, 0, win));
    CHECK_OK(MPI_Put(&one, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
    CHECK_OK(MPI_Win_flush(MPI_PROC_NULL, win));
    CHECK_OK(MPI_Win_flush_local(MPI_PROC_NULL, win));
    CHECK_OK(MPI_Win_unlock(MPI_PROC_NULL, win));
    CHECK_OK(MPI_Barrier(comm));
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w.rank, 0, win));
    CHECK_EQ(own[400], w.size);
    CHECK_OK(MPI_Win_unlock(w.rank, win));
    // Empty epochs.
    for (int i = 0; i < 200; ++i) {
      CHECK_OK(MPI_Win_lock(i % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, (w.rank + i) % w.size, 0, win));
      CHECK_OK(MPI_Win_unlock((w.rank + i) % w.size, win));
      CHECK_OK(MPI_Win_lock_all(0, win));
      CHECK_OK(MPI_Win_unlock_all(win));
    }
    MPI_Barrier(comm);
    other.free();
    memory.free();
  }
  return finish();
}
