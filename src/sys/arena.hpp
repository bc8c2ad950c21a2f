// An allocator over one range of shared memory, for blocks that other processes read where they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace heddle::sys {

/// Hands out blocks of a mapped, sparse range of a shared file (a memfd or a file of a tmpfs).
///
/// Use it for message buffers and other large memory. Not for the path of a message: an allocation takes a lock, searches two
/// trees, and may call the kernel. Its bookkeeping lies outside the range, so that a program which writes past a block cannot
/// damage it, and alignment costs no space.
///
/// Best fit, first among blocks whose pages exist (`dirty`), then among those whose pages do not (`clean`, zero when touched).
/// Freed neighbours join. Pages of freed blocks are kept up to `keep` bytes, then given back to the system, largest first.
///
/// fork(): call before_fork, after_fork_in_parent and after_fork_in_child from pthread_atfork handlers. The child gets a private
/// copy of the blocks in use at the same addresses; it may read, write and free them, and gets no new ones.
///
/// All functions are thread-safe, but for `start`.
class Arena {
 public:
  struct Settings {
    std::byte* base = nullptr;      ///< of the mapped range, page aligned
    std::size_t bytes = 0;          ///< of the range
    int fd = -1;                    ///< of the file that `base` maps
    std::uint64_t file_offset = 0;  ///< of `base` in it
    std::size_t granule = 64;       ///< blocks are multiples of this, a power of two; the least alignment
    std::size_t keep = std::size_t{64} << 20;
    /// Allocates pages when a block is handed out. Needed where touching a missing page raises SIGBUS (see `touching_can_fail`).
    /// Elsewhere first touch decides on which NUMA node a page lies, as usual.
    bool commit = false;
  };

  enum class Release {
    done,
    foreign,       ///< not from this arena
    freed_before,  ///< in the range, but free
    inside,        ///< points into a block that is in use, but not to its beginning
  };

  void start(const Settings& settings) noexcept;
  [[nodiscard]] bool started() const noexcept { return settings_.base != nullptr; }

  /// Allocates a block; nullptr when the range or the memory is exhausted. `alignment`: a power of two. `zeroed`: set to whether all
  /// its bytes are known to be zero (only when the granule is a page).
  void* allocate(std::size_t bytes, std::size_t alignment, bool* zeroed = nullptr) noexcept;
  Release release(void* block) noexcept;
  /// Shrinks or grows a block in place. False when there is no room behind it.
  bool resize(void* block, std::size_t bytes) noexcept;

  /// Bytes usable in the block that begins at `block`, 0 when there is none.
  [[nodiscard]] std::size_t size_of(const void* block) const noexcept;
  [[nodiscard]] bool contains(const void* address) const noexcept {
    return static_cast<std::size_t>(static_cast<const std::byte*>(address) - settings_.base) < settings_.bytes;
  }
  [[nodiscard]] std::size_t bytes_in_use() const noexcept;
  [[nodiscard]] std::size_t bytes_kept() const noexcept;  ///< free, with pages
  /// Checks what must always hold (the extents tile the range, no two free neighbours of one kind, …). For tests.
  [[nodiscard]] bool is_consistent() const noexcept;

  void before_fork() noexcept;
  void after_fork_in_parent() noexcept;
  void after_fork_in_child() noexcept;

  /// Whether touching a page of the file may fail: its file system has a size limit (/dev/shm), or the system does not overcommit.
  static bool touching_can_fail(int fd) noexcept;

 private:
  using Address = std::uintptr_t;
  enum class State : std::uint8_t { dirty, clean, used, leaving };  // leaving: its pages are being given back, without the lock
  struct Extent {
    std::size_t bytes;
    State state;
  };
  using Extents = std::map<Address, Extent>;

  Extents::iterator cut(Extents::iterator extent, Address at);
  void set_free(Extents::iterator extent, State state);
  void unlist(Extents::iterator extent);
  Extents::iterator find_fit(State state, std::size_t bytes, std::size_t alignment, Address& at);
  void give_back(std::unique_lock<std::recursive_mutex>& lock, const std::vector<Extents::iterator>& leaving);
  void trim(std::unique_lock<std::recursive_mutex>& lock);
  bool commit(Address at, std::size_t bytes) noexcept;
  void decommit(Address at, std::size_t bytes) noexcept;
  void raise_top(Address end) noexcept;
  void copy_used(std::byte* to) noexcept;

  Settings settings_;
  std::uint64_t inode_ = 0;

  /// Recursive: a fork handler that runs between ours and the fork may allocate.
  mutable std::recursive_mutex mutex_;
  Extents extents_;                                      ///< all of the range, by address
  std::set<std::pair<std::size_t, Address>> by_size_[2];  ///< the free ones: [dirty], [clean]
  std::size_t used_ = 0, dirty_ = 0;
  Address top_ = 0;       ///< end of the highest block so far
  Address dumpable_ = 0;  ///< core dumps include the range up to here
  bool forking_ = false, in_child_ = false;
  void* snapshot_ = nullptr;
  std::size_t snapshot_bytes_ = 0;
};

}  // namespace heddle::sys
