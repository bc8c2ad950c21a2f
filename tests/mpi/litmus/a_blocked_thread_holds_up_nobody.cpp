// ranks: 2
// threads: 3
// timeout: 60
// env: HEDDLE_VCIS=8
// A thread blocked in a receive, a probe, a synchronous send, a wait or a barrier on one communicator: the other
// threads of the process communicate, on that and on other communicators, as much as they like; only then is it
// released.
#include "litmus.hpp"

using namespace test;

namespace {

enum Blocked { in_recv, in_probe, in_mprobe, in_ssend, in_wait, in_waitany, in_barrier, kinds };

void block(const World& w, Blocked kind, MPI_Comm comm) {
  const int peer = 1 - w.rank;
  int value = 5, index = 0;
  MPI_Status status;
  MPI_Message message;
  MPI_Request request;
  switch (kind) {
    case in_recv:
      MPI_Recv(&value, 1, MPI_INT, peer, 900, comm, &status);
      break;
    case in_probe:
      MPI_Probe(peer, 900, comm, &status);
      MPI_Recv(&value, 1, MPI_INT, peer, 900, comm, &status);
      break;
    case in_mprobe:
      MPI_Mprobe(MPI_ANY_SOURCE, 900, comm, &message, &status);
      MPI_Mrecv(&value, 1, MPI_INT, &message, &status);
      break;
    case in_ssend:
      MPI_Ssend(&value, 1, MPI_INT, peer, 901, comm);
      break;
    case in_wait:
      MPI_Irecv(&value, 1, MPI_INT, peer, 900, comm, &request);
      MPI_Wait(&request, &status);
      break;
    case in_waitany:
      MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 900, comm, &request);
      MPI_Waitany(1, &request, &index, &status);
      break;
    case in_barrier:
      MPI_Barrier(comm);
      break;
    case kinds:
      break;
  }
  if (kind != in_ssend && kind != in_barrier) CHECK_EQ(value, 77);
}

void let_go(const World& w, Blocked kind, MPI_Comm comm) {
  const int value = 77;
  int got = 0;
  if (kind == in_ssend)
    MPI_Recv(&got, 1, MPI_INT, 1 - w.rank, 901, comm, MPI_STATUS_IGNORE);
  else if (kind == in_barrier)
    MPI_Barrier(comm);
  else
    MPI_Send(&value, 1, MPI_INT, 1 - w.rank, 900, comm);
}

void ping_pong(const World& w, MPI_Comm comm, int tag, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    const std::size_t n = i % 10 == 9 ? 200'000 : 100;
    std::vector<unsigned char> data(n);
    fill(data.data(), n, static_cast<std::uint64_t>(i));
    MPI_Sendrecv_replace(data.data(), static_cast<int>(n), MPI_BYTE, 1 - w.rank, tag, 1 - w.rank, tag, comm,
                         MPI_STATUS_IGNORE);
    CHECK_FILLED(data.data(), n, static_cast<std::uint64_t>(i));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const World w = init_threads();
  Communicators comms(3);
  const int times = repeats(argc, argv, 0);
  for (int i = 0; i < (times ? times : 4 * kinds); ++i) {
    const auto kind = static_cast<Blocked>(i % kinds);
    const bool same = i / kinds % 2 && kind != in_barrier;  // all on one communicator
    // Rank i % 2 has the blocked thread; its peer releases it after both other pairs of threads have finished.
    std::thread blocked;
    if (w.rank == i % 2) blocked = std::thread([&] { block(w, kind, comms[0]); });
    run_threads(2, [&](int t) { ping_pong(w, same ? comms[0] : comms[1 + t], t, times ? 10 : 100); });
    if (w.rank != i % 2) let_go(w, kind, comms[0]);
    if (blocked.joinable()) blocked.join();
  }
  comms.free();
  return finish();
}
