/// The same few messages, a given number of times, for counting instructions under callgrind.
///
///   count --test=self|selfrecv|pair|prepost|empty --repeat=100 [--pipes=DIRECTORY] [--thread=multiple]
///
/// All that is to be counted happens inside counted_region() (run.py passes its name to --toggle-collect); the caller
/// runs it with two repeat counts and divides the difference, so start-up, warm-up and first-use costs cancel.
///
/// self: irecv + isend + waitall on MPI_COMM_SELF. selfrecv: isend + recv + wait.
/// pair: 32 sends on rank 0 while rank 1 is *outside* MPI, then 32 receives on rank 1 of messages that are already
/// there. prepost: the receives are posted before the sends start. The two ranks take turns by pipes in
/// DIRECTORY, so nobody polls for a message that is not there yet and the count is a property of the library alone.
/// empty: the turn taking without messages, to subtract.
#include "bench.h"

#include <fcntl.h>
#include <unistd.h>

enum { BURST = 32 };

static int rank, tell = -1, hear = -1;
static MPI_Comm comm;

static void open_pipes(const char* directory) {
  char path[2][4096];
  for (int i = 0; i < 2; i++) snprintf(path[i], sizeof path[i], "%s/to%d", directory, i);
  // Opened read-write, so that neither end waits for the other in open().
  hear = open(path[rank], O_RDWR);
  tell = open(path[1 - rank], O_RDWR);
  if (hear < 0 || tell < 0) bench_fail("cannot open the pipes in --pipes");
}

static void tell_partner(void) {
  char c = 1;
  if (write(tell, &c, 1) != 1) bench_fail("pipe broken");
}

static void hear_partner(void) {
  char c;
  if (read(hear, &c, 1) != 1) bench_fail("pipe broken");
}

__attribute__((noinline)) void counted_region(const char* test, long repeat) {
  long out = 1, in[BURST];
  MPI_Request requests[BURST];
  if (strcmp(test, "self") == 0) {
    for (long i = 0; i < repeat; i++) {
      MPI_Irecv(in, 8, MPI_BYTE, 0, 7, comm, &requests[0]);
      MPI_Isend(&out, 8, MPI_BYTE, 0, 7, comm, &requests[1]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    return;
  }
  if (strcmp(test, "selfrecv") == 0) {
    for (long i = 0; i < repeat; i++) {
      MPI_Isend(&out, 8, MPI_BYTE, 0, 7, comm, &requests[0]);
      MPI_Recv(in, 8, MPI_BYTE, 0, 7, comm, MPI_STATUS_IGNORE);
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    return;
  }
  int pair = strcmp(test, "pair") == 0, prepost = strcmp(test, "prepost") == 0;
  for (long i = 0; i < repeat; i++) {
    if (rank == 0) {
      hear_partner();
      if (pair || prepost)
        for (int b = 0; b < BURST; b++) MPI_Send(&out, 8, MPI_BYTE, 1, 7, comm);
      tell_partner();
    } else {
      if (prepost)
        for (int b = 0; b < BURST; b++) MPI_Irecv(&in[b], 8, MPI_BYTE, 0, 7, comm, &requests[b]);
      tell_partner();
      hear_partner();
      if (pair)
        for (int b = 0; b < BURST; b++) MPI_Recv(&in[b], 8, MPI_BYTE, 0, 7, comm, MPI_STATUS_IGNORE);
      if (prepost) MPI_Waitall(BURST, requests, MPI_STATUSES_IGNORE);
    }
  }
}

int main(int argc, char** argv) {
  bench_init(&argc, &argv, "single");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* test = bench_option(argc, argv, "test", "self");
  const char* pipes = bench_option(argc, argv, "pipes", NULL);
  int self = strncmp(test, "self", 4) == 0;
  comm = self ? MPI_COMM_SELF : MPI_COMM_WORLD;
  if (!self) {
    if (!pipes) bench_fail("--pipes=DIRECTORY is needed");
    open_pipes(pipes);
    MPI_Barrier(comm);
  }
  counted_region(test, bench_option_long(argc, argv, "repeat", 100));
  MPI_Finalize();
  return 0;
}
