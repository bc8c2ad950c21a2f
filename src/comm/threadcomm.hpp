// Thread communicators: one handle that stands, in each thread, for the rank that the thread has taken.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "core/comm.hpp"

namespace heddle {

/// The ranks of this process in a communicator of threads: endpoints, dealt out to the threads that start.
///
/// A handle of it is none of a `Comm`, so looking one up fails, and the slow path that would raise an error asks here first
/// (`comm_of_thread`): other communicators pay nothing for there being thread communicators.
struct Threadcomm : Object {
  static constexpr Kind object_kind = Kind::threadcomm;

  int count = 0;                    ///< of ranks in this process
  std::unique_ptr<Comm*[]> ranks;   ///< owned; each the endpoint of one thread
  std::uint64_t id = 0;             ///< never used again, unlike the object's memory

  std::mutex mutex;                 ///< guards what follows but for `rounds`
  int started = 0, finished = 0;    ///< threads in this round
  std::atomic<std::uint64_t> rounds{0};  ///< that are over: all threads have finished

  [[nodiscard]] std::uintptr_t predefined_handle() const noexcept { return 0; }
};

template <>
struct HandleTraits<Threadcomm> {
  using handle = MPI_Comm;
  static Threadcomm* builtin(std::uintptr_t) noexcept { return nullptr; }
};

/// MPIX_Threadcomm_init. Collective over `parent`.
int make_threadcomm(Comm& parent, int count, Threadcomm** out) noexcept;
int start_thread(Threadcomm& threads) noexcept;
int finish_thread(Threadcomm& threads) noexcept;
int free_threadcomm(Threadcomm& threads) noexcept;

/// What the handle stands for in this thread, or nullptr when it is no thread communicator's or the thread has no rank there.
Comm* comm_of_thread(MPI_Comm handle) noexcept;

/// Whose error handler gets the errors of the functions on `threads` itself (nullptr: the default one).
inline Comm* errors_of(Threadcomm* threads) noexcept { return threads && threads->count ? threads->ranks[0] : nullptr; }

}  // namespace heddle
