/// One process that sends to itself: T threads, each irecv + isend + waitall, or isend + recv + wait.
///
///   self --threads=2 --comm=own|shared|endpoints --style=irecv|recv --size=8 --seconds=0.3
///
/// Reports million messages a second over all threads. `own` gives each of several threads its own duplicate of
/// MPI_COMM_SELF; `shared` lets them use one, with different tags; `endpoints` makes each thread an endpoint (only where the
/// library has MPIX_Comm_create_endpoints).
#include "bench.h"

#include <pthread.h>

#ifdef HEDDLE_BENCH_ENDPOINTS
#include <mpix.h>
#endif

struct Thread {
  pthread_t id;
  int index;
  int self;  // its rank in comm
  MPI_Comm comm;
};

static int threads, count, use_recv, window, do_pin;
static long iterations;
static int stop;
static pthread_barrier_t gate;

static void messages(struct Thread* t, long n) {
  char *out = calloc(1, (size_t)count + 1), *in = calloc(1, (size_t)count + 1);
  MPI_Request* requests = malloc(2 * (size_t)window * sizeof *requests);
  int tag = t->index;
  memset(out, 17 + t->index, (size_t)count);
  if (use_recv) {
    for (long i = 0; i < n; i++) {
      MPI_Isend(out, count, MPI_BYTE, t->self, tag, t->comm, requests);
      MPI_Recv(in, count, MPI_BYTE, t->self, tag, t->comm, MPI_STATUS_IGNORE);
      MPI_Wait(requests, MPI_STATUS_IGNORE);
    }
  } else {
    for (long i = 0; i < n; i++) {
      for (int w = 0; w < window; w++) MPI_Irecv(in, count, MPI_BYTE, t->self, tag, t->comm, &requests[w]);
      for (int w = 0; w < window; w++) MPI_Isend(out, count, MPI_BYTE, t->self, tag, t->comm, &requests[window + w]);
      MPI_Waitall(2 * window, requests, MPI_STATUSES_IGNORE);
    }
  }
  if (n > 0 && memcmp(in, out, (size_t)count) != 0) bench_fail("received bytes differ from those sent");
  free(requests);
  free(in);
  free(out);
}

static void* work(void* argument) {
  struct Thread* t = argument;
  if (do_pin) bench_pin(t->index, threads);
  for (;;) {
    pthread_barrier_wait(&gate);
    if (stop) return NULL;
    messages(t, iterations);
    pthread_barrier_wait(&gate);
  }
}

static double run_all(void* state, long n) {
  iterations = n;
  if (threads == 1) {
    messages(state, n);
    return 0;
  }
  pthread_barrier_wait(&gate);
  messages(state, n);
  pthread_barrier_wait(&gate);
  return 0;
}

int main(int argc, char** argv) {
  threads = (int)bench_option_long(argc, argv, "threads", 1);
  bench_init(&argc, &argv, threads > 1 ? "multiple" : "single");
  count = (int)bench_option_long(argc, argv, "size", 8);
  window = (int)bench_option_long(argc, argv, "window", 1);
  use_recv = strcmp(bench_option(argc, argv, "style", "irecv"), "recv") == 0;
  do_pin = strcmp(bench_option(argc, argv, "pin", "block"), "block") == 0;
  const char* comm = bench_option(argc, argv, "comm", "own");
  int endpoints = strcmp(comm, "endpoints") == 0, own = strcmp(comm, "own") == 0;
  struct Thread* all = calloc((size_t)threads, sizeof *all);
  pthread_barrier_init(&gate, NULL, (unsigned)threads);
  MPI_Comm* handles = malloc((size_t)threads * sizeof *handles);
  if (endpoints) {
#ifdef HEDDLE_BENCH_ENDPOINTS
    MPIX_Comm_create_endpoints(MPI_COMM_SELF, threads, MPI_INFO_NULL, handles);
#else
    bench_fail("this library has no endpoints");
#endif
  }
  for (int i = 0; i < threads; i++) {
    all[i].index = i;
    all[i].self = endpoints ? i : 0;
    if (endpoints)
      all[i].comm = handles[i];
    else if (threads == 1)
      all[i].comm = MPI_COMM_SELF;
    else if (own || i == 0)
      MPI_Comm_dup(MPI_COMM_SELF, &all[i].comm);
    else
      all[i].comm = all[0].comm;
  }
  if (do_pin) bench_pin(0, threads);
  for (int i = 1; i < threads; i++) pthread_create(&all[i].id, NULL, work, &all[i]);
  double once = bench_measure(MPI_COMM_SELF, run_all, &all[0], bench_option_double(argc, argv, "seconds", 0.3));
  bench_report("rate", 1e-6 * threads * (use_recv ? 1 : window) / once);
  stop = 1;
  if (threads > 1) pthread_barrier_wait(&gate);
  for (int i = 1; i < threads; i++) pthread_join(all[i].id, NULL);
  for (int i = 0; i < threads; i++)
    if (endpoints || (threads > 1 && (own || i == 0))) MPI_Comm_free(&all[i].comm);
  free(handles);
  pthread_barrier_destroy(&gate);
  free(all);
  MPI_Finalize();
  return 0;
}
