// Put, get and accumulate: arguments checked by the caller but for what only the target's size and the epochs decide. Return an error code.
// Thread-safe. \see MPI-5.0 §12.3
#pragma once

#include "core/op.hpp"
#include "rma/combine.hpp"
#include "rma/window.hpp"

namespace heddle::rma {

/// The target's side of an operation.
struct Place {
  int rank;
  MPI_Aint displacement;
  MPI_Count count;
  Datatype& type;
};

/// `request`, if not null, is set to one that completes with the operation at this end. `name` is that of the MPI function.
int put_anywhere(Window& window, const Buffer& here, const Place& there, Request** request, const char* name) noexcept;
int get_anywhere(Window& window, const Buffer& here, const Place& there, Request** request, const char* name) noexcept;

/// \param result nullptr: what was there is not wanted
int accumulate(Window& window, const Buffer& here, const Place& there, const Op& op, const Buffer* result, Request** request, const char* name) noexcept;
int compare_and_swap(Window& window, const void* value, const void* compare, void* result, const Place& there) noexcept;

/// The address here of the target's block of `bytes` bytes, if it is one that is mapped, the target is open to access, and the block lies in the
/// window; else nullptr, whatever is the matter. One load each of the window's state and the target's. No lock, no atomic operation.
/// \pre 0 <= rank < window.size, or MPI_PROC_NULL
[[gnu::always_inline]] inline std::byte* direct(const Target* target, const Window& window, MPI_Aint displacement, std::uint64_t bytes, MPI_Count count,
                                                const Datatype& type) noexcept {
  if (!target || target->path != Path::mapped) return nullptr;
  // Relaxed: the calling thread has opened the epoch itself, or the program has ordered it behind the call that did. Acquire pairs with
  // open_access: another thread may have taken the target's lock on demand.
  if (!((window.opened.load(std::memory_order_relaxed) | target->opened.load(std::memory_order_acquire)) & may_access)) return nullptr;
  if (!type.contiguous || static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(type.size) != bytes) return nullptr;
  std::uint64_t at;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(displacement), static_cast<std::uint64_t>(target->unit), &at)) return nullptr;
  at += static_cast<std::uint64_t>(type.true_lb);
  if (at > target->size || bytes > target->size - at) return nullptr;
  return reinterpret_cast<std::byte*>(target->base + at);
}

/// The address in the target's process of what is mapped at `here`. \pre the target's path is mapped
inline std::uint64_t owners_address(const Target& target, const std::byte* here) noexcept {
  return reinterpret_cast<std::uintptr_t>(here) + (target.exposure->base - target.base);
}

/// The target of a rank, if it was used before; nullptr for MPI_PROC_NULL too.
inline Target* target_if_known(const Window& window, int rank) noexcept { return static_cast<unsigned>(rank) < static_cast<unsigned>(window.size) ? window.known(rank) : nullptr; }

}  // namespace heddle::rma
