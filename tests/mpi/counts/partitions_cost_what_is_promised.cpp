// ranks: 2
// timeout: 60
// env: HEDDLE_PART_AGGREGATOR=table HEDDLE_PART_SIZE=64
// binary: own (its instructions are counted)
// What partitions cost under MPI_THREAD_MULTIPLE, counted instruction by instruction: MPI_Pready of one that is not the last of its transport
// partition makes one atomic read-modify-write, the last one of a small transport partition three (the count, room in the ring, the end); none
// takes a lock, allocates or calls the kernel. MPI_Parrived of a partition that is there makes none at all.
#include "counts.hpp"

using namespace test;

namespace {

#define CHECK_COSTS(counts, most_atomics)                                                                                                             \
  do {                                                                                                                                                \
    const Counts& counts_ = (counts);                                                                                                                 \
    if (counts_.locks || counts_.atomics > (most_atomics) || counts_.allocations || counts_.calls)                                                    \
      check_fail(__FILE__, __LINE__, "%s: %ld locks (0), %ld atomic operations (at most %d), %ld allocations (0), %ld system calls (0) in %ld "       \
                 "instructions", #counts, counts_.locks, counts_.atomics, (most_atomics), counts_.allocations, counts_.calls, counts_.instructions); \
  } while (0)

struct Shared {
  std::atomic<int> started{0}, made{0}, taken{0};  ///< rounds: the ranks wait past MPI, so that none sleeps in the library
};

void wait_for(std::atomic<int>& number, int value) {
  // Acquire pairs with the other rank's release.
  CHECK(eventually([&] { return number.load(std::memory_order_acquire) >= value; }));
}

constexpr int partitions = 64, parts = 8, each = partitions / parts;

}  // namespace

int main() {
  const World w = init_to_count();
  auto& shared = share_past_mpi<Shared>(w);
  std::vector<std::uint64_t> data(partitions, 7);
  MPI_Request request;
  if (w.rank == 0) MPI_Psend_init(data.data(), partitions, 1, MPI_UINT64_T, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  else MPI_Precv_init(data.data(), partitions, 1, MPI_UINT64_T, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int round = 0; round < 4; ++round) {
    const bool warm = round > 0;
    MPI_Start(&request);
    if (w.rank == 1) shared.started.store(round + 1, std::memory_order_release); else wait_for(shared.started, round + 1);
    for (int i = 0; w.rank == 0 && i < partitions; ++i) {
      const Counts made = count([&] { MPI_Pready(i, request); });
      const bool last = i % each == each - 1, of_all = i == partitions - 1;
      if (warm && !of_all) CHECK_COSTS(made, last ? 3 : 1);
      if (warm && !last && i % each == 1 && round == 1 && i < each) std::printf("MPI_Pready, not last: %ld instructions\n", made.instructions);
    }
    if (w.rank == 0) shared.made.store(round + 1, std::memory_order_release); else wait_for(shared.made, round + 1);
    for (int i = 0; w.rank == 1 && i < partitions; ++i) {
      int flag = 0;
      while (!flag) MPI_Parrived(request, i, &flag);
      const Counts asked = count([&] { MPI_Parrived(request, i, &flag); });
      CHECK(flag);
      if (warm) CHECK_COSTS(asked, 0);
      if (warm && round == 1 && i == 0) std::printf("MPI_Parrived: %ld instructions\n", asked.instructions);
    }
    if (w.rank == 1) shared.taken.store(round + 1, std::memory_order_release); else wait_for(shared.taken, round + 1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
  return finish();
}
