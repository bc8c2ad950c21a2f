// ranks: 2
// timeout: 60
// The store-buffer litmus with one-sided operations: one rank puts x, flushes and gets y; the other puts y, flushes and gets x. What is
// flushed is at its target, so at least one of the gets is new. x and y are in one rank's memory, in each one's own and in each other's,
// in every flavour; by put, by accumulate, and by a plain store with MPI_Win_sync. `--repeat N` rounds of each.
#include "litmus.hpp"

#include "../rma/windows.hpp"

using namespace test;

namespace {

enum class Write { put, accumulate, store, count };

// Ranks 0 and 1 have a cache line of x and y each for every round, so that no barrier stands between rounds: a rank may be ahead.
void litmus(const World& w, Memory& memory, Write write, int x_at, int y_at, int rounds) {
  const int write_at = w.rank == 0 ? x_at : y_at, read_at = w.rank == 0 ? y_at : x_at;
  std::vector<int> got(static_cast<std::size_t>(rounds), -1);
  std::memset(memory.base, 0, static_cast<std::size_t>(rounds) * 128);
  settle(memory.win, MPI_COMM_WORLD);
  CHECK_OK(MPI_Win_lock_all(0, memory.win));
  MPI_Barrier(MPI_COMM_WORLD);
  const int one = 1;
  for (int i = 0; i < rounds; ++i) {
    const std::size_t x = 128 * static_cast<std::size_t>(i), y = x + 64;
    const std::size_t mine = w.rank == 0 ? x : y, theirs = w.rank == 0 ? y : x;
    if (write == Write::put) CHECK_OK(MPI_Put(&one, 1, MPI_INT, write_at, memory.at(write_at, mine), 1, MPI_INT, memory.win));
    if (write == Write::accumulate) CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT, write_at, memory.at(write_at, mine), 1, MPI_INT, MPI_SUM, memory.win));
    if (write == Write::store) {
      reinterpret_cast<std::atomic<int>*>(memory.base + mine)->store(1, std::memory_order_relaxed);
      CHECK_OK(MPI_Win_sync(memory.win));
    } else {
      CHECK_OK(MPI_Win_flush(write_at, memory.win));
    }
    CHECK_OK(MPI_Get(&got[static_cast<std::size_t>(i)], 1, MPI_INT, read_at, memory.at(read_at, theirs), 1, MPI_INT, memory.win));
    CHECK_OK(MPI_Win_flush(read_at, memory.win));
  }
  CHECK_OK(MPI_Win_unlock_all(memory.win));
  std::vector<int> others(got.size());
  MPI_Sendrecv(got.data(), rounds, MPI_INT, 1 - w.rank, 0, others.data(), rounds, MPI_INT, 1 - w.rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] + others[i] >= 1);
}

}  // namespace

int main(int argc, char** argv) {
  const World w = init();
  const int rounds = repeats(argc, argv, 2000);
  constexpr int at_once = 1000;
  for (const Flavour flavour : flavours_on(MPI_COMM_WORLD)) {
    Memory memory(flavour, at_once * 128, MPI_COMM_WORLD, 4);
    for (int write = 0; write < static_cast<int>(Write::count); ++write)
      for (const auto& [x_at, y_at] : {std::pair{0, 1}, {1, 0}, {0, 0}, {1, 1}})
        for (int done = 0; done < rounds; done += at_once) {
          // A plain store is of one's own memory; both ranks must agree on whether this round is one of those.
          if (static_cast<Write>(write) == Write::store && !(x_at == 0 && y_at == 1)) continue;
          if (static_cast<Write>(write) == Write::store && flavour != Flavour::shared) continue;
          litmus(w, memory, static_cast<Write>(write), x_at, y_at, std::min(at_once, rounds - done));
        }
    memory.free();
  }
  return finish();
}
