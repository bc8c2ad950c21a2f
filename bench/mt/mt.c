/// Many threads at once: message rate, latency, many senders to one receiver, by mode of paper 004.
///
///   mt --mode=everywhere|shared|own|endpoints --test=rate|latency|incast|allreduce --threads=4 --sizes=8 --seconds=0.5
///      [--window=64] [--communicators=K] [--stride=S] [--pin=block|none]
///
/// everywhere: 2 × T ranks of one thread; rank i works with rank i + T. All other modes: 2 ranks of T threads; thread i
/// of one works with thread i of the other. shared: all on one communicator, different tags. own: a communicator per
/// thread. endpoints: an endpoint per thread (only where the library has MPIX_Comm_create_endpoints).
///
/// --communicators=K makes threads share K communicators in turn (paper 004 figure 17: how much serialization hurts);
/// --stride=S gives thread i the communicator made as number i × S, so that with S a multiple of the number of VCIs
/// all of them land on one (the mapping mismatch of that figure).
///
/// rate: windows of nonblocking sends, one acknowledgement per window: `rate/<size>` in million messages a second over
/// all pairs. latency: ping-pong of every pair at once: `latency/<size>`, microseconds one way, mean over the pairs.
/// incast (figures 18, 19): every thread of rank 0 sends to the *first* thread of rank 1 alone, which serves them by
/// its T communicators in turn (own), or with any source and any tag (shared, endpoints): `incast/<size>`.
/// allreduce: every thread calls MPI_Allreduce of one double on its communicator (own: each among two ranks; everywhere
/// and endpoints: among all): `allreduce/8`, microseconds a call.
#include "../programs/bench.h"

#include <pthread.h>

#ifdef HEDDLE_BENCH_ENDPOINTS
#include <mpix.h>
#endif

enum { EVERYWHERE, SHARED, OWN, ENDPOINTS };
enum { RATE, LATENCY, INCAST, ALLREDUCE };

struct Thread {
  pthread_t id;
  int index;
  int partner;  // rank of the partner in comm
  int tag;
  MPI_Comm comm;
};

static int rank, threads, mode, test, window, do_pin, sender, pin_units;
static long size, iterations;
static int stop;
static struct Thread* all;
static pthread_barrier_t gate;

static void rate(struct Thread* t, char* buffer, MPI_Request* requests, long n) {
  char ack = 0;
  int count = (int)size;
  for (long i = 0; i < n; i++) {
    if (sender) {
      for (int w = 0; w < window; w++) MPI_Isend(buffer, count, MPI_BYTE, t->partner, t->tag, t->comm, &requests[w]);
      MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
      MPI_Recv(&ack, 1, MPI_BYTE, t->partner, t->tag + 1, t->comm, MPI_STATUS_IGNORE);
    } else {
      for (int w = 0; w < window; w++) MPI_Irecv(buffer, count, MPI_BYTE, t->partner, t->tag, t->comm, &requests[w]);
      MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
      MPI_Send(&ack, 1, MPI_BYTE, t->partner, t->tag + 1, t->comm);
    }
  }
}

