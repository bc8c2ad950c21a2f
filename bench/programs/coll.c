/// Collectives back to back: microseconds per call on rank 0.
///
///   coll --op=barrier|allreduce|bcast|alltoall --sizes=8,1024 --seconds=0.3
///
/// The root of a broadcast goes round, so that one call cannot start before the one before it has arrived. `alltoall`
/// counts bytes per partner, `allreduce` sums doubles and rounds the size up to whole ones.
#include "bench.h"

struct Test {
  int ranks;
  int count;
  void* send;
  void* receive;
};

static double barrier(void* state, long iterations) {
  (void)state;
  for (long i = 0; i < iterations; i++) MPI_Barrier(MPI_COMM_WORLD);
  return 0;
}

static double allreduce(void* state, long iterations) {
  struct Test* t = state;
  for (long i = 0; i < iterations; i++)
    MPI_Allreduce(t->send, t->receive, t->count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return 0;
}

static double bcast(void* state, long iterations) {
  struct Test* t = state;
  int root = 0;
  for (long i = 0; i < iterations; i++) {
    MPI_Bcast(t->send, t->count, MPI_BYTE, root, MPI_COMM_WORLD);
    if (++root == t->ranks) root = 0;
  }
  return 0;
}

static double alltoall(void* state, long iterations) {
  struct Test* t = state;
  for (long i = 0; i < iterations; i++)
    MPI_Alltoall(t->send, t->count, MPI_BYTE, t->receive, t->count, MPI_BYTE, MPI_COMM_WORLD);
  return 0;
}

/// One call of each kind with a known result.
static void verify(struct Test* t, const char* op, int rank) {
  int n = t->ranks, wrong = 0;
  char *send = t->send, *receive = t->receive;
  double* sums = t->receive;
  if (strcmp(op, "allreduce") == 0) {
    for (int i = 0; i < t->count; i++) ((double*)t->send)[i] = rank + i;
    MPI_Allreduce(t->send, t->receive, t->count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < t->count; i++) wrong |= sums[i] != n * (n - 1) / 2 + (double)n * i;
  } else if (strcmp(op, "bcast") == 0) {
    memset(t->send, rank == n - 1 ? 42 : 0, (size_t)t->count);
    MPI_Bcast(t->send, t->count, MPI_BYTE, n - 1, MPI_COMM_WORLD);
    for (int i = 0; i < t->count; i++) wrong |= send[i] != 42;
  } else if (strcmp(op, "alltoall") == 0) {
    for (int i = 0; i < n * t->count; i++) send[i] = (char)(3 * rank + 5 * (i / t->count));
    MPI_Alltoall(send, t->count, MPI_BYTE, receive, t->count, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < n * t->count; i++) wrong |= receive[i] != (char)(3 * (i / t->count) + 5 * rank);
  }
  if (wrong) bench_fail("a collective's result is wrong");
}

int main(int argc, char** argv) {
  bench_init(&argc, &argv, "single");
  int rank;
  struct Test t;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &t.ranks);
  const char* op = bench_option(argc, argv, "op", "barrier");
  const char* sizes = bench_option(argc, argv, "sizes", "8");
  double seconds = bench_option_double(argc, argv, "seconds", 0.3);
  int reduces = strcmp(op, "allreduce") == 0;
  bench_body body = reduces                       ? allreduce
                    : strcmp(op, "bcast") == 0    ? bcast
                    : strcmp(op, "alltoall") == 0 ? alltoall
                                                  : barrier;
  for (long size; (size = bench_next_number(&sizes)) >= 0;) {
    size_t bytes = ((size_t)size + 8) * (size_t)t.ranks;
    t.send = calloc(1, bytes);
    t.receive = calloc(1, bytes);
    if (!t.send || !t.receive) bench_fail("out of memory");
    t.count = (int)(reduces ? (size + 7) / 8 : size);
    verify(&t, op, rank);
    double once = bench_measure(MPI_COMM_WORLD, body, &t, seconds);
    char key[64];
    snprintf(key, sizeof key, "time/%ld", size);
    if (rank == 0) bench_report(key, 1e6 * once);
    free(t.send);
    free(t.receive);
  }
  MPI_Finalize();
  return 0;
}
