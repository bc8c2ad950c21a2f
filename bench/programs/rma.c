/// One-sided operations: from one or several origins to a target, by operation, synchronisation, memory and threads.
///
///   rma --op=put,get,accumulate,fetch_and_op,compare_and_swap --sync=lock_all|lock|fence|pscw
///       --window=allocate|create|alloc_mem --sizes=8,1048576 --ops=64 --ways=1|2 --target=waits|sleeps|computes|either
///       --threads=T --share=one|windows|endpoints --pin=none|block --bare=no|memcpy|cma --seconds=0.3
///
/// The last rank is the target of all others (alone: of itself); with --ways=2 two ranks are each other's. A *round* is
/// --ops operations and what completes them: a flush in an epoch that MPI_Win_lock_all opened before (lock_all), lock
/// and unlock of each round (lock), a fence, or start and complete. Each thread of each origin has its own piece of the
/// target's memory, at least 4 KiB from the next. Figures, for each operation and each size of one in bytes:
///
///   time/<op>/<size>       microseconds a round, of the slowest thread of the slowest origin
///   rate/<op>/<size>       million operations a second, of all threads and origins together
///   bandwidth/<op>/<size>  GB/s (10^9 bytes) of all together
///
/// --window=create makes windows of memory from malloc, alloc_mem of memory from MPI_Alloc_mem; allocate lets MPI choose.
/// --target says what the target does meanwhile: waits in MPI, sleeps outside it (one MPI_Iprobe a millisecond), or computes
/// in slices of 20 ms with one MPI_Iprobe between them, so that a library that needs the target's calls shows how long it
/// has to wait. either: measured waiting and sleeping, and the better is reported: what sleeps leaves its core to others,
/// but some libraries need its calls.
/// Threads share one window, or have windows or endpoints (where the library has them) of their own.
/// --bare=memcpy measures in the same run memcpy to and from memory that the target made and both map, --bare=cma one
/// process_vm_writev or process_vm_readv: `bare/<op>/<size>`, microseconds, to compare with a round of one put or get.
/// fetch_and_op and compare_and_swap take 8 bytes, at other sizes they are left out; accumulate sums doubles. What
/// arrived is checked to the last byte.
#include "bench.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef HEDDLE_BENCH_ENDPOINTS
#include <mpix.h>
#endif

enum Op { PUT, GET, ACCUMULATE, FETCH_AND_OP, COMPARE_AND_SWAP };
enum Sync { LOCK_ALL, LOCK, FENCE, PSCW };
enum Share { ONE, WINDOWS, ENDPOINTS };
enum Target { WAITS, SLEEPS, COMPUTES, EITHER };

struct Thread {
  pthread_t id;
  int index;
  MPI_Comm comm;  // of its window
  MPI_Win window;
  int target;      // rank in comm
  MPI_Aint at;     // of its piece of the target's memory
  char* memory;    // of its window, here
  char* source;    // what put and accumulate bring
  char* result;    // what get, fetch_and_op and compare_and_swap bring back
  MPI_Group origins, targets;  // for start and post
};

/// In memory that both map, past MPI: an origin tells a target that does not listen to MPI that it is done.
struct Board {
  atomic_long finished;  // batches, of all origins
  double started[];      // when each rank began its batch
};

static int rank, ranks, threads, ways, ops, is_origin, is_target, origins, do_pin, target_leaves;
static enum Op op;
static enum Sync sync_by;
static enum Share share;
static enum Target target_does;
static long size, iterations, rounds, batches;
static MPI_Aint piece;  // bytes of a thread's piece, and what keeps it apart from the next
static int stop;
static struct Thread* all;
static struct Board* board;
static pthread_barrier_t gate;
static MPI_Comm among_origins;

static int choose(int argc, char** argv, const char* name, const char* const* words) {
  const char* word = bench_option(argc, argv, name, words[0]);
  for (int i = 0; words[i]; i++)
    if (strcmp(word, words[i]) == 0) return i;
  fprintf(stderr, "--%s=%s is unknown\n", name, word);
  bench_fail("wrong option");
  return 0;
}

