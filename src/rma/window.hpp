// The window: memory that the ranks of a communicator open to each other's put, get and accumulate. \see MPI-5.0 §12.2
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/attribute.hpp"
#include "core/comm.hpp"
#include "core/errhandler.hpp"
#include "rma/attached.hpp"
#include "rma/locks.hpp"
#include "sync/stripe_lock.hpp"
#include "sys/handle.hpp"
#include "transport/net/region.hpp"
#include "transport/shm/node.hpp"

namespace heddle {

struct Info;
struct Request;

namespace rma {

/// What a rank shows of its window to the processes of its node, in shared memory; others ask for it (rma/messages.hpp).
struct Exposure {
  std::uint64_t base;         ///< the owner's address of displacement 0; 0 in a dynamic window
  std::uint64_t size;         ///< bytes; a dynamic window has all of memory
  std::int64_t unit;          ///< bytes of a displacement
  std::uint64_t offset;       ///< of `base` in the owner's shared memory (shm::heap_offset_of); 0: it lies elsewhere
  std::uint64_t window;       ///< the owner's Window
  std::uint64_t stripes;      ///< offset of the owner's stripe locks
  shm::Mapping mapping;       ///< where the owner has what others can map: of dynamic windows any address may come
  AttachedMemory attached;    ///< of a dynamic window. The owner changes it under Window::mutex
  WindowLock lock;  ///< of this rank: MPI_Win_lock
  WindowLock all;   ///< of the window, in the exposure of rank 0

  [[nodiscard]] WindowLock& lock_of(LockKind kind) noexcept { return kind == LockKind::shared || kind == LockKind::alone ? lock : all; }
};

/// How bytes get to a target.
enum class Path : std::uint8_t {
  mapped,    ///< loads and stores
  copied,    ///< the kernel copies between address spaces (CMA)
  messages,  ///< records to a VCI of the target
};

/// What an origin has opened towards a target, as bits. None: it may not be accessed.
enum Epoch : std::uint8_t {
  opened_by_fence = 1,
  opened_by_lock_all = 2,
  opened_by_start = 4,
  opened_by_lock = 8,
  locked_alone = 16,       ///< MPI_LOCK_EXCLUSIVE
  unchecked = 32,          ///< MPI_MODE_NOCHECK: no lock was taken
  locked_on_demand = 64,   ///< MPI_Win_lock_all takes the lock of a target at the first operation on it
};
/// Any of these bits lets an operation pass.
inline constexpr unsigned may_access = opened_by_fence | opened_by_lock_all | opened_by_start | opened_by_lock;

/// A rank of the window as this one sees it: made when it is first used, kept until the window is freed.
///
/// `opened` and `stale` change in calls that the program orders against operations on this target; the rest does not change.
struct alignas(64) Target {
  std::uint64_t base = 0;  ///< of displacement 0: here (mapped), else the target's own address
  std::uint64_t size = 0;
  std::int64_t unit = 1;
  Exposure* exposure = nullptr;  ///< in shared memory; nullptr: none, as of a process of another node
  union {
    sync::StripeLocks* stripes = nullptr;  ///< with an exposure: the stripe locks of the target's process; nullptr where `path` is messages
    const net::RemoteRegion* region;       ///< without: what the network can write and read; nullptr: nothing. Owned
  };
  std::uint64_t window = 0;      ///< the target's Window
  ProcessIndex process = 0;
  std::int32_t rank = 0;
  Lane lane{};               ///< where the target receives what must keep its order
  Path path = Path::messages;
  std::atomic<std::uint8_t> opened{0};

  Target() = default;
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  ~Target() {
    if (!exposure) delete region;
  }
};
static_assert(sizeof(Target) == 64);

/// What a rank tells the others of its node (rma/create.hpp).
struct DirectoryEntry;

}  // namespace rma

/// One window as seen by one of its ranks.
///
/// What describes it is immutable after creation. Threads share a window: operations read it without a lock; `opened` is atomic.
struct Window : Object {
  static constexpr Kind object_kind = Kind::win;

