/// How much of a core a blocked receive uses, in percent: rank 1 waits for a message that rank 0 sends after
/// `--seconds` of sleeping outside MPI. The first tenth of a second is included: adaptive waiting is part of the cost.
/// And how long after the send such a receive has returned, in microseconds, median of 21 (ranks of one machine share the clock).
#include "bench.h"

#include <sys/resource.h>

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

/// Rank 1's receive has been blocked for 20 ms when rank 0 sends the time.
static void measure_wakes(int rank) {
  double late[wakes], sent;
  for (int i = 0; i < wakes; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      struct timespec nap = {0, 20000000};
      nanosleep(&nap, NULL);
      sent = bench_now();
      MPI_Send(&sent, 1, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD);
    } else if (rank == 1) {
      MPI_Recv(&sent, 1, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      late[i] = 1e6 * (bench_now() - sent);
    }
  }
  if (rank == 1) {
    qsort(late, wakes, sizeof *late, ascending);
    MPI_Send(&late[wakes / 2], 1, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD);
  } else if (rank == 0) {
    MPI_Recv(late, 1, MPI_DOUBLE, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    bench_report("wake_us", late[0]);
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
  measure_wakes(rank);
  MPI_Finalize();
  return 0;
}