static void* get_memory(size_t bytes) {
  void* memory = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
  if (!memory) bench_fail("out of memory");
  return memset(memory, 0, bytes);
}

/// Byte `i` of the piece that thread `thread` of origin `origin` puts or gets; never 0, which means that nothing came.
static char pattern(int origin, int thread, long i) {
  return (char)(1 + (i * 7 + origin * 31 + thread * 13) % 251);
}

static void operate(struct Thread* t, int64_t round, int i) {
  static const int64_t one = 1;
  MPI_Aint at = t->at + (MPI_Aint)i * size;
  char* source = t->source + (long)i * size;
  char* result = t->result + (long)i * size;
  int bytes = (int)size, doubles = (int)(size / 8);
  switch (op) {
    case PUT: MPI_Put(source, bytes, MPI_BYTE, t->target, at, bytes, MPI_BYTE, t->window); break;
    case GET: MPI_Get(result, bytes, MPI_BYTE, t->target, at, bytes, MPI_BYTE, t->window); break;
    case ACCUMULATE:
      MPI_Accumulate(source, doubles, MPI_DOUBLE, t->target, at, doubles, MPI_DOUBLE, MPI_SUM, t->window);
      break;
    case FETCH_AND_OP: MPI_Fetch_and_op(&one, result, MPI_INT64_T, t->target, at, MPI_SUM, t->window); break;
    case COMPARE_AND_SWAP: {
      // Both stay as they are until the round is complete: the source has room for two each.
      int64_t* pair = (int64_t*)t->source + 2 * i;
      pair[0] = round;
      pair[1] = round + 1;
      MPI_Compare_and_swap(&pair[1], &pair[0], result, MPI_INT64_T, t->target, at, t->window);
      break;
    }
  }
}

/// A target outside MPI, until every origin has finished `batch` batches.
static void stay_away(long batch) {
  static volatile double sink = 1;
  while (atomic_load_explicit(&board->finished, memory_order_acquire) < batch * origins) {
    if (target_does == SLEEPS) {
      usleep(1000);
    } else {
      double end = bench_now() + 0.02;
      while (bench_now() < end && atomic_load_explicit(&board->finished, memory_order_acquire) < batch * origins)
        for (int i = 0; i < 1000; i++) sink = sink * 1.0000001 + 1e-9;
    }
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  }
}

static void work_once(struct Thread* t) {
  const long n = iterations;
  const int64_t before = rounds;
  if (sync_by == FENCE) MPI_Win_fence(MPI_MODE_NOPRECEDE, t->window);
  const int opens = sync_by == LOCK_ALL && is_origin && share != ONE;  // one epoch of one window is all threads': run_all
  if (opens) MPI_Win_lock_all(0, t->window);
  for (long i = 0; i < n; i++) {
    if (sync_by == PSCW && is_target) MPI_Win_post(t->origins, 0, t->window);
    if (is_origin) {
      if (sync_by == LOCK) MPI_Win_lock(MPI_LOCK_SHARED, t->target, 0, t->window);
      if (sync_by == PSCW) MPI_Win_start(t->targets, 0, t->window);
      for (int w = 0; w < ops; w++) operate(t, before + i, w);
      if (sync_by == LOCK_ALL) MPI_Win_flush(t->target, t->window);
      if (sync_by == LOCK) MPI_Win_unlock(t->target, t->window);
      if (sync_by == PSCW) MPI_Win_complete(t->window);
    } else if (sync_by != FENCE && sync_by != PSCW) {
      break;
    }
    if (sync_by == PSCW && is_target) MPI_Win_wait(t->window);
    if (sync_by == FENCE) MPI_Win_fence(0, t->window);
  }
  if (sync_by == FENCE) MPI_Win_fence(MPI_MODE_NOSUCCEED, t->window);
  if (opens) MPI_Win_unlock_all(t->window);
}

/// Threads of a rank side by side, the target's on the other half of the cores; on all of them if the target may leave them free, which
/// then is where it likes.
static void pin(int index) {
  int halves = ranks > 1 && !target_leaves;
  if (!do_pin || (target_leaves && !is_origin)) return;
  bench_pin((halves && rank == ranks - 1 ? threads : 0) + index, halves ? 2 * threads : threads);
}

