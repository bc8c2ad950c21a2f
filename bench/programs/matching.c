/// What a message costs while many others are outstanding: one-way latency of an 8-byte ping-pong, two ranks.
///
///   matching --kind=posted|unexpected --depths=1,100000 --order=first|last --seconds=0.2
///
/// posted: each rank has `depth` receives outstanding whose tags the ping-pong does not use, posted before those of the
/// ping-pong. unexpected: `depth` messages nobody has asked for lie at each rank. They are taken (in the order they
/// came) after the measurement; `drain` is the time per message of that, in microseconds.
#include "bench.h"

enum { PING = 1, FIRST_OTHER = 100 };

static int rank, peer;

static double ping_pong(void* state, long iterations) {
  long word = 0;
  (void)state;
  for (long i = 0; i < iterations; i++) {
    if (rank == 0) {
      MPI_Send(&word, 8, MPI_BYTE, peer, PING, MPI_COMM_WORLD);
      MPI_Recv(&word, 8, MPI_BYTE, peer, PING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(&word, 8, MPI_BYTE, peer, PING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&word, 8, MPI_BYTE, peer, PING, MPI_COMM_WORLD);
    }
  }
  return 0;
}

int main(int argc, char** argv) {
  bench_init(&argc, &argv, "single");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  peer = 1 - rank;
  int posted = strcmp(bench_option(argc, argv, "kind", "posted"), "posted") == 0;
  const char* depths = bench_option(argc, argv, "depths", "1,10,100,1000,10000,100000");
  double seconds = bench_option_double(argc, argv, "seconds", 0.2);
  for (long depth; (depth = bench_next_number(&depths)) >= 0;) {
    long* words = calloc((size_t)depth + 1, sizeof *words);
    MPI_Request* requests = malloc(((size_t)depth + 1) * sizeof *requests);
    if (!words || !requests) bench_fail("out of memory");
    long out = rank;
    for (long i = 0; i < depth; i++) {
      if (posted)
        MPI_Irecv(&words[i], 8, MPI_BYTE, peer, (int)(FIRST_OTHER + i), MPI_COMM_WORLD, &requests[i]);
      else
        MPI_Isend(&out, 8, MPI_BYTE, peer, (int)(FIRST_OTHER + i), MPI_COMM_WORLD, &requests[i]);
    }
    // Brings every unexpected message in: the barrier's own messages come behind them.
    MPI_Barrier(MPI_COMM_WORLD);
    double once = bench_measure(MPI_COMM_WORLD, ping_pong, NULL, seconds);
    char key[64];
    snprintf(key, sizeof key, "latency/%ld", depth);
    if (rank == 0) bench_report(key, 0.5e6 * once);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = bench_now();
    for (long i = 0; i < depth; i++) {
      if (posted)
        MPI_Send(&out, 8, MPI_BYTE, peer, (int)(FIRST_OTHER + i), MPI_COMM_WORLD);
      else
        MPI_Recv(&words[i], 8, MPI_BYTE, peer, (int)(FIRST_OTHER + i), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Waitall((int)depth, requests, MPI_STATUSES_IGNORE);
    double spent = bench_now() - start;
    snprintf(key, sizeof key, "drain/%ld", depth);
    if (rank == 0) bench_report(key, 1e6 * spent / (double)(depth ? depth : 1));
    for (long i = 0; i < depth; i++)
      if (words[i] != peer) bench_fail("a message was lost or mixed up");
    free(requests);
    free(words);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
