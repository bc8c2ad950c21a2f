/// Two threads of one process hand each other 8 bytes, one way in microseconds: `latency/8`.
///
///   inproc --mode=bare|shared|own|endpoints --seconds=0.4
///
/// bare: no MPI at all: each thread waits for the other's flag on a cache line of its own; the floor for the rest.
/// shared: rank 0 sends to itself with a tag for each thread. own: a communicator for each direction.
/// endpoints: the two threads are two endpoints (only where the library has MPIX_Comm_create_endpoints).
#include "../programs/bench.h"

#include <pthread.h>
#include <stdatomic.h>

#ifdef HEDDLE_BENCH_ENDPOINTS
#include <mpix.h>
#endif

enum { BARE, MPI };

struct Side {
  MPI_Comm send_comm, receive_comm;
  int send_to, receive_from, send_tag, receive_tag;
};

static struct Side sides[2];
static int kind;
static long iterations;
static atomic_int stop;
static pthread_barrier_t gate;
static _Alignas(128) atomic_long flags[2][16];

static void exchange(int me, long n) {
  if (kind == BARE) {
    for (long i = 0; i < n; i++) {
      if (me == 0) atomic_store_explicit(&flags[0][0], i + 1, memory_order_release);
      while (atomic_load_explicit(&flags[1 - me][0], memory_order_acquire) != i + 1) {
      }
      if (me == 1) atomic_store_explicit(&flags[1][0], i + 1, memory_order_release);
    }
    return;
  }
  struct Side* s = &sides[me];
  long word = 0;
  for (long i = 0; i < n; i++) {
    if (me == 0) {
      word = i;
      MPI_Send(&word, 8, MPI_BYTE, s->send_to, s->send_tag, s->send_comm);
    }
    MPI_Recv(&word, 8, MPI_BYTE, s->receive_from, s->receive_tag, s->receive_comm, MPI_STATUS_IGNORE);
    if (word != i) bench_fail("received bytes differ from those sent");
    if (me == 1) MPI_Send(&word, 8, MPI_BYTE, s->send_to, s->send_tag, s->send_comm);
  }
}

static void* second(void* unused) {
  (void)unused;
  bench_pin(1, 2);
  for (;;) {
    pthread_barrier_wait(&gate);
    if (atomic_load_explicit(&stop, memory_order_relaxed)) return NULL;
    exchange(1, iterations);
    pthread_barrier_wait(&gate);
  }
}

static double run_both(void* state, long n) {
  (void)state;
  iterations = n;
  atomic_store_explicit(&flags[0][0], 0, memory_order_relaxed);
  atomic_store_explicit(&flags[1][0], 0, memory_order_relaxed);
  pthread_barrier_wait(&gate);
  exchange(0, n);
  pthread_barrier_wait(&gate);
  return 0;
}

int main(int argc, char** argv) {
  bench_init(&argc, &argv, "multiple");
  const char* mode = bench_option(argc, argv, "mode", "shared");
  kind = strcmp(mode, "bare") == 0 ? BARE : MPI;
  int endpoints = strcmp(mode, "endpoints") == 0, own = strcmp(mode, "own") == 0;
  MPI_Comm comms[2] = {MPI_COMM_SELF, MPI_COMM_SELF};
  if (own) {
    MPI_Comm_dup(MPI_COMM_SELF, &comms[0]);
    MPI_Comm_dup(MPI_COMM_SELF, &comms[1]);
  }
  if (endpoints) {
#ifdef HEDDLE_BENCH_ENDPOINTS
    MPIX_Comm_create_endpoints(MPI_COMM_SELF, 2, MPI_INFO_NULL, comms);
#else
    bench_fail("this library has no endpoints");
#endif
  }
  for (int me = 0; me < 2; me++) {
    sides[me].send_comm = comms[me];
    sides[me].receive_comm = comms[endpoints ? me : 1 - me];
    sides[me].send_to = endpoints ? 1 - me : 0;
    sides[me].receive_from = sides[me].send_to;
    sides[me].send_tag = me;
    sides[me].receive_tag = 1 - me;
  }
  pthread_t thread;
  pthread_barrier_init(&gate, NULL, 2);
  bench_pin(0, 2);
  pthread_create(&thread, NULL, second, NULL);
  double once = bench_measure(MPI_COMM_SELF, run_both, NULL, bench_option_double(argc, argv, "seconds", 0.4));
  bench_report("latency/8", 0.5e6 * once);
  atomic_store_explicit(&stop, 1, memory_order_relaxed);  // the gate orders it
  pthread_barrier_wait(&gate);
  pthread_join(thread, NULL);
  if (own || endpoints) {
    MPI_Comm_free(&comms[0]);
    MPI_Comm_free(&comms[1]);
  }
  MPI_Finalize();
  return 0;
}