static void* work(void* argument) {
  struct Thread* t = argument;
  pin(t->index);
  for (;;) {
    pthread_barrier_wait(&gate);
    if (stop) return NULL;
    work_once(t);
    pthread_barrier_wait(&gate);
  }
}

static double run_all(void* state, long n) {
  (void)state;
  const int parties = ways == 2 ? 2 : origins;
  const double started = bench_now();
  double before = 0;  // what others began with before this rank
  iterations = n;
  batches++;
  if (is_origin) board->started[rank] = started;
  const int opens = sync_by == LOCK_ALL && is_origin && share == ONE;
  if (opens) MPI_Win_lock_all(0, all[0].window);
  pthread_barrier_wait(&gate);
  work_once(&all[0]);
  pthread_barrier_wait(&gate);
  if (opens) MPI_Win_unlock_all(all[0].window);
  rounds += n;
  if (is_origin) atomic_fetch_add_explicit(&board->finished, 1, memory_order_release);
  if (!is_origin && target_does != WAITS) stay_away(batches);
  if (is_origin && parties > 1) {  // from the first that begins to the last that ends
    MPI_Barrier(among_origins);
    for (int i = 0; i < parties; i++)
      if (started - board->started[i] > before) before = started - board->started[i];
  }
  return -before;
}

/// Memory that all ranks of this host map, `bytes` long, made by the last rank, which touches it first.
static void* map_together(size_t bytes) {
  char name[64] = "";
  int file = -1, target = ranks - 1;
  if (rank == target) {
    snprintf(name, sizeof name, "/dev/shm/heddle-bench-rma-%ld", (long)getpid());
    file = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0) bench_fail("no shared memory in /dev/shm");
  }
  MPI_Bcast(name, sizeof name, MPI_CHAR, target, MPI_COMM_WORLD);
  if (rank != target) file = open(name, O_RDWR);
  void* memory = file < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) bench_fail("the ranks must be on one host");
  close(file);
  if (rank == target) memset(memory, 0, bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == target) unlink(name);
  return memory;
}

/// Makes the windows of `t` (its own, or of all) on its communicator, with `bytes` here.
static void make_window(struct Thread* t, const char* kind, MPI_Aint bytes) {
  if (strcmp(kind, "allocate") == 0) {
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, t->comm, &t->memory, &t->window);
  } else {
    if (strcmp(kind, "create") == 0)
      t->memory = get_memory((size_t)bytes);
    else if (strcmp(kind, "alloc_mem") == 0)
      MPI_Alloc_mem(bytes, MPI_INFO_NULL, &t->memory);
    else
      bench_fail("--window is allocate, create or alloc_mem");
    MPI_Win_create(t->memory, bytes, 1, MPI_INFO_NULL, t->comm, &t->window);
  }
}

static void free_window(struct Thread* t, const char* kind) {
  MPI_Win_free(&t->window);
  if (strcmp(kind, "create") == 0) free(t->memory);
  if (strcmp(kind, "alloc_mem") == 0) MPI_Free_mem(t->memory);
}

struct Making {
  struct Thread* thread;
  const char* kind;
  MPI_Aint bytes;  // 0: free it
};

static void* make_of_thread(void* argument) {
  struct Making* m = argument;
  if (m->bytes)
    make_window(m->thread, m->kind, m->bytes);
  else
    free_window(m->thread, m->kind);
  return NULL;
}

/// Makes (bytes > 0) or frees all windows. On endpoints that takes all threads at once.
static void make_windows(const char* kind, MPI_Aint bytes) {
  if (share == ENDPOINTS) {
    struct Making* making = malloc((size_t)threads * sizeof *making);
    pthread_t* makers = malloc((size_t)threads * sizeof *makers);
    for (int i = 0; i < threads; i++) {
      making[i] = (struct Making){&all[i], kind, bytes};
      pthread_create(&makers[i], NULL, make_of_thread, &making[i]);
    }
    for (int i = 0; i < threads; i++) pthread_join(makers[i], NULL);
    free(makers);
    free(making);
    return;
  }
  for (int i = 0; i < (share == ONE ? 1 : threads); i++) {
    if (bytes)
      make_window(&all[i], kind, bytes);
    else
      free_window(&all[i], kind);
  }
  for (int i = 1; i < threads && share == ONE; i++) {
    all[i].window = all[0].window;
    all[i].memory = all[0].memory;
  }
}

