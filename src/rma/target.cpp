// Targets: how this rank reaches another one's memory, found out when it is first used.
#include <mutex>
#include <new>
#include <string>

#include "core/runtime.hpp"
#include "rma/create.hpp"
#include "rma/messages.hpp"
#include "rma/stripes.hpp"
#include "sys/params.hpp"
#include "transport/shm/node.hpp"

namespace heddle::rma {
namespace {

HEDDLE_PARAM_CHOICE(path, "HEDDLE_RMA",
                    "how one-sided operations reach other processes. auto: loads and stores where memory can be mapped, else the kernel's copy (CMA), else the network's writes and "
                    "reads, else messages; "
                    "cma, am: nothing faster than the kernel's copy, than messages (for testing them)",
                    "auto", "cma", "am");

std::mutex opening;  // rare: once for each target

/// The target's exposure in shared memory; nullptr: it is on another node, or its shared memory cannot be mapped.
Exposure* find_exposure(const Window& window, int rank, ProcessIndex process) noexcept {
  if (rank == window.rank) return window.exposure;
  if (process != runtime.self && path_policy() == PathPolicy::messages) return nullptr;
  const DirectoryEntry* entry = find_entry(window, rank);
  return entry ? reinterpret_cast<Exposure*>(map_of(process, entry->exposure, entry->exposure_offset)) : nullptr;
}

/// The way to a target whose exposure is known.
void choose_path(const Window& window, Target& target, const Exposure& shown) noexcept {
  target.base = shown.base;
  if (target.process == runtime.self) {
    if (window.flavor != MPI_WIN_FLAVOR_DYNAMIC) target.path = Path::mapped;  // else each operation looks what is attached
    target.stripes = own_stripes();
    return;
  }
  target.stripes = reinterpret_cast<sync::StripeLocks*>(map_of(target.process, 0, shown.stripes));
  if (!target.stripes) return;  // then accumulates are the target's to do, and so the rest
  std::byte* mapped = nullptr;
  if (path_policy() == PathPolicy::fastest)
    mapped = window.flavor == MPI_WIN_FLAVOR_SHARED ? segment_of(window, target.rank) : map_of(target.process, 0, shown.offset);
  if (mapped || !shown.size) {
    target.path = Path::mapped;
    target.base = reinterpret_cast<std::uintptr_t>(mapped);
  } else if (shm::find(target.process)->cma_works()) {
    target.path = Path::copied;
  }
}

}  // namespace

PathPolicy path_policy() noexcept { return static_cast<PathPolicy>(path.value()); }

Target* open_target(Window& window, int rank) noexcept {
  std::unique_lock lock(opening);
  if (Target* known = window.known(rank)) return known;
  auto& chunk = window.chunks[rank / Window::targets_per_chunk];
  if (!chunk.load(std::memory_order_relaxed)) {
    auto* made = new (std::nothrow) std::atomic<Target*>[Window::targets_per_chunk]{};
    if (!made) return nullptr;
    chunk.store(made, std::memory_order_release);  // pairs with Window::known
  }
  lock.unlock();  // the target may have to be asked

  auto* target = new (std::nothrow) Target;
  if (!target) return nullptr;
  const Address to = window.comm->address(rank);
  target->rank = rank;
  target->process = to.process;
  target->lane = to.lane;
  target->exposure = find_exposure(window, rank, to.process);
  if (target->exposure) {
    target->size = target->exposure->size;
    target->unit = target->exposure->unit;
    target->window = target->exposure->window;
    choose_path(window, *target, *target->exposure);
  } else {
    ask_target(window, *target);
  }

  lock.lock();
  std::atomic<Target*>& slot = chunk.load(std::memory_order_relaxed)[rank % Window::targets_per_chunk];
  if (Target* other = slot.load(std::memory_order_relaxed)) {  // another thread was faster
    delete target;
    return other;
  }
  slot.store(target, std::memory_order_release);  // pairs with Window::known
  return target;
}

}  // namespace heddle::rma
