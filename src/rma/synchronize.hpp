// Epochs, locks and flushes. Return an error code. Thread-safe as far as MPI lets threads share a window. \see MPI-5.0 §12.5
#pragma once

#include "rma/window.hpp"
#include "sync/thread_sanitizer.hpp"

namespace heddle::rma {

/// Orders what this rank stores into its windows and loads from them against operations of others, where a call is said to do so: they are loads and
/// stores of another process, or of the thread here that answers it.
inline void order_own_accesses() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  sync::goes_to_another_process();
  sync::heard_from_another_process();
}

int fence(Window& window, int assertion) noexcept;

int start(Window& window, Group& group, int assertion) noexcept;
int complete_access(Window& window) noexcept;
int post(Window& window, Group& group, int assertion) noexcept;
int wait_exposure(Window& window) noexcept;
int test_exposure(Window& window, int* flag) noexcept;

int lock(Window& window, int type, int rank, int assertion) noexcept;
int unlock(Window& window, int rank) noexcept;
int lock_all(Window& window, int assertion) noexcept;
int unlock_all(Window& window) noexcept;

/// `rank` all: of every target.
inline constexpr int every_target = -1;
int flush(Window& window, int rank, bool local) noexcept;

/// MPI_SUCCESS when no epoch is open, so that the window may be freed.
int check_closed(Window& window) noexcept;

/// The error of an operation on a target towards which nothing is open; or opens it, where MPI_Win_lock_all takes locks on demand.
[[gnu::cold, gnu::noinline]] int open_access(Window& window, Target& target, const char* function) noexcept;

}  // namespace heddle::rma
