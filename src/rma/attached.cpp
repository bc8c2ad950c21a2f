#include "rma/attached.hpp"

#include <mpi.h>

#include <string>

#include "sys/log.hpp"
#include "transport/shm/heap.hpp"
#include "transport/shm/node.hpp"

namespace heddle::rma {
namespace {

using Range = AttachedMemory::Range;

// Readers look while the list changes: each word is read and written at once, and `changes` says whether they belong together.
std::uint64_t load(const std::uint64_t& word) noexcept { return __atomic_load_n(&word, __ATOMIC_RELAXED); }
void store(Range& to, Range range) noexcept {
  __atomic_store_n(&to.first, range.first, __ATOMIC_RELAXED);
  __atomic_store_n(&to.bytes, range.bytes, __ATOMIC_RELAXED);
}

Range* list_of(const AttachedMemory& memory) noexcept { return reinterpret_cast<Range*>(memory.ranges.load(std::memory_order_relaxed)); }

/// How many ranges begin at or before an address.
std::uint32_t ranges_until(const Range* list, std::uint32_t count, std::uint64_t at) noexcept {
  std::uint32_t low = 0;
  for (std::uint32_t high = count; low < high;) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (load(list[middle].first) <= at) low = middle + 1; else high = middle;
  }
  return low;
}

/// What changes the list. Release: who sees the end of it sees the list.
struct Change {
  explicit Change(AttachedMemory& memory) noexcept : memory_(memory) {
    memory_.changes.store(memory_.changes.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
  }
  ~Change() { memory_.changes.store(memory_.changes.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  AttachedMemory& memory_;
};

void give_back(Range* list) noexcept {
  std::string problem;
  if (list && !shm::deallocate(list, problem)) sys::fatal("freeing a window: %s", problem.c_str());
}

}  // namespace

bool AttachedMemory::search(const Range* list, std::uint32_t count, std::uint64_t at, std::uint64_t bytes) noexcept {
  for (std::uint32_t i = ranges_until(list, count, at); i > 0 && i <= count; ++i) {
    const std::uint64_t into = at - load(list[i - 1].first), length = load(list[i - 1].bytes);
    if (into >= length) return false;
    if (bytes <= length - into) return true;
    at += length - into;
    bytes -= length - into;
    if (i < count && load(list[i].first) != at) return false;
  }
  return false;
}

/// The old list stays for those who read it, until the window goes: all of them together are no larger than the last one.
bool AttachedMemory::grow() noexcept {
  const std::uint32_t wanted = capacity ? capacity * 2 : 64;
  // In front, a link to the list before.
  auto* block = static_cast<Range*>(shm::allocate((wanted + 1) * sizeof(Range), sync::cache_line));
  if (!block) return false;
  Range* const old = list_of(*this);
  block[0] = {reinterpret_cast<std::uintptr_t>(old), 0};
  const std::uint32_t used = count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < used; ++i) block[i + 1] = old[i];
  const std::uint64_t where = shm::heap_offset_of(block, (wanted + 1) * sizeof(Range));
  const Change change(*this);
  ranges.store(reinterpret_cast<std::uintptr_t>(block + 1), std::memory_order_relaxed);
  offset.store(where ? where + sizeof(Range) : 0, std::memory_order_relaxed);
  capacity = wanted;
  return true;
}

int AttachedMemory::add(std::uint64_t first, std::uint64_t bytes) noexcept {
  const std::uint32_t used = count.load(std::memory_order_relaxed);
  std::uint32_t place = ranges_until(list_of(*this), used, first);
  if (place > 0) {
    const Range& before = list_of(*this)[place - 1];
    if (first - before.first < before.bytes) return MPI_ERR_RMA_ATTACH;
  }
  if (place < used && list_of(*this)[place].first - first < bytes) return MPI_ERR_RMA_ATTACH;
  if (used == capacity && !grow()) return MPI_ERR_NO_MEM;
  Range* const list = list_of(*this);
  const Change change(*this);
  for (std::uint32_t i = used; i > place; --i) store(list[i], list[i - 1]);
  store(list[place], {first, bytes});
  count.store(used + 1, std::memory_order_relaxed);
  return MPI_SUCCESS;
}

bool AttachedMemory::remove(std::uint64_t first) noexcept {
  const std::uint32_t used = count.load(std::memory_order_relaxed);
  Range* const list = list_of(*this);
  const std::uint32_t place = ranges_until(list, used, first);
  if (place == 0 || list[place - 1].first != first) return false;
  const Change change(*this);
  for (std::uint32_t i = place; i < used; ++i) store(list[i - 1], list[i]);
  count.store(used - 1, std::memory_order_relaxed);
  return true;
}

void AttachedMemory::free_all() noexcept {
  for (Range* list = list_of(*this); list;) {
    Range* const block = list - 1;
    list = reinterpret_cast<Range*>(block->first);
    give_back(block);
  }
  ranges.store(0, std::memory_order_relaxed);
}

}  // namespace heddle::rma
