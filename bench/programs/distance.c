/// How far apart two cores are right now: two threads hand each other a flag; prints nanoseconds one way as `RESULT distance NS`.
///
/// No MPI. On a virtual machine the answer changes while the host moves its cores about, by a factor of four; a comparison
/// of two libraries means something only when both had the same.
#define _GNU_SOURCE  // thread affinity
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { ROUNDS = 20000, WARM_UP = 2000 };

static _Alignas(128) atomic_long flags[2][16];

/// Binds the calling thread to the `index`th core that this process may use; with one core both threads share it.
static void pin(int index) {
  cpu_set_t may, one;
  sched_getaffinity(0, sizeof may, &may);
  int wanted = index % CPU_COUNT(&may);
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE; core++)
    if (CPU_ISSET(core, &may) && wanted-- == 0) CPU_SET(core, &one);
  pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

static void exchange(int me, long from, long to) {
  for (long i = from; i < to; i++) {
    if (me == 0) atomic_store_explicit(&flags[0][0], i + 1, memory_order_release);
    for (long looks = 1; atomic_load_explicit(&flags[1 - me][0], memory_order_acquire) != i + 1; looks++)
      if (looks % 100000 == 0) sched_yield();
    if (me == 1) atomic_store_explicit(&flags[1][0], i + 1, memory_order_release);
  }
}

static void* second(void* unused) {
  pin(1);
  exchange(1, 0, WARM_UP + ROUNDS);
  return unused;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(void) {
  pthread_t other;
  if (pthread_create(&other, NULL, second, NULL) != 0) return 1;
  pin(0);
  exchange(0, 0, WARM_UP);
  double start = now();
  exchange(0, WARM_UP, WARM_UP + ROUNDS);
  double spent = now() - start;
  pthread_join(other, NULL);
  printf("RESULT distance %.1f\n", spent / (2.0 * ROUNDS));
  return 0;
}
