// Making and freeing windows. The ranks of a node tell each other by a directory in shared memory; those of other nodes are asked at the first
// operation on them (rma/messages.cpp). docs/design/one-sided.md
#include "rma/create.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "coll/internal.hpp"
#include "coll/run.hpp"
#include "comm/create.hpp"
#include "core/info.hpp"
#include "core/runtime.hpp"
#include "proto/p2p.hpp"
#include "rma/hints.hpp"
#include "rma/messages.hpp"
#include "rma/stripes.hpp"
#include "rma/synchronize.hpp"
#include "sys/error.hpp"
#include "sys/log.hpp"
#include "transport/shm/heap.hpp"

namespace heddle {

Window::~Window() {
  for (int c = 0; chunks && c <= (size - 1) / targets_per_chunk; ++c) {
    auto* chunk = chunks[c].load(std::memory_order_relaxed);
    for (int i = 0; chunk && i < targets_per_chunk; ++i) delete chunk[i].load(std::memory_order_relaxed);
    delete[] chunk;
  }
  delete[] chunks;
  release_info(info);
}

namespace rma {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t cache_line = 64;

enum Tag : int { tag_entry = 100, tag_directory };

int no_memory(const char* what) noexcept { return error(MPI_ERR_NO_MEM, "no memory for %s", what); }

Datatype& bytes_type() noexcept { return coll::byte_type(); }

bool on_this_node(const Comm& comm, int rank) noexcept { return processes.route(comm.peers->process(rank)) != Route::network; }

/// The ranks of this process and its neighbours, in order.
void find_neighbors(const Comm& comm, std::vector<int>& ranks) {
  for (int r = 0; r < comm.size; ++r)
    if (on_this_node(comm, r)) ranks.push_back(r);
}

/// A block that the processes of the node can map, if that can be. Zeroed. nullptr when memory is out.
void* allocate_zeroed(std::size_t bytes) noexcept {
  void* block = shm::allocate(bytes, cache_line);
  if (block) std::memset(block, 0, bytes);
  return block;
}

void give_back(void* block) noexcept {
  std::string problem;
  if (block && !shm::deallocate(block, problem)) sys::fatal("freeing a window: %s", problem.c_str());
}

std::uint64_t address_of(const void* memory) noexcept { return reinterpret_cast<std::uintptr_t>(memory); }

/// The lowest rank of the node collects what all say, decides where the parts of a shared window lie, and makes the directory.
struct Directory {
  std::uint64_t address;  ///< in the process that made it
  std::uint64_t offset;   ///< in its shared memory; 0: it is not there
  std::int32_t leader;    ///< the rank that made it
  std::int32_t count;
  std::int32_t error;     ///< class; the same for all
  std::int32_t reserved;
};

std::size_t aligned(std::size_t n, std::size_t to) noexcept { return (n + to - 1) / to * to; }

/// Gives each rank its part of one block: without gaps, unless the program allows them.
int share_memory(Window& window, DirectoryEntry* entries, int count, std::size_t alignment, bool gaps) noexcept {
  std::size_t total = 0;
  for (int i = 0; i < count; ++i) {
    entries[i].segment_offset = total;
    total += gaps ? aligned(entries[i].bytes, std::max(page, alignment)) : entries[i].bytes;
  }
  auto* block = static_cast<std::byte*>(shm::allocate(std::max<std::size_t>(total, 1), std::max(alignment, gaps || total >= 16 * page ? page : cache_line)));
  if (!block) return MPI_ERR_NO_MEM;
  const std::uint64_t offset = shm::heap_offset_of(block, std::max<std::size_t>(total, 1));
  if (!offset)
    for (int i = 0; i < count; ++i)
      if (entries[i].process != runtime.self) return give_back(block), MPI_ERR_NO_MEM;  // in memory of this process alone
  window.shared_block = block;
  for (int i = 0; i < count; ++i) {
    entries[i].segment = address_of(block) + entries[i].segment_offset;
    entries[i].segment_offset += offset;
  }
  return MPI_SUCCESS;
}

/// \param ranks of this node, in order; the first one leads
int exchange(Window& window, const std::vector<int>& ranks, const DirectoryEntry& own, std::size_t alignment, bool gaps) noexcept {
  Comm& comm = *window.comm;
  const int leader = ranks.front();
  const auto count = static_cast<int>(ranks.size());
  Directory directory{};
  int first_error = MPI_SUCCESS;
  const auto note = [&](int code) {
    if (code && !first_error) first_error = code;
  };
  if (comm.rank == leader) {
    auto* entries = static_cast<DirectoryEntry*>(allocate_zeroed(sizeof(DirectoryEntry) * ranks.size()));
    if (!entries) sys::fatal("no memory for a window's directory of %d ranks", count);
    window.directory_block = entries;
    entries[0] = own;
    for (int i = 1; i < count; ++i) note(recv({&entries[i], sizeof *entries, bytes_type()}, ranks[static_cast<std::size_t>(i)], tag_entry, comm, Space::user));
    directory = {address_of(entries), shm::heap_offset_of(entries, sizeof *entries * ranks.size()), leader, count, MPI_SUCCESS, 0};
    if (window.flavor == MPI_WIN_FLAVOR_SHARED) directory.error = share_memory(window, entries, count, alignment, gaps);
    for (int i = 1; i < count; ++i)
      note(send({&directory, sizeof directory, bytes_type()}, ranks[static_cast<std::size_t>(i)], tag_directory, comm, Space::user));
  } else {
    note(send({&own, sizeof own, bytes_type()}, leader, tag_entry, comm, Space::user));
    note(recv({&directory, sizeof directory, bytes_type()}, leader, tag_directory, comm, Space::user));
  }
  if (first_error) return first_error;
  window.entries = reinterpret_cast<const DirectoryEntry*>(map_of(comm.peers->process(leader), directory.address, directory.offset));
  window.entry_count = window.entries ? count : 0;
  if (directory.error) return no_memory("a shared window: the node's shared memory, or this process's part of it, is too small");
  if (window.flavor != MPI_WIN_FLAVOR_SHARED) return MPI_SUCCESS;
  window.base = segment_of(window, comm.rank);
  if (!window.base) return no_memory("mapping a shared window: raise the limit on address space (ulimit -v)");
  return MPI_SUCCESS;
}

/// This rank's memory of a window that allocates.
int allocate_own(Window& window, std::size_t alignment) noexcept {
  const auto bytes = static_cast<std::size_t>(window.bytes);
  window.base = shm::allocate(bytes, std::max({bytes >= 16 * page ? page : cache_line, alignment, sizeof(void*)}));
  window.owns_memory = window.base != nullptr;
  if (!window.base) return error(MPI_ERR_NO_MEM, "no memory for a window of %lld bytes; ask for less or raise the limit (ulimit -v, cgroup)", static_cast<long long>(window.bytes));
  return MPI_SUCCESS;
}

int expose(Window& window) noexcept {
  window.exposure = static_cast<Exposure*>(allocate_zeroed(sizeof(Exposure)));
  if (!window.exposure) return no_memory("a window");
  if (!make_stripes()) return no_memory("the locks of accumulates");
  Exposure& shown = *window.exposure;
  const bool dynamic = window.flavor == MPI_WIN_FLAVOR_DYNAMIC;
  shown.base = dynamic ? 0 : address_of(window.base);
  shown.size = dynamic ? UINT64_MAX >> 1 : static_cast<std::uint64_t>(window.bytes);
  shown.unit = window.unit;
  shown.offset = dynamic || !window.bytes ? 0 : shm::heap_offset_of(window.base, static_cast<std::size_t>(window.bytes));
  shown.window = address_of(&window);
  shown.stripes = shm::heap_offset_of(own_stripes(), sizeof(sync::StripeLocks));
  shown.mapping = shm::mapping();
  return MPI_SUCCESS;
}

/// Undoes what `make_window` did so far, here alone.
void discard(Window* window) noexcept {
  forget_window(*window);
  if (window->exposure) window->exposure->attached.free_all();
  give_back(window->exposure);
  give_back(window->directory_block);
  give_back(window->shared_block);
  if (window->owns_memory) give_back(window->base);
  if (window->comm) free_comm(*window->comm);
  pool<Window>().destroy(window);
}

int fill(Window& window, Comm& comm, Info* info) noexcept {
  if (const int code = comm_create(comm, *comm.group, &window.comm)) return code;
  window.rank = window.comm->rank;
  window.size = window.comm->size;
  take_hints(window, info);
  const int chunks = (window.size - 1) / Window::targets_per_chunk + 1;
  window.chunks = new (std::nothrow) std::atomic<std::atomic<Target*>*>[static_cast<std::size_t>(chunks)]{};
  if (!window.chunks) return no_memory("a window");
  return MPI_SUCCESS;
}

/// Whether all ranks share memory, as seen by all of them alike.
int check_shared(const Window& window, const std::vector<int>& ranks) noexcept {
  if (static_cast<int>(ranks.size()) == window.size) return MPI_SUCCESS;
  return error(MPI_ERR_RMA_SHARED, "%d of the %d ranks are on this node: shared windows need ranks that share memory; split the communicator with MPI_COMM_TYPE_SHARED%s",
               static_cast<int>(ranks.size()), window.size, shm::enabled() ? "" : " and without HEDDLE_SHM=0");
}

}  // namespace

const DirectoryEntry* find_entry(const Window& window, int rank) noexcept {
  const DirectoryEntry* const end = window.entries + window.entry_count;
  const DirectoryEntry* const found = std::lower_bound(window.entries, end, rank, [](const DirectoryEntry& entry, int wanted) { return entry.rank < wanted; });
  return found != end && found->rank == rank ? found : nullptr;
}

std::byte* map_of(ProcessIndex process, std::uint64_t address, std::uint64_t offset) noexcept {
  if (process == runtime.self) return reinterpret_cast<std::byte*>(address);
  if (!offset) return nullptr;
  std::string problem;
  shm::Peer* peer = shm::find(process);
  if (!peer) peer = shm::attach(process, problem);
  if (!peer) sys::fatal("rank %u cannot be reached: %s", process, problem.c_str());
  return peer->heap_address(offset);
}

std::byte* segment_of(const Window& window, int rank) noexcept {
  const DirectoryEntry* entry = find_entry(window, rank);
  return entry ? map_of(window.entries[0].process, entry->segment, entry->segment_offset) : nullptr;
}

int make_window(Comm& comm, WindowMemory memory, Info* info, Window** made) noexcept {
  *made = nullptr;
  Window* window = pool<Window>().create();
  if (!window) return no_memory("a window");
  window->flavor = memory.flavor;
  window->base = memory.base;
  window->bytes = memory.bytes;
  window->unit = memory.unit;
  window->shown_unit = memory.unit == static_cast<int>(memory.unit) ? static_cast<int>(memory.unit) : MPI_UNDEFINED;
  const auto failed = [&](int code) { return discard(window), code; };
  if (const int code = fill(*window, comm, info)) return failed(code);
  std::vector<int> ranks;
  find_neighbors(*window->comm, ranks);
  const bool shared = memory.flavor == MPI_WIN_FLAVOR_SHARED;
  if (shared)
    if (const int code = check_shared(*window, ranks)) return failed(code);
  // An error of one rank is found by all: nobody waits for a rank that gave up.
  const std::size_t alignment = wanted_alignment(info);
  int code = MPI_SUCCESS;
  if (memory.flavor == MPI_WIN_FLAVOR_ALLOCATE) code = allocate_own(*window, alignment);
  if (!code && !shared) code = expose(*window);
  const DirectoryEntry own{window->rank, runtime.self, address_of(window->exposure), window->exposure ? shm::heap_offset_of(window->exposure, sizeof(Exposure)) : 0,
                     static_cast<std::uint64_t>(memory.bytes), memory.unit, 0, 0};
  const int exchanged = exchange(*window, ranks, own, alignment, info_flag(info, "alloc_shared_noncontig", false));
  if (!code) code = exchanged;
  if (!code && shared) {
    code = expose(*window);
    // Now that it has one, everybody of the node may see it: the barrier below orders this before the first look.
    if (!code) {
      auto* entry = const_cast<DirectoryEntry*>(find_entry(*window, window->rank));
      entry->exposure = address_of(window->exposure);
      entry->exposure_offset = shm::heap_offset_of(window->exposure, sizeof(Exposure));
    }
  }
  if (!code) code = serve_window(*window, static_cast<int>(ranks.size()));
  int failures = code ? 1 : 0, all = 0;
  const int agreed = coll::allreduce(&failures, &all, 1, builtin_datatypes[0x09], *builtin_op(reinterpret_cast<std::uintptr_t>(MPI_SUM)), *window->comm);
  if (!code) code = agreed;
  if (!code && all) code = error(MPI_ERR_OTHER, "%d other rank%s could not make the window", all, all == 1 ? "" : "s");
  if (code) return failed(code);
  *made = window;
  return MPI_SUCCESS;
}

int free_window(Window& window) noexcept {
  if (const int code = check_closed(window)) return code;
  if (const int code = delete_all_attributes(attributes_of(window))) return code;
  if (const int code = coll::barrier(*window.comm)) return code;
  discard(&window);
  return MPI_SUCCESS;
}

int attach(Window& window, void* base, MPI_Aint bytes) noexcept {
  if (window.flavor != MPI_WIN_FLAVOR_DYNAMIC) return error(MPI_ERR_RMA_FLAVOR, "memory can be attached to windows of MPI_Win_create_dynamic only");
  if (bytes < 0) return error(MPI_ERR_ARG, "argument size is %lld; it must not be negative", static_cast<long long>(bytes));
  if (!bytes) return MPI_SUCCESS;
  std::lock_guard lock(window.mutex);
  const int refused = window.exposure->attached.add(address_of(base), static_cast<std::uint64_t>(bytes));
  if (refused == MPI_ERR_NO_MEM) return no_memory("the list of what is attached to a window");
  if (refused) return error(MPI_ERR_RMA_ATTACH, "[%p, +%lld) overlaps memory that is attached already; detach that first", base, static_cast<long long>(bytes));
  return MPI_SUCCESS;
}

int detach(Window& window, const void* base) noexcept {
  if (window.flavor != MPI_WIN_FLAVOR_DYNAMIC) return error(MPI_ERR_RMA_FLAVOR, "memory can be detached from windows of MPI_Win_create_dynamic only");
  std::lock_guard lock(window.mutex);
  if (window.exposure->attached.remove(address_of(base))) return MPI_SUCCESS;
  return error(MPI_ERR_RMA_ATTACH, "no memory that begins at %p is attached; pass the address given to MPI_Win_attach", base);
}

int shared_query(Window& window, int rank, MPI_Aint* bytes, MPI_Aint* unit, void** base) noexcept {
  if (window.flavor == MPI_WIN_FLAVOR_DYNAMIC) return error(MPI_ERR_RMA_FLAVOR, "a window of MPI_Win_create_dynamic has no memory of its own to be asked for");
  if (rank == MPI_PROC_NULL) {
    rank = -1;
    for (int i = 0; rank < 0 && i < window.entry_count; ++i)
      if (window.entries[i].bytes) rank = window.entries[i].rank;
    if (rank < 0) return *bytes = 0, *unit = window.unit, *base = nullptr, MPI_SUCCESS;
  }
  if (window.flavor == MPI_WIN_FLAVOR_SHARED) {  // whichever way operations take
    const DirectoryEntry* entry = find_entry(window, rank);
    return *bytes = static_cast<MPI_Aint>(entry->bytes), *unit = static_cast<MPI_Aint>(entry->unit), *base = segment_of(window, rank), MPI_SUCCESS;
  }
  const Target* target = target_of(window, rank);
  if (!target) return no_memory("a target");
  const bool here = target->path == Path::mapped;
  // Of a rank whose memory is not shared, MPI-5.0 §12.2.3 wants a size of 0.
  *bytes = here ? static_cast<MPI_Aint>(target->size) : 0;
  *unit = here ? static_cast<MPI_Aint>(target->unit) : window.unit;
  *base = here ? reinterpret_cast<void*>(target->base) : nullptr;
  return MPI_SUCCESS;
}

}  // namespace rma
}  // namespace heddle

namespace heddle {

int raise(Window* window, int code, const char* function) noexcept {
  if (!window) return raise(code, function);
  char where[MPI_MAX_OBJECT_NAME + 16] = "a window";
  {
    std::lock_guard lock(window->mutex);
    if (window->name[0]) std::snprintf(where, sizeof where, "window %s", window->name);
  }
  Errhandler* handler = window->errhandler.get(errhandler_fatal);
  MPI_Win handle = to_handle(window);
  raise_through(*handler, &handle, where, code, function);
  release_errhandler(handler);
  return code;
}

}  // namespace heddle
