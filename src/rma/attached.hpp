// The memory attached to a rank's dynamic window, in shared memory, so that origins of its node look for themselves. \see MPI-5.0 §12.2.4
#pragma once

#include <atomic>
#include <cstdint>

#include "sync/cpu.hpp"

namespace heddle::rma {

/// A sorted list of disjoint ranges of the owner's addresses. One process changes it, one thread at a time; any number of processes read it
/// meanwhile and repeat what a change has disturbed. A search costs O(log n), a change moves what lies behind it.
struct AttachedMemory {
  struct Range {
    std::uint64_t first, bytes;
  };

  std::atomic<std::uint32_t> changes{0};  ///< odd during one
  std::atomic<std::uint32_t> count{0};
  std::atomic<std::uint64_t> ranges{0};   ///< the owner's address of the list
  std::atomic<std::uint64_t> offset{0};   ///< and where peers can map it; 0: they cannot
  std::uint32_t capacity = 0;             ///< the owner's

  /// MPI_SUCCESS, MPI_ERR_RMA_ATTACH (it overlaps another) or MPI_ERR_NO_MEM. \pre bytes > 0
  int add(std::uint64_t first, std::uint64_t bytes) noexcept;
  /// False: no range begins there.
  bool remove(std::uint64_t first) noexcept;
  /// Before the memory that this lies in goes.
  void free_all() noexcept;

  /// Whether [at, at+bytes) is attached, maybe in several ranges that lie side by side. Thread-safe. \param map (`ranges`, `offset`) gives the
  /// address of the list here
  template <typename Map>
  [[nodiscard]] bool holds(std::uint64_t at, std::uint64_t bytes, Map&& map) const noexcept {
    if (!bytes) return true;
    for (;;) {
      const std::uint32_t before = changes.load(std::memory_order_acquire);  // pairs with the end of a change
      if (!(before & 1)) {
        const auto* list = reinterpret_cast<const Range*>(map(ranges.load(std::memory_order_relaxed), offset.load(std::memory_order_relaxed)));
        const bool found = list && search(list, count.load(std::memory_order_relaxed), at, bytes);
        std::atomic_thread_fence(std::memory_order_acquire);
        if (changes.load(std::memory_order_relaxed) == before) return found;
      }
      sync::relax();
    }
  }

 private:
  static bool search(const Range* list, std::uint32_t count, std::uint64_t at, std::uint64_t bytes) noexcept;
  bool grow() noexcept;
};

}  // namespace heddle::rma