/// Where in its window thread `i` of origin `o` works.
static MPI_Aint place_of(int o, int i) { return piece * (share == ONE ? o * threads + i : o); }

/// Sets all buffers to what a measurement starts from. Every rank does it; a barrier must follow.
static void prepare(void) {
  const long bytes = (long)ops * size;
  rounds = 0;
  for (int i = 0; i < threads; i++) {
    struct Thread* t = &all[i];
    if (is_target) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, share == ENDPOINTS ? rank * threads + i : rank, 0, t->window);
      for (int o = 0; o < origins; o++)
        for (long k = 0; k < bytes; k++)
          t->memory[place_of(o, i) + k] = op == GET ? pattern(ways == 2 ? 1 - rank : o, i, k) : 0;
      MPI_Win_unlock(share == ENDPOINTS ? rank * threads + i : rank, t->window);
    }
    t->source = get_memory((size_t)bytes * (op == COMPARE_AND_SWAP ? 2 : 1));
    t->result = get_memory((size_t)bytes);
    if (op == PUT)
      for (long k = 0; k < bytes; k++) t->source[k] = pattern(rank, i, k);
    if (op == ACCUMULATE)
      for (long k = 0; k < bytes / 8; k++) ((double*)t->source)[k] = 1;
  }
}

static void check_piece(int origin, int i, const char* memory) {
  const long bytes = (long)ops * size;
  const char* wrong = NULL;
  if (op == PUT || op == GET) {
    for (long k = 0; k < bytes; k++)
      if (memory[k] != pattern(origin, i, k)) wrong = "what arrived differs from what was put or got";
  } else if (op == ACCUMULATE) {
    for (long k = 0; k < bytes / 8; k++)
      if (((const double*)memory)[k] != (double)rounds) wrong = "a sum is wrong";
  } else {
    for (long k = 0; k < ops; k++)
      if (((const int64_t*)memory)[k] != rounds) wrong = "a counter is wrong";
  }
  if (wrong) bench_fail(wrong);
}

/// Checks what arrived, after a barrier that follows the measurement.
static void verify(void) {
  for (int i = 0; i < threads; i++) {
    struct Thread* t = &all[i];
    if (is_target && op != GET) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, share == ENDPOINTS ? rank * threads + i : rank, 0, t->window);
      for (int o = 0; o < origins; o++) check_piece(ways == 2 ? 1 - rank : o, i, t->memory + place_of(o, i));
      MPI_Win_unlock(share == ENDPOINTS ? rank * threads + i : rank, t->window);
    }
    if (is_origin && op == GET) check_piece(rank, i, t->result);
    if (is_origin && (op == FETCH_AND_OP || op == COMPARE_AND_SWAP))
      for (int k = 0; k < ops; k++)
        if (((int64_t*)t->result)[k] != rounds - 1) bench_fail("what an atomic operation returned is wrong");
    free(t->source);
    free(t->result);
  }
}

// The bare mechanisms, between the same processes.
static char *bare_here, *bare_shared;
static struct iovec bare_there;
static pid_t bare_process;

static double bare_memcpy(void* state, long n) {
  (void)state;
  if (!is_origin) return 0;
  for (long i = 0; i < n; i++) {
    if (op == GET)
      memcpy(bare_here, bare_shared, (size_t)size);
    else
      memcpy(bare_shared, bare_here, (size_t)size);
    __asm__ volatile("" ::: "memory");  // every copy counts
  }
  return 0;
}

static double bare_cma(void* state, long n) {
  (void)state;
  if (!is_origin) return 0;
  struct iovec here = {bare_here, (size_t)size};
  for (long i = 0; i < n; i++) {
    ssize_t moved = op == GET ? process_vm_readv(bare_process, &here, 1, &bare_there, 1, 0)
                              : process_vm_writev(bare_process, &here, 1, &bare_there, 1, 0);
    if (moved != (ssize_t)size) bench_fail("the kernel does not copy between these processes");
  }
  return 0;
}

