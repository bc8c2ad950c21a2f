/// Two ranks: one-way latency, bandwidth and message rate by size and by kind of buffer.
///
///   p2p --test=latency|bandwidth --sizes=8,1024 --buffer=malloc|alloc_mem --touch=untouched|fresh --seconds=0.3
///
/// latency: blocking ping-pong, half a round trip in microseconds. bandwidth: windows of 64 nonblocking sends of the
/// same buffer, one acknowledgement per window; reports GB/s (10^9 bytes) and million messages a second.
/// With --touch=fresh the sender writes all of its buffer before every send. In the latency test the time of that
/// writing is taken off (key `latency`) and also reported with it (key `latency_with_write`); in the bandwidth test
/// each message of a window has its own buffer and the writing is part of the time.
#include "bench.h"

struct Test {
  int rank;
  int peer;
  long size;
  int fresh;
  int window;
  int keep_write_time;
  unsigned char stamp;
  char* send;
  char* receive;
  MPI_Request* requests;
};

static char* allocate(const char* kind, size_t bytes) {
  void* memory = NULL;
  if (strcmp(kind, "alloc_mem") == 0) {
    MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &memory);
  } else if (strcmp(kind, "malloc") == 0) {
    memory = malloc(bytes + 4096);
    if (memory) memory = (void*)(((size_t)memory + 4095) & ~(size_t)4095);
  } else {
    bench_fail("--buffer is malloc or alloc_mem");
  }
  if (!memory) bench_fail("out of memory");
  memset(memory, 1, bytes);
  return memory;
}

static double fill(struct Test* t, char* buffer) {
  double start = bench_now();
  memset(buffer, ++t->stamp, (size_t)t->size);
  return bench_now() - start;
}

static double ping_pong(void* state, long iterations) {
  struct Test* t = state;
  double writing = 0;
  int count = (int)t->size;
  if (t->rank == 0) {
    for (long i = 0; i < iterations; i++) {
      if (t->fresh) writing += fill(t, t->send);
      MPI_Send(t->send, count, MPI_BYTE, t->peer, 1, MPI_COMM_WORLD);
      MPI_Recv(t->receive, count, MPI_BYTE, t->peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  } else {
    for (long i = 0; i < iterations; i++) {
      MPI_Recv(t->receive, count, MPI_BYTE, t->peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (t->fresh) writing += fill(t, t->send);
      MPI_Send(t->send, count, MPI_BYTE, t->peer, 1, MPI_COMM_WORLD);
    }
  }
  if (!t->fresh) return 0;
  // The other end's writing lies on the critical path too: rank 0 is told how long it took.
  double others = 0;
  MPI_Sendrecv(&writing, 1, MPI_DOUBLE, t->peer, 2, &others, 1, MPI_DOUBLE, t->peer, 2, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  return t->keep_write_time ? 0 : writing + others;
}

static double windows(void* state, long iterations) {
  struct Test* t = state;
  int count = (int)t->size;
  char ack = 0;
  for (long i = 0; i < iterations; i++) {
    if (t->rank == 0) {
      for (int w = 0; w < t->window; w++) {
        char* buffer = t->send;
        if (t->fresh) {
          buffer += (size_t)w * (size_t)t->size;
          memset(buffer, ++t->stamp, (size_t)t->size);
        }
        MPI_Isend(buffer, count, MPI_BYTE, t->peer, 1, MPI_COMM_WORLD, &t->requests[w]);
      }
      MPI_Waitall(t->window, t->requests, MPI_STATUSES_IGNORE);
      MPI_Recv(&ack, 1, MPI_BYTE, t->peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      for (int w = 0; w < t->window; w++) {
        char* buffer = t->receive + (t->fresh ? (size_t)w * (size_t)t->size : 0);
        MPI_Irecv(buffer, count, MPI_BYTE, t->peer, 1, MPI_COMM_WORLD, &t->requests[w]);
      }
      MPI_Waitall(t->window, t->requests, MPI_STATUSES_IGNORE);
      MPI_Send(&ack, 1, MPI_BYTE, t->peer, 2, MPI_COMM_WORLD);
    }
  }
  return 0;
}

/// A benchmark of a library that loses bytes is worth nothing: one message of the measured kind is checked.
static void verify(struct Test* t) {
  for (long i = 0; i < t->size; i++) t->send[i] = (char)(i * 7 + t->rank);
  MPI_Sendrecv(t->send, (int)t->size, MPI_BYTE, t->peer, 3, t->receive, (int)t->size, MPI_BYTE, t->peer, 3,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (long i = 0; i < t->size; i++)
    if (t->receive[i] != (char)(i * 7 + t->peer)) bench_fail("received bytes differ from those sent");
}

int main(int argc, char** argv) {
  bench_init(&argc, &argv, "single");
  int ranks;
  struct Test t = {.fresh = strcmp(bench_option(argc, argv, "touch", "untouched"), "fresh") == 0};
  MPI_Comm_rank(MPI_COMM_WORLD, &t.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) bench_fail("p2p needs two ranks");
  t.peer = 1 - t.rank;
  const char* test = bench_option(argc, argv, "test", "latency");
  const char* kind = bench_option(argc, argv, "buffer", "malloc");
  const char* sizes = bench_option(argc, argv, "sizes", "8");
  double seconds = bench_option_double(argc, argv, "seconds", 0.3);
  t.window = (int)bench_option_long(argc, argv, "window", 64);
  t.requests = malloc((size_t)t.window * sizeof *t.requests);
  int latency = strcmp(test, "latency") == 0;
  for (long size; (size = bench_next_number(&sizes)) >= 0;) {
    t.size = size;
    size_t bytes = (size_t)(size ? size : 1) * (t.fresh && !latency ? (size_t)t.window : 1);
    t.send = allocate(kind, bytes);
    t.receive = allocate(kind, bytes);
    verify(&t);
    char key[96];
    if (latency) {
      t.keep_write_time = 0;
      double once = bench_measure(MPI_COMM_WORLD, ping_pong, &t, seconds);
      snprintf(key, sizeof key, "latency/%ld", size);
      if (t.rank == 0) bench_report(key, 0.5e6 * once);
      if (t.fresh) {
        t.keep_write_time = 1;
        once = bench_measure(MPI_COMM_WORLD, ping_pong, &t, seconds);
        snprintf(key, sizeof key, "latency_with_write/%ld", size);
        if (t.rank == 0) bench_report(key, 0.5e6 * once);
      }
    } else {
      double once = bench_measure(MPI_COMM_WORLD, windows, &t, seconds);
      if (t.rank == 0) {
        snprintf(key, sizeof key, "bandwidth/%ld", size);
        bench_report(key, 1e-9 * (double)size * t.window / once);
        snprintf(key, sizeof key, "rate/%ld", size);
        bench_report(key, 1e-6 * t.window / once);
      }
    }
    // Memory from malloc is left to the end of the program: freeing it here would let the next size reuse pages
    // that one library has registered and another has not.
    if (strcmp(kind, "alloc_mem") == 0) {
      MPI_Free_mem(t.send);
      MPI_Free_mem(t.receive);
    }
  }
  free(t.requests);
  MPI_Finalize();
  return 0;
}
