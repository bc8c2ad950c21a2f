#include "bench.h"

#include <pthread.h>
#include <unistd.h>

void bench_pin(int index, int count) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((int)((long)index * cores / count), &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}