/// Seconds for one bare copy.
static double measure_bare(int by_kernel, double seconds) {
  long place[2];
  char* there = NULL;
  bare_here = get_memory((size_t)size);
  memset(bare_here, 1, (size_t)size);
  if (by_kernel) {
    there = get_memory((size_t)size);
    memset(there, 1, (size_t)size);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // refused where nothing has to be allowed
    place[0] = getpid();
    place[1] = (long)(intptr_t)there;
    MPI_Bcast(place, 2, MPI_LONG, ranks - 1, MPI_COMM_WORLD);
    bare_process = (pid_t)place[0];
    bare_there = (struct iovec){(void*)(intptr_t)place[1], (size_t)size};
  } else {
    bare_shared = map_together((size_t)size);
  }
  double once = bench_measure(MPI_COMM_WORLD, by_kernel ? bare_cma : bare_memcpy, NULL, seconds);
  MPI_Barrier(MPI_COMM_WORLD);  // the target must not leave before
  if (!by_kernel) munmap(bare_shared, (size_t)size);
  free(there);
  free(bare_here);
  return once;
}

static void make_threads(void) {
  MPI_Comm* endpoints = malloc((size_t)threads * sizeof *endpoints);
  all = calloc((size_t)threads, sizeof *all);
  if (share == ENDPOINTS) {
#ifdef HEDDLE_BENCH_ENDPOINTS
    MPIX_Comm_create_endpoints(MPI_COMM_WORLD, threads, MPI_INFO_NULL, endpoints);
#else
    bench_fail("this library has no endpoints");
#endif
  }
  for (int i = 0; i < threads; i++) {
    int target = ways == 2 ? 1 - rank : ranks - 1;
    all[i].index = i;
    all[i].comm = share == ENDPOINTS ? endpoints[i] : MPI_COMM_WORLD;
    all[i].target = share == ENDPOINTS ? target * threads + i : target;
    if (sync_by == PSCW) {
      MPI_Group world;
      int last[1] = {target}, range[1][3] = {{0, ranks > 1 ? ranks - 2 : 0, 1}};
      if (ways == 2) range[0][0] = range[0][1] = 1 - rank;
      MPI_Comm_group(MPI_COMM_WORLD, &world);
      MPI_Group_incl(world, 1, last, &all[i].targets);
      MPI_Group_range_incl(world, 1, range, &all[i].origins);
      MPI_Group_free(&world);
    }
  }
  free(endpoints);
}

static void report(const char* figure, const char* name, double value) {
  char key[96];
  snprintf(key, sizeof key, "%s/%s/%ld", figure, name, size);
  if (rank == 0) bench_report(key, value);
}

/// Seconds of a round.
static double measure_rounds(const char* kind, double seconds) {
  // All ranks have as much memory as a target: some peers know windows only that are alike.
  make_windows(kind, piece * origins * (share == ONE ? threads : 1));
  prepare();
  MPI_Barrier(MPI_COMM_WORLD);
  double once = bench_measure(MPI_COMM_WORLD, run_all, NULL, seconds);
  MPI_Barrier(MPI_COMM_WORLD);
  verify();
  MPI_Barrier(MPI_COMM_WORLD);
  make_windows(kind, 0);
  return once;
}

/// One operation at one size, on windows of its own.
static void measure(const char* name, const char* kind, double seconds, int bare) {
  const enum Target asked = target_does;
  if (asked == EITHER) target_does = WAITS;
  double once = measure_rounds(kind, seconds);
  if (asked == EITHER) {
    target_does = SLEEPS;
    double asleep = measure_rounds(kind, seconds);
    if (asleep < once) once = asleep;
    target_does = EITHER;
  }
  double at_once = (double)ops * threads * (ways == 2 ? 2 : origins);
  report("time", name, 1e6 * once);
  report("rate", name, 1e-6 * at_once / once);
  report("bandwidth", name, 1e-9 * at_once * (double)size / once);
  if (bare) report("bare", name, 1e6 * measure_bare(bare == 2, seconds));
}

