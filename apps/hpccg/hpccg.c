/// Conjugate gradients on a 27-point grid, as the Mantevo mini-application HPCCG has it, with four ways to exchange halos.
///
///   hpccg [--mode=all|messages|threads|put|get] [--size=N | --nx=X --ny=Y --nz=Z] [--iterations=K] [--repeat=R]
///         [--window=allocate|create]
///
/// Each rank has X × Y × Z points (weak scaling); the ranks are stacked along z, so that each has two neighbours at most.
/// The matrix has 27 on its diagonal and -1 for each of the neighbouring points, its rows are stored one after another;
/// the right-hand side makes every unknown 1. Each iteration needs one plane of points from each neighbour:
///
///   messages  one thread, nonblocking sends and receives
///   threads   a thread per neighbour, which sends and receives
///   put       a thread per neighbour puts the plane into the neighbour's window, flushes and tells it so
///   get       a thread per neighbour hears that the neighbour's plane is ready, and gets it
///
/// The windows are in an epoch of MPI_Win_lock_all from beginning to end. The sums of all ways are the same to the last bit;
/// --mode=all runs all of them and compares. Rank 0 prints for each `RESULT <mode>/<what> <value>`: total and exchange
/// (milliseconds an iteration, of the slowest rank), residual, error (largest difference from 1).
#define _GNU_SOURCE
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum Mode { MESSAGES, THREADS, PUT, GET, MODES };
static const char* const mode_names[] = {"messages", "threads", "put", "get", "all"};

struct Matrix {
  long rows;
  long* first;     // of each row; one more than rows
  double* values;
  int* columns;    // into a vector with its two halo planes
};

struct Neighbour {
  int rank;
  MPI_Comm comm;      // of this pair alone, so that two threads do not share one
  double* mine;       // the plane it needs
  double* halo;       // where its plane goes
  MPI_Aint there;     // my plane's halo in its window
  MPI_Aint its_plane; // in its window
  pthread_t thread;
};

static int rank, ranks, neighbours;
static long nx = 24, ny = 24, nz = 24, plane;
static enum Mode mode;
static struct Neighbour next_to[2];
static MPI_Win window;
static pthread_barrier_t gate;
static int stop;
static double exchange_time;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char* why) {
  fprintf(stderr, "hpccg: %s\n", why);
  MPI_Abort(MPI_COMM_WORLD, 1);
  exit(1);
}

static void* get_memory(size_t bytes) {
  void* memory = calloc(1, bytes);
  if (!memory) fail("out of memory: choose a smaller --size");
  return memory;
}

static struct Matrix make_matrix(double* right_hand_side) {
  struct Matrix a = {.rows = plane * nz};
  a.first = get_memory((size_t)(a.rows + 1) * sizeof *a.first);
  a.values = get_memory((size_t)a.rows * 27 * sizeof *a.values);
  a.columns = get_memory((size_t)a.rows * 27 * sizeof *a.columns);
  long entry = 0, row = 0;
  for (long z = 0; z < nz; z++)
    for (long y = 0; y < ny; y++)
      for (long x = 0; x < nx; x++) {
        double sum = 0;
        for (long dz = -1; dz <= 1; dz++)
          for (long dy = -1; dy <= 1; dy++)
            for (long dx = -1; dx <= 1; dx++) {
              const long global_z = rank * nz + z + dz;
              if (x + dx < 0 || x + dx >= nx || y + dy < 0 || y + dy >= ny || global_z < 0 || global_z >= ranks * nz) continue;
              a.values[entry] = dx == 0 && dy == 0 && dz == 0 ? 27 : -1;
              a.columns[entry] = (int)((z + dz + 1) * plane + (y + dy) * nx + x + dx);
              sum += a.values[entry++];
            }
        right_hand_side[row] = sum;
        a.first[++row] = entry;
      }
  return a;
}

/// result = a × v; v has its halos.
static void multiply(const struct Matrix* a, const double* v, double* result) {
  for (long row = 0; row < a->rows; row++) {
    double sum = 0;
    for (long k = a->first[row]; k < a->first[row + 1]; k++) sum += a->values[k] * v[a->columns[k]];
    result[row] = sum;
  }
}

