// Epochs, locks and flushes. Return an error code. Thread-safe as far as MPI lets threads share a window. \see MPI-5.0 §12.5
#pragma once

#include "rma/window.hpp"

namespace heddle::rma {

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