static void latency(struct Thread* t, char* buffer, long n) {
  int count = (int)size;
  for (long i = 0; i < n; i++) {
    if (sender) {
      MPI_Send(buffer, count, MPI_BYTE, t->partner, t->tag, t->comm);
      MPI_Recv(buffer, count, MPI_BYTE, t->partner, t->tag, t->comm, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(buffer, count, MPI_BYTE, t->partner, t->tag, t->comm, MPI_STATUS_IGNORE);
      MPI_Send(buffer, count, MPI_BYTE, t->partner, t->tag, t->comm);
    }
  }
}

// In every round each sender sends one window; the receiver takes all of them and acknowledges each sender.
static void incast_send(struct Thread* t, char* buffer, MPI_Request* requests, long n) {
  char ack;
  int target = mode == ENDPOINTS ? all[0].partner : t->partner;
  for (long i = 0; i < n; i++) {
    for (int w = 0; w < window; w++) MPI_Isend(buffer, (int)size, MPI_BYTE, target, t->tag, t->comm, &requests[w]);
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
    MPI_Recv(&ack, 1, MPI_BYTE, target, t->tag + 1, t->comm, MPI_STATUS_IGNORE);
  }
}

static void incast_receive(char* buffer, MPI_Request* requests, long n) {
  char ack = 0;
  for (long i = 0; i < n; i++) {
    for (int w = 0; w < window; w++)
      for (int s = 0; s < threads; s++) {
        MPI_Request* request = &requests[w * threads + s];
        if (mode == OWN)
          MPI_Irecv(buffer, (int)size, MPI_BYTE, all[s].partner, all[s].tag, all[s].comm, request);
        else
          MPI_Irecv(buffer, (int)size, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, all[0].comm, request);
      }
    MPI_Waitall(window * threads, requests, MPI_STATUSES_IGNORE);
    for (int s = 0; s < threads; s++) {
      MPI_Comm comm = mode == OWN ? all[s].comm : all[0].comm;
      MPI_Send(&ack, 1, MPI_BYTE, all[s].partner, all[s].tag + 1, comm);
    }
  }
}

static void allreduce(struct Thread* t, long n) {
  double mine = 1, sum = 0;
  int members;
  MPI_Comm_size(t->comm, &members);
  for (long i = 0; i < n; i++) MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, t->comm);
  if (n > 0 && sum != members) bench_fail("a sum is wrong");
}

static void work_once(struct Thread* t) {
  char* buffer = calloc(1, (size_t)size + 1);
  MPI_Request* requests = malloc((size_t)window * (size_t)threads * sizeof *requests);
  if (!buffer || !requests) bench_fail("out of memory");
  // What a pair sends is its own pattern; it is checked at the end of each batch (incast: by the count alone, the
  // receiver's buffer is everybody's).
  if (sender) memset(buffer, 17 + t->tag, (size_t)size);
  if (test == RATE)
    rate(t, buffer, requests, iterations);
  else if (test == LATENCY)
    latency(t, buffer, iterations);
  else if (test == ALLREDUCE)
    allreduce(t, iterations);
  else if (sender)
    incast_send(t, buffer, requests, iterations);
  else if (t->index == 0)
    incast_receive(buffer, requests, iterations);
  free(requests);
  free(buffer);
}

static void* work(void* argument) {
  struct Thread* t = argument;
  if (do_pin) bench_pin((sender ? 0 : threads) + t->index, pin_units);
  for (;;) {
    pthread_barrier_wait(&gate);
    if (stop) return NULL;
    work_once(t);
    pthread_barrier_wait(&gate);
  }
}

static double run_all(void* state, long n) {
  (void)state;
  iterations = n;
  if (mode == EVERYWHERE) {
    work_once(&all[0]);
    MPI_Barrier(MPI_COMM_WORLD);
    return 0;
  }
  pthread_barrier_wait(&gate);
  work_once(&all[0]);
  pthread_barrier_wait(&gate);
  return 0;
}

/// Makes the communicators or endpoints of `mode`. `communicators` and `stride`: see above.
static void make_communicators(int communicators, int stride) {
  for (int i = 0; i < threads; i++) {
    all[i].index = i;
    all[i].tag = 2 * i;
    all[i].partner = 1 - rank;
  }
  if (mode == SHARED) {
    MPI_Comm_dup(MPI_COMM_WORLD, &all[0].comm);
    for (int i = 1; i < threads; i++) all[i].comm = all[0].comm;
  } else if (mode == OWN) {
    if (communicators > threads) communicators = threads;
    for (int i = 0; i < threads; i++) {
      if (i >= communicators) {
        all[i].comm = all[i % communicators].comm;
        continue;
      }
      MPI_Comm_dup(MPI_COMM_WORLD, &all[i].comm);
      for (int s = 1; s < stride; s++) {
        MPI_Comm unused;  // never freed: a freed one's place could be taken by the next
        MPI_Comm_dup(MPI_COMM_WORLD, &unused);
      }
    }
  } else if (mode == ENDPOINTS) {
#ifdef HEDDLE_BENCH_ENDPOINTS
    MPI_Comm* handles = malloc((size_t)threads * sizeof *handles);
    MPIX_Comm_create_endpoints(MPI_COMM_WORLD, threads, MPI_INFO_NULL, handles);
    for (int i = 0; i < threads; i++) {
      all[i].comm = handles[i];
      all[i].partner = (1 - rank) * threads + i;
    }
    free(handles);
#else
    bench_fail("this library has no endpoints");
#endif
  }
}