static double dot(const double* a, const double* b, long n) {
  double mine = 0, all = 0;
  for (long i = 0; i < n; i++) mine += a[i] * b[i];
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

/// Both have come so far.
static void meet(struct Neighbour* n) {
  MPI_Sendrecv(NULL, 0, MPI_BYTE, n->rank, 1, NULL, 0, MPI_BYTE, n->rank, 1, n->comm, MPI_STATUS_IGNORE);
}

/// What the thread of a neighbour does in each exchange. Every rank's sum over all points, between two exchanges, keeps one iteration's
/// puts from the halos that another still reads, and its changes from the planes that another still gets.
static void exchange_with(struct Neighbour* n) {
  const int count = (int)plane;
  switch (mode) {
    case PUT:
      MPI_Put(n->mine, count, MPI_DOUBLE, n->rank, n->there, count, MPI_DOUBLE, window);
      MPI_Win_flush(n->rank, window);
      meet(n);
      break;
    case GET:
      meet(n);
      MPI_Get(n->halo, count, MPI_DOUBLE, n->rank, n->its_plane, count, MPI_DOUBLE, window);
      MPI_Win_flush(n->rank, window);
      break;
    default:
      MPI_Sendrecv(n->mine, count, MPI_DOUBLE, n->rank, 0, n->halo, count, MPI_DOUBLE, n->rank, 0, n->comm, MPI_STATUS_IGNORE);
  }
}

static void* work(void* argument) {
  for (;;) {
    pthread_barrier_wait(&gate);
    if (stop) return NULL;
    exchange_with(argument);
    pthread_barrier_wait(&gate);
  }
}

/// Fills the halos of the vector in the window.
static void exchange(void) {
  const double start = now();
  if (mode == MESSAGES) {
    MPI_Request requests[4];
    for (int i = 0; i < neighbours; i++) {
      struct Neighbour* n = &next_to[i];
      MPI_Irecv(n->halo, (int)plane, MPI_DOUBLE, n->rank, 0, n->comm, &requests[2 * i]);
      MPI_Isend(n->mine, (int)plane, MPI_DOUBLE, n->rank, 0, n->comm, &requests[2 * i + 1]);
    }
    MPI_Waitall(2 * neighbours, requests, MPI_STATUSES_IGNORE);
  } else if (neighbours > 0) {
    if (mode == GET) MPI_Win_sync(window);  // what this rank has stored, before others get it
    pthread_barrier_wait(&gate);
    exchange_with(&next_to[0]);
    pthread_barrier_wait(&gate);
    if (mode == PUT) MPI_Win_sync(window);  // what others have put, before this rank loads it
  }
  exchange_time += now() - start;
}

struct Outcome {
  double total, exchange;  // seconds an iteration
  double residual, error;
};

static struct Outcome solve(const struct Matrix* a, const double* b, double* p_with_halos, long iterations) {
  const long n = a->rows;
  double *p = p_with_halos + plane, *x = get_memory((size_t)n * sizeof *x), *r = get_memory((size_t)n * sizeof *r), *ap = get_memory((size_t)n * sizeof *ap);
  memset(p_with_halos, 0, (size_t)(n + 2 * plane) * sizeof *p);
  memcpy(r, b, (size_t)n * sizeof *r);  // x is 0
  exchange_time = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now();
  double squares = dot(r, r, n), before = 0;
  long done = 0;
  for (; done < iterations && squares > 0; done++) {
    const double beta = done ? squares / before : 0;
    for (long i = 0; i < n; i++) p[i] = r[i] + beta * p[i];
    exchange();
    multiply(a, p_with_halos, ap);
    const double alpha = squares / dot(p, ap, n);
    for (long i = 0; i < n; i++) {
      x[i] += alpha * p[i];
      r[i] -= alpha * ap[i];
    }
    before = squares;
    squares = dot(r, r, n);
  }
  double mine[3] = {(now() - start) / (double)(done ? done : 1), exchange_time / (double)(done ? done : 1), 0}, most[3];
  for (long i = 0; i < n; i++) mine[2] = fmax(mine[2], fabs(x[i] - 1));
  MPI_Allreduce(mine, most, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  free(x);
  free(r);
  free(ap);
  return (struct Outcome){most[0], most[1], sqrt(squares), most[2]};
}

static void make_neighbours(double* p_with_halos) {
  const long n = plane * nz;
  MPI_Comm pairs[2];  // pairs whose lower rank is even, and odd
  for (int i = 0; i < 2; i++) MPI_Comm_dup(MPI_COMM_WORLD, &pairs[i]);
  double* const p = p_with_halos + plane;
  const MPI_Aint bytes = sizeof(double);
  if (rank > 0)
    next_to[neighbours++] = (struct Neighbour){rank - 1, pairs[(rank - 1) % 2], p, p_with_halos, (plane + n) * bytes, n * bytes, 0};
  if (rank + 1 < ranks)
    next_to[neighbours++] = (struct Neighbour){rank + 1, pairs[rank % 2], p + n - plane, p + n, 0, plane * bytes, 0};
}

static const char* option(int argc, char** argv, const char* name, const char* otherwise) {
  const size_t length = strlen(name);
  for (int i = 1; i < argc; i++)
    if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=') return argv[i] + length + 1;
  return otherwise;
}

static long number(int argc, char** argv, const char* name, long otherwise) {
  const char* text = option(argc, argv, name, NULL);
  const long value = text ? strtol(text, NULL, 10) : otherwise;
  if (value < 1 || value > 100000000) fail("sizes and counts are positive numbers");
  return value;
}

int main(int argc, char** argv) {
  int provided, wanted = MODES;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE) fail("this library does not provide MPI_THREAD_MULTIPLE");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char* name = option(argc, argv, "--mode", "all");
  while (wanted >= 0 && strcmp(mode_names[wanted], name) != 0) wanted--;
  if (wanted < 0) fail("--mode is messages, threads, put, get or all");
  const long size = number(argc, argv, "--size", 24);
  nx = number(argc, argv, "--nx", size);
  ny = number(argc, argv, "--ny", size);
  nz = number(argc, argv, "--nz", size);
  const long iterations = number(argc, argv, "--iterations", 50), repeat = number(argc, argv, "--repeat", 1);
  plane = nx * ny;
  if (plane * (nz + 2) > INT32_MAX / 27) fail("more points than one rank may have");

  double* p_with_halos;
  const MPI_Aint bytes = plane * (nz + 2) * (MPI_Aint)sizeof(double);
  const int own_memory = strcmp(option(argc, argv, "--window", "allocate"), "create") == 0;
  if (own_memory)
    MPI_Win_create(p_with_halos = get_memory((size_t)bytes), bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  else
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &p_with_halos, &window);
  double* b = get_memory((size_t)(plane * nz) * sizeof *b);
  struct Matrix a = make_matrix(b);
  make_neighbours(p_with_halos);
  pthread_barrier_init(&gate, NULL, neighbours > 0 ? (unsigned)neighbours : 1);
  for (int i = 1; i < neighbours; i++) pthread_create(&next_to[i].thread, NULL, work, &next_to[i]);

  MPI_Win_lock_all(0, window);
  struct Outcome first = {0};
  int differ = 0, any = 0;
  for (int m = 0; m < MODES; m++) {
    if (wanted != MODES && wanted != m) continue;
    mode = (enum Mode)m;
    struct Outcome best = {0};
    for (long i = 0; i < repeat; i++) {
      const struct Outcome o = solve(&a, b, p_with_halos, iterations);
      if (i == 0 || o.total < best.total) best = o;
    }
    if (rank == 0)
      printf("RESULT %s/total %.6g\nRESULT %s/exchange %.6g\nRESULT %s/residual %.17g\nRESULT %s/error %.17g\n", mode_names[m], 1e3 * best.total, mode_names[m],
             1e3 * best.exchange, mode_names[m], best.residual, mode_names[m], best.error);
    if (!any++)
      first = best;
    else
      differ |= memcmp(&best.residual, &first.residual, sizeof(double)) != 0 || memcmp(&best.error, &first.error, sizeof(double)) != 0;
  }
  MPI_Win_unlock_all(window);
  if (differ) fail("the ways to exchange halos gave different residuals");
  if (!(first.error < 1)) fail("no convergence");

  stop = 1;
  if (neighbours > 1) {
    pthread_barrier_wait(&gate);
    pthread_join(next_to[1].thread, NULL);
  }
  pthread_barrier_destroy(&gate);
  MPI_Win_free(&window);
  if (own_memory) free(p_with_halos);
  free(b);
  free(a.first);
  free(a.values);
  free(a.columns);
  MPI_Finalize();
  return 0;
}
