// Preloaded into an MPI program, runs its `main` in several threads of one process, each of which is a rank: an endpoint that stands
// for MPI_COMM_WORLD in whatever that thread, and the threads it starts, call. So a test of processes becomes one of endpoints.
//
// HEDDLE_TEST_ENDPOINTS=R: the ranks in all, dealt out evenly to the processes that mpiexec starts. Without it nothing happens.
// HEDDLE_TEST_WORLD: what stands for MPI_COMM_WORLD: `endpoints`, `streams` (a communicator with a stream of each endpoint's own) or
// `threads` (a thread communicator; threads that a rank starts are nobody then).
//
// A program must not keep one rank's state in global variables (thread_local ones are the rank's, but for threads it starts).
// What stays the process's: keyvals, error classes, sessions, predefined attributes.
#include "world.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <mpix.h>

thread_local Endpoint* endpoint = nullptr;

namespace {

using Main = int (*)(int, char**, char**);

pthread_barrier_t all_ranks;  // of this process
std::vector<Endpoint> ranks;
std::vector<MPI_Comm> worlds;
enum class Kind { endpoints, streams, threads } kind = Kind::endpoints;
MPI_Comm threadcomm = MPI_COMM_NULL;

struct {
  Main main;
  int argc;
  char** argv;
} program;

int number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

int run_rank(Endpoint& rank) {
  endpoint = &rank;
  // Each has arguments of its own, for MPI_Init may change them.
  std::vector<char*> argv(program.argv, program.argv + program.argc + 1);
  return program.main(program.argc, argv.data(), environ);
}

int run_ranks(int argc, char** argv, char**) {
  program.argc = argc;
  program.argv = argv;
  const int processes = number("PMI_SIZE", 1), process = number("PMI_RANK", 0), total = number("HEDDLE_TEST_ENDPOINTS", 1);
  const int count = total / processes + (process < total % processes);
  if (count < 1) {
    std::fprintf(stderr, "%d ranks are too few for %d processes\n", total, processes);
    return 1;
  }
  if (const char* name = std::getenv("HEDDLE_TEST_WORLD"))
    kind = !std::strcmp(name, "streams") ? Kind::streams : !std::strcmp(name, "threads") ? Kind::threads : Kind::endpoints;
  ranks.resize(static_cast<std::size_t>(count));
  worlds.resize(ranks.size(), MPI_COMM_NULL);
  pthread_barrier_init(&all_ranks, nullptr, static_cast<unsigned>(count));
  for (int i = 0; i < count; ++i) ranks[static_cast<std::size_t>(i)].index = i;
  std::vector<pthread_t> threads(ranks.size());
  const auto body = [](void* rank) -> void* {
    return reinterpret_cast<void*>(static_cast<std::intptr_t>(run_rank(*static_cast<Endpoint*>(rank))));
  };
  for (std::size_t i = 1; i < ranks.size(); ++i)
    if (pthread_create(&threads[i], nullptr, body, &ranks[i])) return 1;
  std::intptr_t status = run_rank(ranks[0]);
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    void* other = nullptr;
    pthread_join(threads[i], &other);
    if (!status) status = reinterpret_cast<std::intptr_t>(other);
  }
  return static_cast<int>(status);
}

template <typename F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

// What a thread inherits of the one that starts it.
struct Start {
  void* (*body)(void*);
  void* argument;
  Endpoint* endpoint;
};

void* run_thread(void* given) {
  const std::unique_ptr<Start> start(static_cast<Start*>(given));
  endpoint = start->endpoint;
  return start->body(start->argument);
}

int start_mpi(int required, int* provided) {
  if (endpoint->started) return PMPI_Init_thread(nullptr, nullptr, required, provided);
  int code = MPI_SUCCESS;
  pthread_barrier_wait(&all_ranks);
  if (endpoint->index == 0) {
    int level = 0;
    code = PMPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
    const auto count = static_cast<int>(ranks.size());
    if (!code)
      code = kind == Kind::threads ? MPIX_Threadcomm_init(MPI_COMM_WORLD, count, &threadcomm)
                                   : MPIX_Comm_create_endpoints(MPI_COMM_WORLD, count, MPI_INFO_NULL, worlds.data());
  }
  pthread_barrier_wait(&all_ranks);
  if (code) return code;
  if (provided) *provided = MPI_THREAD_MULTIPLE;
  endpoint->world = worlds[static_cast<std::size_t>(endpoint->index)];
  if (kind == Kind::threads) {
    endpoint->world = threadcomm;
    MPIX_Threadcomm_start(threadcomm);
  } else if (kind == Kind::streams) {
    MPI_Comm parent = endpoint->world;
    MPIX_Stream_create(MPI_INFO_NULL, &endpoint->stream);
    MPIX_Stream_comm_create(parent, endpoint->stream, &endpoint->world);
    PMPI_Comm_free(&parent);
  }
  int rank = -1;
  PMPI_Comm_rank(endpoint->world, &rank);
  PMPI_Comm_split(endpoint->world, rank, 0, &endpoint->self);
  PMPI_Comm_set_name(endpoint->world, "MPI_COMM_WORLD");
  PMPI_Comm_set_name(endpoint->self, "MPI_COMM_SELF");
  endpoint->started = true;
  return MPI_SUCCESS;
}