int main(int argc, char** argv) {
  const char* mode_name = bench_option(argc, argv, "mode", "own");
  const char* test_name = bench_option(argc, argv, "test", "rate");
  mode = strcmp(mode_name, "everywhere") == 0  ? EVERYWHERE
         : strcmp(mode_name, "shared") == 0    ? SHARED
         : strcmp(mode_name, "endpoints") == 0 ? ENDPOINTS
                                               : OWN;
  test = strcmp(test_name, "latency") == 0     ? LATENCY
         : strcmp(test_name, "incast") == 0    ? INCAST
         : strcmp(test_name, "allreduce") == 0 ? ALLREDUCE
                                               : RATE;
  bench_init(&argc, &argv, mode == EVERYWHERE ? "single" : "multiple");
  int ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  threads = (int)bench_option_long(argc, argv, "threads", 1);
  window = (int)bench_option_long(argc, argv, "window", 64);
  do_pin = strcmp(bench_option(argc, argv, "pin", "block"), "block") == 0;
  pin_units = mode == EVERYWHERE ? ranks : 2 * threads;
  const char* sizes = bench_option(argc, argv, "sizes", "8");
  double seconds = bench_option_double(argc, argv, "seconds", 0.5);
  if (mode == EVERYWHERE ? ranks % 2 : ranks != 2) bench_fail("wrong number of ranks for this mode");
  if (mode == SHARED && test == ALLREDUCE) bench_fail("one communicator has one collective at a time");
  if (mode == EVERYWHERE && test == INCAST) bench_fail("incast has no mode everywhere");
  int pairs = mode == EVERYWHERE ? ranks / 2 : threads;
  if (mode == EVERYWHERE) threads = 1;

  all = calloc((size_t)threads, sizeof *all);
  if (mode == EVERYWHERE) {
    all[0].comm = MPI_COMM_WORLD;
    all[0].partner = (rank + pairs) % ranks;
    sender = rank < pairs;
    if (do_pin) bench_pin(rank, pin_units);
  } else {
    sender = rank == 0;
    make_communicators((int)bench_option_long(argc, argv, "communicators", threads),
                       (int)bench_option_long(argc, argv, "stride", 1));
    if (do_pin) bench_pin(sender ? 0 : threads, pin_units);
    pthread_barrier_init(&gate, NULL, (unsigned)threads);
    for (int i = 1; i < threads; i++) pthread_create(&all[i].id, NULL, work, &all[i]);
  }
  for (long next; (next = bench_next_number(&sizes)) >= 0;) {
    size = next;
    double once = bench_measure(MPI_COMM_WORLD, run_all, NULL, seconds);
    char key[64];
    snprintf(key, sizeof key, "%s/%ld", test_name, size);
    double figure = test == LATENCY ? 0.5e6 * once : test == ALLREDUCE ? 1e6 * once : 1e-6 * pairs * window / once;
    if (rank == 0) bench_report(key, figure);
  }
  if (mode != EVERYWHERE) {
    stop = 1;
    if (threads > 1) pthread_barrier_wait(&gate);
    for (int i = 1; i < threads; i++) pthread_join(all[i].id, NULL);
    pthread_barrier_destroy(&gate);
  }
  MPI_Finalize();
  return 0;
}
