// What this process knows of its job, and what of the library is in use: written when it starts (comm/runtime.hpp), read freely.
#pragma once

#include <mpi.h>
#include <pthread.h>

#include <atomic>

#include "transport/process.hpp"

namespace heddle {

namespace sys {
struct Bootstrap;
}

enum class Phase : unsigned char { before_init, running, finalized };

/// What is known once the job is known. Written by `start_runtime`: once, but for the level of thread support, which later sessions may raise
/// (and the first of a new life may lower).
struct Runtime {
  int rank = 0, size = 1;          ///< in MPI_COMM_WORLD
  int local_rank = 0, local_size = 1;
  int appnum = MPI_UNDEFINED, universe_size = MPI_UNDEFINED;  ///< MPI_UNDEFINED: the launcher does not say
  std::atomic<int> thread_level{MPI_THREAD_SINGLE};  ///< provided. Relaxed: any thread may ask at any time, and nothing else is read through it
  /// Several threads of the program may be inside the library together: MPI_THREAD_MULTIPLE, or a thread communicator. Set by `expect_threads`,
  /// cleared before the first user of a new life. Relaxed: the program itself orders its threads behind the call that set it.
  std::atomic<bool> threads{false};
  pthread_t main_thread{};         ///< that called MPI_Init or opened the first session
  ProcessIndex self = 0;           ///< this process; the processes of MPI_COMM_WORLD are 0..size-1
  ProcessName name{};              ///< and what it is called elsewhere
  std::atomic<Phase> world{Phase::before_init};  ///< release; pairs with world_phase
  std::atomic<int> users{0};       ///< the world and the open sessions. Release; pairs with is_running
};
[[gnu::visibility("hidden")]] extern Runtime runtime;  // hidden: reached without a look into the table of addresses

/// Where the world model (MPI_Init) stands.
inline Phase world_phase() noexcept { return runtime.world.load(std::memory_order_acquire); }
/// True while communication is possible: between MPI_Init and MPI_Finalize, or while a session is open.
inline bool is_running() noexcept { return runtime.users.load(std::memory_order_acquire) > 0; }

/// What the launcher said. \pre is_running()
const sys::Bootstrap& job() noexcept;
/// The same object, for who starts the library. Never destroyed: exit handlers may still ask.
sys::Bootstrap& job_to_fill() noexcept;

/// A number that is equal for exactly the processes of one node: this process'.
int own_node() noexcept;

}  // namespace heddle
