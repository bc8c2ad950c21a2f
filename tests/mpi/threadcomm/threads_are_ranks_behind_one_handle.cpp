// ranks: 1 2 3
// threads: 3
// timeout: 120
// env: HEDDLE_VCIS=4
// MPIX_Threadcomm_*: between start and finish every thread of every process is a rank of one communicator, through one handle: messages,
// wildcards, collectives, duplicates and splits; ranks of a process are consecutive; the communicator starts again and again, also
// in other threads; processes may ask for different numbers of threads.
#include "../threads/team.hpp"

#include <mpix.h>

#include <algorithm>

using namespace test;

namespace {

int size_of(MPI_Comm comm) {
  int size = -1;
  CHECK_OK(MPI_Comm_size(comm, &size));
  return size;
}

int rank_of(MPI_Comm comm) {
  int rank = -1;
  CHECK_OK(MPI_Comm_rank(comm, &rank));
  return rank;
}

// What ranks do, whoever they are.
void talk(MPI_Comm comm) {
  const int rank = rank_of(comm), size = size_of(comm);
  int sum = -1;
  CHECK_OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
  CHECK_EQ(sum, size * (size - 1) / 2);
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  for (const std::size_t n : {std::size_t{8}, std::size_t{3000}, std::size_t{200'000}}) {
    std::vector<unsigned char> out(n), in(n);
    fill(out.data(), n, static_cast<std::uint64_t>(rank));
    MPI_Request requests[2];
    CHECK_OK(MPI_Irecv(in.data(), static_cast<int>(n), MPI_BYTE, from, 4, comm, &requests[0]));
    CHECK_OK(MPI_Isend(out.data(), static_cast<int>(n), MPI_BYTE, to, 4, comm, &requests[1]));
    CHECK_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK_FILLED(in.data(), n, static_cast<std::uint64_t>(from));
  }
  // Everybody to rank 0, who takes them as they come.
  CHECK_OK(MPI_Barrier(comm));
  if (rank == 0) {
    std::vector<int> seen(static_cast<std::size_t>(size), 0);
    for (int i = 1; i < size; ++i) {
      MPI_Status status;
      int value = -1;
      CHECK_OK(MPI_Probe(MPI_ANY_SOURCE, 9, comm, &status));
      CHECK_OK(MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, 9, comm, &status));
      CHECK_EQ(value, status.MPI_SOURCE);
      ++seen[static_cast<std::size_t>(value)];
    }
    for (int r = 1; r < size; ++r) CHECK_EQ(seen[static_cast<std::size_t>(r)], 1);
  } else {
    CHECK_OK(MPI_Send(&rank, 1, MPI_INT, 0, 9, comm));
  }
  CHECK_OK(MPI_Barrier(comm));
}

bool is_threadcomm(MPI_Comm comm) {
  int flag = -1;
  CHECK_OK(MPIX_Comm_test_threadcomm(comm, &flag));
  return flag != 0;
}

}  // namespace

int main() {
  const World w = init_threads();
  CHECK(!is_threadcomm(MPI_COMM_WORLD));
  const int threads = 3 - w.rank % 2;  // of this process
  MPI_Comm comm;
  CHECK_OK(MPIX_Threadcomm_init(MPI_COMM_WORLD, threads, &comm));
  CHECK(is_threadcomm(comm));
  int first = 0, total = 0;
  for (int r = 0; r < w.size; ++r) {
    if (r < w.rank) first += 3 - r % 2;
    total += 3 - r % 2;
  }
  for (int round = 0; round < 20; ++round) {
    std::vector<int> ranks(static_cast<std::size_t>(threads), -1);
    run_threads(threads, [&](int t) {
      CHECK_OK(MPIX_Threadcomm_start(comm));
      CHECK_EQ(size_of(comm), total);
      ranks[static_cast<std::size_t>(t)] = rank_of(comm);
      talk(comm);
      MPI_Comm twin, half;
      CHECK_OK(MPI_Comm_dup(comm, &twin));
      CHECK(is_threadcomm(twin));
      talk(twin);
      CHECK_OK(MPI_Comm_split(comm, rank_of(comm) % 2, 0, &half));
      talk(half);
      CHECK_OK(MPI_Comm_free(&half));
      CHECK_OK(MPI_Comm_free(&twin));
      CHECK_OK(MPIX_Threadcomm_finish(comm));
      // The same threads once more, without a pause.
      CHECK_OK(MPIX_Threadcomm_start(comm));
      talk(comm);
      CHECK_OK(MPIX_Threadcomm_finish(comm));
    });
    std::sort(ranks.begin(), ranks.end());
    for (int t = 0; t < threads; ++t) CHECK_EQ(ranks[static_cast<std::size_t>(t)], first + t);
  }
  CHECK_OK(MPIX_Threadcomm_free(&comm));
  CHECK(comm == MPI_COMM_NULL);
  return finish();
}
