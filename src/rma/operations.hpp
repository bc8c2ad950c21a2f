// Put, get and accumulate: arguments checked by the caller but for what only the target's size and the epochs decide. Return an error code.
// Thread-safe. \see MPI-5.0 §12.3
#pragma once

#include "core/op.hpp"
#include "rma/combine.hpp"
#include "rma/window.hpp"
#include "sys/copy.hpp"

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

/// The address here of what a put or get moves, if it is one block on both sides that is mapped, the target is open to access, and the block lies
/// in the window; else nullptr, whatever is the matter. One load each of the window's state and the target's. No lock, no atomic operation.
inline std::byte* direct(const Window& window, MPI_Count count, const Datatype& type, const Place& there) noexcept {
  if (static_cast<unsigned>(there.rank) >= static_cast<unsigned>(window.size)) return nullptr;
  const Target* const target = window.known(there.rank);
  if (!target || target->path != Path::mapped) return nullptr;
  // Relaxed: the calling thread has opened the epoch itself, or the program has ordered it behind the call that did.
  if (!((window.opened.load(std::memory_order_relaxed) | target->opened.load(std::memory_order_relaxed)) & may_access)) return nullptr;
  if (!type.contiguous || !there.type.contiguous) return nullptr;
  const std::uint64_t bytes = static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(type.size);
  const std::uint64_t at = static_cast<std::uint64_t>(there.displacement) * static_cast<std::uint64_t>(target->unit) + static_cast<std::uint64_t>(there.type.true_lb);
  if (static_cast<std::uint64_t>(there.count) * static_cast<std::uint64_t>(there.type.size) != bytes) return nullptr;
  // The first comparison keeps the product from overflowing into the window again.
  if (static_cast<std::uint64_t>(there.displacement) > target->size || at > target->size || bytes > target->size - at) return nullptr;
  return reinterpret_cast<std::byte*>(target->base + at);
}

inline int put(Window& window, const Buffer& here, const Place& there) noexcept {
  if (std::byte* to = direct(window, here.count, *here.type, there)) [[likely]] return sys::copy_bytes(to, here.data(), here.bytes()), MPI_SUCCESS;
  return put_anywhere(window, here, there, nullptr, "MPI_Put");
}

inline int get(Window& window, const Buffer& here, const Place& there) noexcept {
  if (const std::byte* from = direct(window, here.count, *here.type, there)) [[likely]] return sys::copy_bytes(here.data(), from, here.bytes()), MPI_SUCCESS;
  return get_anywhere(window, here, there, nullptr, "MPI_Get");
}

}  // namespace heddle::rma