  Comm* comm = nullptr;  ///< owned: its members, with a message space of their own
  int rank = 0, size = 0;
  int flavor = MPI_WIN_FLAVOR_CREATE;
  void* base = nullptr;
  MPI_Aint bytes = 0;
  MPI_Aint unit = 1;
  int shown_unit = 1;  ///< the same, for MPI_WIN_DISP_UNIT
  int model = MPI_WIN_UNIFIED;
  bool ordered = true;       ///< accumulates of this origin arrive in order (info accumulate_ordering)
  bool no_locks = false;     ///< the program promised (info no_locks)
  bool owns_memory = false;  ///< of MPI_Win_allocate, and of a shared window at the rank that made it
  net::Region region;        ///< the memory, for ranks of other nodes; empty where it is not shown to the network. Of the VCI of the window's lane
  bool served = false;       ///< this process has a thread that answers messages (acquire_server)

  std::atomic<std::uint8_t> opened{0};  ///< towards all targets: bits of Epoch
  std::atomic<int> locked_targets{0};   ///< how many MPI_Win_lock holds
  std::atomic<int> alone{0};            ///< how many of these alone
  std::atomic<std::uint64_t> touched{0};  ///< VCIs (by index modulo 64) from which records went out: flush visits them

  std::atomic<std::atomic<rma::Target*>*>* chunks = nullptr;  ///< by rank, in chunks of `targets_per_chunk`
  rma::Exposure* exposure = nullptr;    ///< this rank's; in shared memory if that can be
  const rma::DirectoryEntry* entries = nullptr;  ///< of the ranks of this node, by rank; in shared memory, or this process's own
  int entry_count = 0;
  void* directory_block = nullptr;          ///< the block to free, at the rank that made it
  void* shared_block = nullptr;         ///< the memory of a shared window, at the rank that made it

  // Generalized active target synchronization.
  std::mutex epochs;               ///< guards what follows
  Group* started = nullptr;        ///< of MPI_Win_start, owned
  Group* posted = nullptr;         ///< of MPI_Win_post, owned
  Request** completions = nullptr;  ///< one for each rank of `posted`; null ones have come
  int completions_left = 0;

  ErrhandlerSlot errhandler;  ///< empty: MPI_ERRORS_ARE_FATAL
  std::mutex mutex;           ///< guards what follows, and changes of what is attached
  char name[MPI_MAX_OBJECT_NAME] = {};
  Info* info = nullptr;       ///< owned: hints that the library knows
  AttributeMap attributes;

  static constexpr int targets_per_chunk = 256;

  Window() = default;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window();

  [[nodiscard]] std::uintptr_t predefined_handle() const noexcept { return 0; }

  /// The target if it was used before, else nullptr. \pre 0 <= rank < size
  [[nodiscard]] rma::Target* known(int target) const noexcept {
    // Acquires pair with open_target: the target is whole.
    const auto rank = static_cast<unsigned>(target);
    const auto* chunk = chunks[rank / targets_per_chunk].load(std::memory_order_acquire);
    return chunk ? chunk[rank % targets_per_chunk].load(std::memory_order_acquire) : nullptr;
  }
};

template <>
struct HandleTraits<Window> {
  using handle = MPI_Win;
  static Window* builtin(std::uintptr_t) noexcept { return nullptr; }
};

inline AttributeOwner attributes_of(Window& window) noexcept {
  return {KeyvalKind::win, to_handle(&window), window.attributes, window.mutex};
}

/// Gives `code` to the window's error handler and returns what MPI function `function` returns.
[[gnu::cold, gnu::noinline]] int raise(Window* window, int code, const char* function) noexcept;

namespace rma {

/// The target, made on first use. nullptr when memory is out. Thread-safe. \pre 0 <= rank < window.size
[[gnu::cold, gnu::noinline]] Target* open_target(Window& window, int rank) noexcept;
inline Target* target_of(Window& window, int rank) noexcept {
  Target* known = window.known(rank);
  return known ? known : open_target(window, rank);
}
/// Calls `visit(Target&)` for every target that was used.
template <typename Visit>
void for_each_target(const Window& window, Visit&& visit) noexcept {
  for (int first = 0; first < window.size; first += Window::targets_per_chunk) {
    auto* chunk = window.chunks[first / Window::targets_per_chunk].load(std::memory_order_acquire);
    for (int i = 0; chunk && i < Window::targets_per_chunk && first + i < window.size; ++i)
      if (Target* target = chunk[i].load(std::memory_order_acquire)) visit(*target);
  }
}

/// How windows move data, by HEDDLE_RMA.
enum class PathPolicy : std::uint8_t { fastest, copied, messages };
PathPolicy path_policy() noexcept;

}  // namespace rma
}  // namespace heddle