/// Whether `name` is among the words of a comma separated list.
static int is_named(const char* list, const char* name) {
  size_t length = strlen(name);
  for (const char* at = list; (at = strstr(at, name)); at += length)
    if ((at == list || at[-1] == ',') && (at[length] == ',' || !at[length])) return 1;
  return 0;
}

int main(int argc, char** argv) {
  static const char* const op_names[] = {"put", "get", "accumulate", "fetch_and_op", "compare_and_swap", NULL};
  threads = (int)bench_option_long(argc, argv, "threads", 1);
  bench_init(&argc, &argv, threads > 1 ? "multiple" : "single");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char* list = bench_option(argc, argv, "op", "put");
  sync_by = (enum Sync)choose(argc, argv, "sync", (const char*[]){"lock_all", "lock", "fence", "pscw", NULL});
  share = (enum Share)choose(argc, argv, "share", (const char*[]){"one", "windows", "endpoints", NULL});
  target_does = (enum Target)choose(argc, argv, "target", (const char*[]){"waits", "sleeps", "computes", "either", NULL});
  int bare = choose(argc, argv, "bare", (const char*[]){"no", "memcpy", "cma", NULL});
  const char* kind = bench_option(argc, argv, "window", "allocate");
  const char* sizes = bench_option(argc, argv, "sizes", "8");
  double seconds = bench_option_double(argc, argv, "seconds", 0.3);
  ops = (int)bench_option_long(argc, argv, "ops", 1);
  ways = (int)bench_option_long(argc, argv, "ways", 1);
  do_pin = choose(argc, argv, "pin", (const char*[]){"none", "block", NULL});
  if (threads > 1 && sync_by != LOCK_ALL && share != WINDOWS)
    bench_fail("threads that share a window need --sync=lock_all; endpoints as well");
  if (ways == 2 && ranks != 2) bench_fail("both ways takes two ranks");
  if (target_does != WAITS && (ways == 2 || ranks == 1 || sync_by == FENCE || sync_by == PSCW))
    bench_fail("a target that is away takes no part: --ways=1 --sync=lock_all|lock, two ranks or more");
  target_leaves = target_does == SLEEPS || target_does == EITHER;
  is_origin = ways == 2 || ranks == 1 || rank < ranks - 1;
  is_target = ways == 2 || rank == ranks - 1;
  origins = ways == 2 || ranks == 1 ? 1 : ranks - 1;

  make_threads();
  board = map_together(sizeof *board + (size_t)ranks * sizeof *board->started);
  MPI_Comm_split(MPI_COMM_WORLD, is_origin, rank, &among_origins);
  pin(0);
  pthread_barrier_init(&gate, NULL, (unsigned)threads);
  for (int i = 1; i < threads; i++) pthread_create(&all[i].id, NULL, work, &all[i]);
  for (long next; (next = bench_next_number(&sizes)) >= 0;) {
    size = next;
    if (size == 0 || size % 8) bench_fail("sizes are multiples of 8");
    piece = (((MPI_Aint)ops * size + 4095) & ~(MPI_Aint)4095) + 4096;
    for (int i = 0; i < threads; i++) all[i].at = place_of(ways == 2 || ranks == 1 ? 0 : rank, i);
    for (int which = 0; op_names[which]; which++) {
      op = (enum Op)which;
      if (is_named(list, op_names[which]) && (size == 8 || (op != FETCH_AND_OP && op != COMPARE_AND_SWAP)))
        measure(op_names[which], kind, seconds, bare);
    }
  }
  stop = 1;
  if (threads > 1) pthread_barrier_wait(&gate);
  for (int i = 1; i < threads; i++) pthread_join(all[i].id, NULL);
  pthread_barrier_destroy(&gate);
  for (int i = 0; i < threads; i++) {
    if (sync_by == PSCW) {
      MPI_Group_free(&all[i].origins);
      MPI_Group_free(&all[i].targets);
    }
    if (share == ENDPOINTS) MPI_Comm_free(&all[i].comm);
  }
  free(all);
  MPI_Comm_free(&among_origins);
  MPI_Finalize();
  return 0;
}
