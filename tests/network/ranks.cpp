// The ranks of the tests of faults:  ranks WHAT
//
//   exchange   says "ready" once all are connected, then exchanges checked messages until a line comes on rank 0's input
//   late       says "ready" before any message, and exchanges once a line has come on every rank's input
//   broken     rank 1 breaks its connections in the middle of an exchange
//   mute       rank 1 stops (SIGSTOP) after "ready"; rank 0 sends to it and waits
//   leave      rank 1 stops; rank 0 sends to it as much as is sent unasked, and leaves; rank 1 receives it once it goes on
//   unwanted   rank 0 sends a message that nobody receives, and leaves; with -late when rank 1 has left; with -first so that it is the
//              first between the two
//   burst N    rank 0 sends two messages, and then computes for N ms without calling MPI; rank 1 says how long they took
#include <mpi.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

int rank, size;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void fail(const char* what) {
  std::fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

void say(const char* what) {
  if (rank == 0) {
    std::printf("%s\n", what);
    std::fflush(stdout);
  }
}

/// One round: everybody sends `n` numbers to the next and checks what came from the one before.
void round_trip(int n, int round) {
  std::vector<int> out(static_cast<std::size_t>(n)), in(out.size(), -1);
  for (int i = 0; i < n; ++i) out[static_cast<std::size_t>(i)] = round * 31 + rank + i;
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Sendrecv(out.data(), n, MPI_INT, next, 1, in.data(), n, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < n; ++i)
    if (in[static_cast<std::size_t>(i)] != round * 31 + before + i) fail("wrong data");
}

void exchange() {
  round_trip(1, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  say("ready");
  for (int round = 1, more = 1; more; ++round) {
    round_trip(round % 50 ? 16 : 100'000, round);
    if (rank == 0) {
      pollfd input{0, POLLIN, 0};
      more = poll(&input, 1, 0) == 0;
    }
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  say("done");
}

void late() {
  say("ready");
  if (std::getchar() == EOF) fail("no input");
  round_trip(1, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  say("done");
}

/// Shuts all connected TCP sockets of this process, as a reset does.
int break_connections() {
  int broken = 0;
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) || (peer.ss_family != AF_INET && peer.ss_family != AF_INET6)) continue;
    const linger now_{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now_, sizeof now_);
    broken += shutdown(fd, SHUT_RDWR) == 0;
  }
  return broken;
}

void broken() {
  round_trip(1, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  say("ready");
  for (int round = 1; round < 2000; ++round) {
    if (rank == 1 && round == 1000 && !break_connections()) fail("there was no connection to break");
    round_trip(round % 50 ? 16 : 100'000, round);
  }
  say("done");
}

void mute() {
  round_trip(1, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  say("ready");
  if (rank == 1) raise(SIGSTOP);
  int value = 5;
  if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
  MPI_Recv(&value, 1, MPI_INT, 1 - rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void leave() {
  round_trip(1, 0);
  say("ready");
  std::vector<int> block(1000);
  constexpr int blocks = 200;
  if (rank == 1) raise(SIGSTOP);
  for (int i = 0; i < blocks; ++i) {
    block.assign(block.size(), i);
    if (rank == 0) MPI_Send(block.data(), 1000, MPI_INT, 1, 1, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(block.data(), 1000, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (block != std::vector<int>(1000, i)) fail("wrong data");
  }
  say("done");
}

void unwanted(bool late, bool first) {
  if (!first) round_trip(1, 0);
  const int value = 5;
  if (rank == 0) {
    if (late) sleep(2);  // the other is over with MPI_Finalize by then, or the test tests less
    MPI_Send(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
  }
}

void burst(int milliseconds) {
  for (int turn = 0; turn < 3; ++turn) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now();
    int values[2] = {1, 2};
    MPI_Request requests[2];
    if (rank == 0) {
      for (int i = 0; i < 2; ++i) MPI_Isend(&values[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
      while (now() - start < milliseconds * 1e-3) {}
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else if (rank == 1) {
      for (int i = 0; i < 2; ++i) MPI_Recv(&values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      std::printf("took %.0f ms\n", (now() - start) * 1e3);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* what = argc > 1 ? argv[1] : "";
  if (!std::strcmp(what, "exchange")) exchange();
  else if (!std::strcmp(what, "late")) late();
  else if (!std::strcmp(what, "broken")) broken();
  else if (!std::strcmp(what, "mute")) mute();
  else if (!std::strcmp(what, "leave")) leave();
  else if (!std::strncmp(what, "unwanted", 8)) unwanted(what[8], !std::strcmp(what, "unwanted-first"));
  else if (!std::strcmp(what, "burst")) burst(argc > 2 ? std::atoi(argv[2]) : 1000);
  else fail("what is to be done?");
  MPI_Finalize();
}
