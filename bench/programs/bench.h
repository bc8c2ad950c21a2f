/// What every benchmark program shares: arguments, a clock, adaptive measuring, reporting.
///
/// Plain C11, MPI-3.1 and pthreads only, so that one source compiles for every MPI that is compared.
/// A program prints its figures as lines `RESULT <key> <value>` from rank 0; bench/compare/run.py reads them.
#ifndef HEDDLE_BENCH_H
#define HEDDLE_BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // clock_gettime under -std=c11, thread affinity
#endif

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/// Seconds on a monotonic clock. Not MPI_Wtime, so that its cost is the same for every MPI.
static inline double bench_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/// The text after `--name=`, or `fallback` where the option was not given.
static inline const char* bench_option(int argc, char** argv, const char* name, const char* fallback) {
  size_t length = strlen(name);
  for (int i = 1; i < argc; i++) {
    if (strncmp(argv[i], "--", 2) == 0 && strncmp(argv[i] + 2, name, length) == 0 && argv[i][2 + length] == '=')
      return argv[i] + 3 + length;
  }
  return fallback;
}

static inline long bench_option_long(int argc, char** argv, const char* name, long fallback) {
  const char* text = bench_option(argc, argv, name, NULL);
  return text ? strtol(text, NULL, 0) : fallback;
}

static inline double bench_option_double(int argc, char** argv, const char* name, double fallback) {
  const char* text = bench_option(argc, argv, name, NULL);
  return text ? strtod(text, NULL) : fallback;
}

/// Takes the next number of a comma separated list and moves `*list` behind it; -1 at its end.
static inline long bench_next_number(const char** list) {
  if (!**list) return -1;
  char* end;
  long value = strtol(*list, &end, 0);
  if (end == *list) {
    fprintf(stderr, "not a list of numbers: %s\n", *list);
    exit(2);
  }
  *list = *end == ',' ? end + 1 : end;
  return value;
}

/// One figure; call it on rank 0.
static inline void bench_report(const char* key, double value) {
  printf("RESULT %s %.9g\n", key, value);
  fflush(stdout);
}

/// A wrong use or a wrong result: ends the job, so that no figure of a broken run is kept.
static inline void bench_fail(const char* why) {
  fprintf(stderr, "benchmark failed: %s\n", why);
  fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 3);
  exit(3);
}

/// Starts MPI at the level named by `--thread=single|funneled|serialized|multiple`.
static inline void bench_init(int* argc, char*** argv, const char* default_level) {
  const char* name = bench_option(*argc, *argv, "thread", default_level);
  int wanted = strcmp(name, "multiple") == 0     ? MPI_THREAD_MULTIPLE
               : strcmp(name, "serialized") == 0 ? MPI_THREAD_SERIALIZED
               : strcmp(name, "funneled") == 0   ? MPI_THREAD_FUNNELED
                                                 : MPI_THREAD_SINGLE;
  int provided;
  MPI_Init_thread(argc, argv, wanted, &provided);
  if (provided < wanted) bench_fail("the library does not provide the thread level asked for");
}

static inline int bench_compare_doubles(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/// Sorts `values` and returns the middle one.
static inline double bench_median(double* values, int count) {
  qsort(values, (size_t)count, sizeof *values, bench_compare_doubles);
  return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

/// The work to measure: does it `iterations` times. It returns the seconds to take off the measured time (work of
/// the benchmark's own, such as filling a buffer), or 0.
typedef double (*bench_body)(void* state, long iterations);

enum { BENCH_BATCHES = 7 };

/// Seconds per iteration on rank 0 of `comm`: the median of seven batches that together take about `seconds`.
/// Collective over `comm`; the result is valid on rank 0. The number of iterations is found by doubling, which also
/// warms everything up, and agreed by broadcast.
static inline double bench_measure(MPI_Comm comm, bench_body body, void* state, double seconds) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  double batch_seconds = seconds / BENCH_BATCHES, fastest = 1e30;
  long iterations = 1;
  int confirmed = 0;
  for (;;) {
    MPI_Barrier(comm);
    double start = bench_now();
    body(state, iterations);
    double spent = bench_now() - start;
    // A count that takes long enough is tried twice more and its best time believed: a single preemption must not
    // make the batches so short that they measure nothing but preemptions.
    if (spent < fastest) fastest = spent;
    long next = iterations;
    if (rank == 0) {
      if (fastest < 0.5 * batch_seconds) {
        double factor = fastest > 0 ? batch_seconds / fastest : 100;
        next = (long)((double)iterations * (factor > 8 ? 8 : factor < 2 ? 2 : factor));
      } else if (confirmed == 2) {
        next = -(long)(1.0 + (double)iterations * batch_seconds / fastest);
      }
    }
    MPI_Bcast(&next, 1, MPI_LONG, 0, comm);
    if (next < 0) {
      iterations = -next;
      break;
    }
    if (next == iterations) {
      confirmed++;
    } else {
      confirmed = 0;
      fastest = 1e30;
    }
    iterations = next;
  }
  double per_iteration[BENCH_BATCHES];
  for (int batch = 0; batch < BENCH_BATCHES; batch++) {
    MPI_Barrier(comm);
    double start = bench_now();
    double own_work = body(state, iterations);
    per_iteration[batch] = (bench_now() - start - own_work) / (double)iterations;
  }
  return bench_median(per_iteration, BENCH_BATCHES);
}

/// Binds the calling thread to one core, in blocks: unit `index` of `count` gets core index * cores / count of those
/// the machine lets this job use. With fewer cores than units neighbours share a core, so that the threads of one
/// rank share and their partners in the other rank are on other cores. A failure is ignored (a cpuset may forbid it).
void bench_pin(int index, int count);

#endif
