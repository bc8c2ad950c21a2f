// ranks: 2
// processors: 1
// timeout: 60
// A rank that is blocked uses less than 1 % of a core: in MPI_Recv, MPI_Probe, MPI_Wait, MPI_Waitany, MPI_Ssend and
// MPI_Barrier, on one communicator or with several in use, and with several threads blocked at once. Rank 0 blocks for
// two seconds each time and reads its own CPU time; rank 1 keeps out of MPI meanwhile.
#include <sys/resource.h>

#include "../mpi/threads/team.hpp"

using namespace test;

namespace {

using namespace std::chrono_literals;
constexpr auto length = 2s;
constexpr double limit = 0.01;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

template <typename Block, typename Release>
void idle(const World& w, const char* what, Block block, Release release) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (w.rank == 1) {
    std::this_thread::sleep_for(length);
    release();
    return;
  }
  const double before = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  block();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  const double share = (cpu_seconds() - before) / wall.count();
  std::printf("%-40s %.2f %% of a core over %.1f s\n", what, share * 100, wall.count());
  std::fflush(stdout);
  CHECK(wall.count() > 1.0);
  if (!library_is_mpich()) CHECK_LT(share, limit);  // MPICH polls
}

}  // namespace

int main() {
  const World w = init_threads();
  Communicators comms(4);
  int value = 0;
  const int out = 1;
  const auto send = [&](int to, MPI_Comm comm) { MPI_Send(&out, 1, MPI_INT, to, 1, comm); };
  // Every communicator has carried traffic, so that all VCIs are in use.
  for (int i = 0; i < 4; ++i)
    MPI_Sendrecv(&out, 1, MPI_INT, 1 - w.rank, 0, &value, 1, MPI_INT, 1 - w.rank, 0, comms[i], MPI_STATUS_IGNORE);

  idle(w, "MPI_Recv", [&] { MPI_Recv(&value, 1, MPI_INT, 1, 1, comms[0], MPI_STATUS_IGNORE); },
       [&] { send(0, comms[0]); });
  idle(w, "MPI_Recv from any source", [&] { MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, comms[1], MPI_STATUS_IGNORE); },
       [&] { send(0, comms[1]); });
  idle(w, "MPI_Probe",
       [&] {
         MPI_Probe(1, 1, comms[2], MPI_STATUS_IGNORE);
         MPI_Recv(&value, 1, MPI_INT, 1, 1, comms[2], MPI_STATUS_IGNORE);
       },
       [&] { send(0, comms[2]); });
  idle(w, "MPI_Waitany on two communicators",
       [&] {
         MPI_Request requests[2];
         int two[2], index = -1;
         MPI_Irecv(&two[0], 1, MPI_INT, 1, 1, comms[0], &requests[0]);
         MPI_Irecv(&two[1], 1, MPI_INT, 1, 1, comms[3], &requests[1]);
         MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
         MPI_Wait(&requests[1 - index], MPI_STATUS_IGNORE);
       },
       [&] {
         send(0, comms[3]);
         send(0, comms[0]);
       });
  std::vector<int> large(1 << 20);
  idle(w, "MPI_Ssend of 4 MiB", [&] { MPI_Ssend(large.data(), 1 << 20, MPI_INT, 1, 2, comms[0]); },
       [&] { MPI_Recv(large.data(), 1 << 20, MPI_INT, 0, 2, comms[0], MPI_STATUS_IGNORE); });
  idle(w, "MPI_Barrier", [&] { MPI_Barrier(comms[1]); }, [&] { MPI_Barrier(comms[1]); });
  idle(w, "MPI_Recv in four threads",
       [&] {
         run_threads(4, [&](int t) {
           int got = 0;
           MPI_Recv(&got, 1, MPI_INT, 1, 1, comms[t], MPI_STATUS_IGNORE);
         });
       },
       [&] {
         for (int t = 0; t < 4; ++t) send(0, comms[t]);
       });
#ifdef HEDDLE_SLEEPS_OUTSIDE
  idle(w, "sleep", [] { std::this_thread::sleep_for(length); }, [] {});
#endif
  comms.free();
  return finish();
}
