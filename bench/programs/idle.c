/// How much of a core a blocked receive uses, in percent: rank 1 waits for a message that rank 0 sends after
/// `--seconds` of sleeping outside MPI. The first tenth of a second is included: adaptive waiting is part of the cost.
/// And how long after the send such a receive has returned, in microseconds, median of 21 (ranks of one machine share the clock);
/// and the same for a thread that sleeps in recv() on a socket of its own, which is what the machine's own way of waking costs.
#include "bench.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static double cpu_seconds(void) {
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

enum { wakes = 21 };

static int ascending(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/// A connection between ranks 0 and 1 over the loopback interface, in which MPI has no part.
static int bare_connection(int rank) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t bytes = sizeof at;
  int end = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  if (rank == 1) {
    int listener = end;
    if (bind(listener, (struct sockaddr*)&at, bytes) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr*)&at, &bytes))
      bench_fail("no socket to listen on");
    MPI_Send(&at, sizeof at, MPI_BYTE, 0, 5, MPI_COMM_WORLD);
    end = accept(listener, NULL, NULL);
    close(listener);
  } else {
    MPI_Recv(&at, sizeof at, MPI_BYTE, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (connect(end, (struct sockaddr*)&at, sizeof at)) bench_fail("no connection over the loopback interface");
  }
  setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return end;
}

/// Rank 1's receive has been blocked for 20 ms when rank 0 sends the time; through MPI, or through `bare` if that is not -1. Nothing follows for a
/// millisecond: a second message would come while the kernel hands over the first, and keep it from doing so.
static void measure_wakes(int rank, int bare, const char* key) {
  double late[wakes], sent;
  for (int i = 0; i < wakes; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      struct timespec nap = {0, 20000000};
      nanosleep(&nap, NULL);
      sent = bench_now();
      if (bare < 0) MPI_Send(&sent, 1, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD);
      else if (send(bare, &sent, sizeof sent, 0) != sizeof sent) bench_fail("the bare connection broke");
      nap = (struct timespec){0, 1000000};
      nanosleep(&nap, NULL);
    } else if (rank == 1) {
      if (bare < 0) MPI_Recv(&sent, 1, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      else if (recv(bare, &sent, sizeof sent, MSG_WAITALL) != sizeof sent) bench_fail("the bare connection broke");
      late[i] = 1e6 * (bench_now() - sent);
    }
  }
  if (rank == 1) {
    qsort(late, wakes, sizeof *late, ascending);
    MPI_Send(&late[wakes / 2], 1, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD);
  } else if (rank == 0) {
    MPI_Recv(late, 1, MPI_DOUBLE, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    bench_report(key, late[0]);
  }
}

int main(int argc, char** argv) {
  bench_init(&argc, &argv, "single");
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double seconds = bench_option_double(argc, argv, "seconds", 2), percent = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    struct timespec nap = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&nap, NULL);
    MPI_Send(&seconds, 1, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(&percent, 1, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    bench_report("cpu_percent", percent);
  } else if (rank == 1) {
    double start = bench_now(), used = cpu_seconds();
    MPI_Recv(&seconds, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    percent = 100 * (cpu_seconds() - used) / (bench_now() - start);
    MPI_Send(&percent, 1, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
  }
  measure_wakes(rank, -1, "wake_us");
  int bare = bare_connection(rank);
  measure_wakes(rank, bare, "wake_bare_us");
  close(bare);
  MPI_Finalize();
  return 0;
}
