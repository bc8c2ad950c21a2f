// Collective calls of one communicator take turns: two threads in them at once is an error with a name.
#pragma once

#include "core/comm.hpp"
#include "core/runtime.hpp"

namespace heddle::coll {

/// Marks that a thread is in a collective call of a communicator. The program must ensure that only one is at a time
/// (MPI-5.0 §6.14); one that does not would hang or mix up its data, and gets an error instead.
///
/// Cost: nothing while one thread at most can be inside the library (`runtime.threads`); else two loads and three stores, relaxed, of the cache line that collectives write
/// anyway; no read-modify-write. Two threads that enter within the few nanoseconds until a store is visible are detected when they
/// leave: a thread that finds another's mark then was not alone.
///
/// MPI_Start takes no turn. Persistent collectives are matched by their initializing calls, which do; they may be started in any
/// order, a different one on each rank (MPI-5.0 §6.13), so also by two threads at once or beside a collective call, and their messages
/// keep the tag of the initializing call. Refusing that would refuse correct programs; where
/// mpi_assert_strict_persistent_collective_ordering forbids it, such a start does no harm.
class Turn {
 public:
  Turn(Comm& comm, const char* name) noexcept : comm_(comm) {
    if (!runtime.threads.load(std::memory_order_relaxed)) return;
    const void* self = this_thread();
    // Relaxed throughout: the marks guard nothing, they are only compared.
    const void* there = comm.collective_thread.load(std::memory_order_relaxed);
    if (there) [[unlikely]] {
      if (there != self) refusal_ = taken(comm, name);
      return;  // the library's own collective within one of this thread
    }
    comm.collective_name.store(name, std::memory_order_relaxed);
    comm.collective_thread.store(self, std::memory_order_relaxed);
    entered_ = true;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// An error code if another thread was there first: nothing may be sent.
  [[nodiscard]] int refusal() const noexcept { return refusal_; }

  /// Ends the call. Returns `code`, or an error if another thread was in a collective call too.
  [[nodiscard]] int leave(const char* name, int code) noexcept {
    if (!entered_) return code;
    if (comm_.collective_thread.load(std::memory_order_relaxed) != this_thread()) [[unlikely]]
      return code ? code : taken(comm_, name);
    comm_.collective_thread.store(nullptr, std::memory_order_relaxed);
    return code;
  }

 private:
  /// Differs between the threads of the process that exist at the same time.
  static const void* this_thread() noexcept { return __builtin_thread_pointer(); }
  [[gnu::cold, gnu::noinline]] static int taken(const Comm& comm, const char* name) noexcept;

  Comm& comm_;
  int refusal_ = 0;
  bool entered_ = false;
};

}  // namespace heddle::coll
