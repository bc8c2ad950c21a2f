// ranks: 1 2
// threads: 4
// timeout: 120
// env: HEDDLE_VCIS=2
// A thread communicator brings threads into the library together although MPI_THREAD_MULTIPLE was not asked for: FUNNELED on even ranks,
// SERIALIZED on odd ones, 2 and then 4 threads. Messages of all protocols arrive intact, and threads that wait wake each other.
// The level is raised in between, from a session's SINGLE, while a thread communicator exists.
#include "../threads/team.hpp"

#include <mpix.h>

using namespace test;

namespace {

// Everybody sends to everybody of the communicator, other threads of the process included.
void exchange(MPI_Comm comm, int rounds) {
  int rank = -1, size = -1;
  CHECK_OK(MPI_Comm_rank(comm, &rank));
  CHECK_OK(MPI_Comm_size(comm, &size));
  const auto ranks = static_cast<std::size_t>(size);
  for (int round = 0; round < rounds; ++round) {
    const std::size_t n = round % 50 == 49 ? 300'000 : round % 10 == 9 ? 5000 : 8 + static_cast<std::size_t>(round);
    std::vector<std::vector<unsigned char>> in(ranks, std::vector<unsigned char>(n)), out = in;
    std::vector<MPI_Request> requests(2 * ranks);
    for (int i = 0; i < size; ++i) {
      const auto at = static_cast<std::size_t>(i);
      fill(out[at].data(), n, static_cast<std::uint64_t>((rank * size + i) * rounds + round));
      CHECK_OK(MPI_Irecv(in[at].data(), static_cast<int>(n), MPI_BYTE, i, round, comm, &requests[at]));
    }
    for (int i = 0; i < size; ++i) {
      const auto at = static_cast<std::size_t>(i);
      CHECK_OK(MPI_Isend(out[at].data(), static_cast<int>(n), MPI_BYTE, i, round, comm, &requests[ranks + at]));
    }
    CHECK_OK(MPI_Waitall(2 * size, requests.data(), MPI_STATUSES_IGNORE));
    for (int i = 0; i < size; ++i) {
      const auto at = static_cast<std::size_t>(i);
      CHECK_FILLED(in[at].data(), n, static_cast<std::uint64_t>((i * size + rank) * rounds + round));
    }
    // Blocking, from the neighbor: the path without a request.
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    int got = -1;
    if (rank % 2) CHECK_OK(MPI_Send(&round, 1, MPI_INT, to, rounds, comm));
    CHECK_OK(MPI_Recv(&got, 1, MPI_INT, from, rounds, comm, MPI_STATUS_IGNORE));
    if (rank % 2 == 0) CHECK_OK(MPI_Send(&round, 1, MPI_INT, to, rounds, comm));
    CHECK_EQ(got, round);
  }
  int sum = -1;
  CHECK_OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
  CHECK_EQ(sum, size * (size - 1) / 2);
}

void run(MPI_Comm team, int threads) {
  run_threads(threads, [&](int) {
    CHECK_OK(MPIX_Threadcomm_start(team));
    exchange(team, 200);
    CHECK_OK(MPIX_Threadcomm_finish(team));
  });
}

}  // namespace

int main() {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Group everybody = MPI_GROUP_NULL;
  MPI_Comm members = MPI_COMM_NULL, two = MPI_COMM_NULL, four = MPI_COMM_NULL;
  CHECK_OK(MPI_Info_create(&info));
  CHECK_OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_SINGLE"));
  CHECK_OK(MPI_Session_init(info, MPI_ERRORS_ABORT, &session));
  CHECK_OK(MPI_Info_free(&info));
  CHECK_OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &everybody));
  CHECK_OK(MPI_Comm_create_from_group(everybody, "team", MPI_INFO_NULL, MPI_ERRORS_ABORT, &members));
  CHECK_OK(MPIX_Threadcomm_init(members, 2, &two));
  run(two, 2);

  int rank = -1, provided = -1;
  CHECK_OK(MPI_Comm_rank(members, &rank));
  const int level = rank % 2 ? MPI_THREAD_SERIALIZED : MPI_THREAD_FUNNELED;
  CHECK_OK(MPI_Init_thread(nullptr, nullptr, level, &provided));
  CHECK_EQ(provided, level);
  run(two, 2);
  CHECK_OK(MPIX_Threadcomm_init(MPI_COMM_WORLD, 4, &four));
  run(four, 4);

  CHECK_OK(MPIX_Threadcomm_free(&four));
  CHECK_OK(MPIX_Threadcomm_free(&two));
  CHECK_OK(MPI_Comm_free(&members));
  CHECK_OK(MPI_Group_free(&everybody));
  CHECK_OK(MPI_Session_finalize(&session));
  return finish();
}