bool is_predefined(int keyval) { return keyval >= MPI_TAG_UB && keyval <= MPI_UNIVERSE_SIZE; }

}  // namespace

extern "C" {

int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(), void (*rtld_fini)(), void* stack_end) {
  program.main = main;
  const auto real = next<decltype(&__libc_start_main)>("__libc_start_main");
  return real(std::getenv("HEDDLE_TEST_ENDPOINTS") ? run_ranks : main, argc, argv, init, fini, rtld_fini, stack_end);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  static const auto real = next<decltype(&pthread_create)>("pthread_create");
  auto start = std::make_unique<Start>(Start{body, argument, endpoint});
  const int code = real(thread, attributes, run_thread, start.get());
  if (!code) (void)start.release();
  return code;
}

int MPI_Init(int* argc, char*** argv) { return endpoint ? start_mpi(MPI_THREAD_SINGLE, nullptr) : PMPI_Init(argc, argv); }

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return endpoint ? start_mpi(required, provided) : PMPI_Init_thread(argc, argv, required, provided);
}

int MPI_Finalize() {
  if (!endpoint || !endpoint->started || endpoint->ended) return PMPI_Finalize();
  // As MPI_Finalize does: first what hangs on MPI_COMM_SELF.
  PMPI_Comm_free(&endpoint->self);
  if (kind == Kind::threads) MPIX_Threadcomm_finish(threadcomm);
  else PMPI_Comm_free(&endpoint->world);
  if (kind == Kind::streams) MPIX_Stream_free(&endpoint->stream);
  pthread_barrier_wait(&all_ranks);
  int code = MPI_SUCCESS;
  if (endpoint->index == 0) {
    if (kind == Kind::threads) MPIX_Threadcomm_free(&threadcomm);
    code = PMPI_Finalize();
  }
  pthread_barrier_wait(&all_ranks);
  endpoint->ended = true;
  return code;
}

int MPI_Initialized(int* flag) {
  if (!endpoint) return PMPI_Initialized(flag);
  *flag = endpoint->started;
  return MPI_SUCCESS;
}

int MPI_Finalized(int* flag) {
  if (!endpoint) return PMPI_Finalized(flag);
  *flag = endpoint->ended;
  return MPI_SUCCESS;
}

int MPI_Comm_get_attr(MPI_Comm comm, int keyval, void* value, int* flag) {
  return PMPI_Comm_get_attr(is_predefined(keyval) ? comm : own(comm), keyval, value, flag);
}

int MPI_Attr_get(MPI_Comm comm, int keyval, void* value, int* flag) {
  return PMPI_Attr_get(is_predefined(keyval) ? comm : own(comm), keyval, value, flag);
}

// The process has one buffer for buffered sends; a rank that is an endpoint uses its communicator's.
int MPI_Buffer_attach_c(void* buffer, MPI_Count size) {
  if (!endpoint) return PMPI_Buffer_attach_c(buffer, size);
  if (const int code = PMPI_Comm_attach_buffer_c(endpoint->self, MPI_BUFFER_AUTOMATIC, 0)) return code;
  return PMPI_Comm_attach_buffer_c(endpoint->world, buffer, size);
}

int MPI_Buffer_detach_c(void* buffer, MPI_Count* size) {
  if (!endpoint) return PMPI_Buffer_detach_c(buffer, size);
  void* automatic = nullptr;
  MPI_Count none = 0;
  if (const int code = PMPI_Comm_detach_buffer_c(endpoint->self, &automatic, &none)) return code;
  return PMPI_Comm_detach_buffer_c(endpoint->world, buffer, size);
}

int MPI_Buffer_attach(void* buffer, int size) { return MPI_Buffer_attach_c(buffer, size); }

int MPI_Buffer_detach(void* buffer, int* size) {
  MPI_Count large = 0;
  const int code = MPI_Buffer_detach_c(buffer, &large);
  *size = static_cast<int>(large);
  return code;
}

// Errors that belong to no communicator go to the process's MPI_COMM_SELF.
int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) {
  if (own(comm) != comm)
    if (const int code = PMPI_Comm_set_errhandler(comm, handler)) return code;
  return PMPI_Comm_set_errhandler(own(comm), handler);
}

}  // extern "C"
