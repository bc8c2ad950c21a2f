// What this process knows of its job and how it locks: written once when the library starts (core/runtime.hpp), read freely.
#pragma once

#include <mpi.h>
#include <pthread.h>

#include "transport/address.hpp"

namespace heddle {

/// What is known once the job is known. Written once by `start_runtime`, read freely.
struct Runtime {
  int rank = 0, size = 1;          ///< in MPI_COMM_WORLD
  int local_rank = 0, local_size = 1;
  int appnum = MPI_UNDEFINED, universe_size = MPI_UNDEFINED;  ///< MPI_UNDEFINED: the launcher does not say
  int thread_level = MPI_THREAD_SINGLE;  ///< provided
  bool threads = false;            ///< MPI_THREAD_MULTIPLE
  bool locks = false;              ///< VCIs are locked: with `threads`, or when the library has a thread of its own
  pthread_t main_thread{};         ///< that called MPI_Init or opened the first session
  ProcessIndex self = 0;           ///< this process; the processes of MPI_COMM_WORLD are 0..size-1
};
[[gnu::visibility("hidden")]] extern Runtime runtime;  // hidden: reached without a look into the table of addresses

}  // namespace heddle
