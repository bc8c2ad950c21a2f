#include "transport/shm/heap.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "sys/arena.hpp"
#include "transport/shm/node.hpp"

namespace heddle::shm {
namespace {

struct Heap {
  sys::Arena arena;
  std::once_flag once;
  std::mutex mutex;                       ///< guards `ordinary`
  std::map<void*, std::size_t> ordinary;  ///< blocks that did not go into the region
};

Heap& heap() noexcept {
  static auto& made = *new Heap;  // never destroyed: programs free memory when they exit
  return made;
}

void start_arena() noexcept {
  if (region.mapped <= heap_offset) return;
  sys::Arena::Settings settings;
  settings.base = region.base + heap_offset;
  settings.bytes = region.mapped - heap_offset;
  settings.fd = region.fd;
  settings.file_offset = region.offset + heap_offset;
  settings.commit = sys::Arena::touching_can_fail(region.fd);
  heap().arena.start(settings);
  pthread_atfork(
      [] {
        heap().mutex.lock();
        heap().arena.before_fork();
      },
      [] {
        heap().arena.after_fork_in_parent();
        heap().mutex.unlock();
      },
      [] {
        heap().arena.after_fork_in_child();
        heap().mutex.unlock();
      });
}

}  // namespace

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  Heap& it = heap();
  std::call_once(it.once, start_arena);
  if (void* block = it.arena.allocate(bytes, alignment)) return block;
  void* block = nullptr;
  if (posix_memalign(&block, alignment < sizeof(void*) ? sizeof(void*) : alignment, bytes ? bytes : 1)) return nullptr;
  std::lock_guard lock(it.mutex);
  it.ordinary.emplace(block, bytes);
  return block;
}

bool deallocate(void* block, std::string& problem) noexcept {
  using Release = sys::Arena::Release;
  Heap& it = heap();
  switch (it.arena.release(block)) {
    case Release::done: return true;
    case Release::freed_before:
      problem = fmt::format("{} was freed before, or was never returned by MPI_Alloc_mem", block);
      return false;
    case Release::inside:
      problem = fmt::format("{} lies inside a block of MPI_Alloc_mem; pass the block's beginning", block);
      return false;
    case Release::foreign: break;
  }
  std::unique_lock lock(it.mutex);
  const bool known = it.ordinary.erase(block);
  lock.unlock();
  if (known) return std::free(block), true;
  problem = fmt::format("{} was not returned by MPI_Alloc_mem, or was freed before; memory of malloc goes to free", block);
  return false;
}

bool heap_in_use() noexcept { return heap().arena.bytes_in_use() > 0; }

}  // namespace heddle::shm
