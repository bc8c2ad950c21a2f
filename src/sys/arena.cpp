#include "sys/arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace heddle::sys {
namespace {

constexpr std::uintptr_t page = 4096;
constexpr std::size_t dump_step = std::size_t{64} << 20;

constexpr std::uintptr_t round_down(std::uintptr_t value, std::uintptr_t unit) { return value & ~(unit - 1); }
constexpr std::uintptr_t round_up(std::uintptr_t value, std::uintptr_t unit) { return round_down(value + unit - 1, unit); }

std::uint64_t inode_of(int fd) noexcept {
  struct stat info;
  return fstat(fd, &info) ? 0 : info.st_ino;
}

}  // namespace

bool Arena::touching_can_fail(int fd) noexcept {
  struct statfs system;
  if (fstatfs(fd, &system) || system.f_blocks) return true;  // a memfd's file system reports no limit
  char mode = '0';
  const int file = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
  if (file >= 0) {
    if (read(file, &mode, 1) != 1) mode = '0';
    close(file);
  }
  return mode == '2';
}

void Arena::start(const Settings& settings) noexcept {
  settings_ = settings;
  inode_ = inode_of(settings.fd);
  const auto base = reinterpret_cast<Address>(settings.base);
  top_ = dumpable_ = base;
  // A core file would otherwise make every page of the sparse range exist.
  madvise(settings.base, settings.bytes, MADV_DONTDUMP);
  set_free(extents_.emplace(base, Extent{settings.bytes, State::used}).first, State::clean);
}

// --- the extents -------------------------------------------------------------------------------------------------

void Arena::unlist(Extents::iterator extent) {
  by_size_[static_cast<int>(extent->second.state)].erase({extent->second.bytes, extent->first});
  if (extent->second.state == State::dirty) dirty_ -= extent->second.bytes;
}

/// Makes an extent that is on no list free, joining it with free neighbours of its kind.
void Arena::set_free(Extents::iterator extent, State state) {
  extent->second.state = state;
  if (const auto next = std::next(extent); next != extents_.end() && next->second.state == state) {
    unlist(next);
    extent->second.bytes += next->second.bytes;
    extents_.erase(next);
  }
  if (extent != extents_.begin())
    if (const auto before = std::prev(extent); before->second.state == state) {
      unlist(before);
      before->second.bytes += extent->second.bytes;
      extents_.erase(extent);
      extent = before;
    }
  by_size_[static_cast<int>(state)].insert({extent->second.bytes, extent->first});
  if (state == State::dirty) dirty_ += extent->second.bytes;
}

/// Splits an extent that is on no list; the part from `at` on is returned, with the same state. `at` may be its beginning.
Arena::Extents::iterator Arena::cut(Extents::iterator extent, Address at) {
  if (at == extent->first) return extent;
  const std::size_t before = at - extent->first;
  const Extent rest{extent->second.bytes - before, extent->second.state};
  extent->second.bytes = before;
  return extents_.emplace_hint(std::next(extent), at, rest);
}

Arena::Extents::iterator Arena::find_fit(State state, std::size_t bytes, std::size_t alignment, Address& at) {
  const auto& list = by_size_[static_cast<int>(state)];
  // The smallest candidates fit only if they happen to be aligned: try a few of them, then those that fit in any case.
  const std::size_t sure = alignment > settings_.granule ? bytes + alignment - settings_.granule : bytes;
  int tries = 8;
  for (auto entry = list.lower_bound({bytes, 0}); entry != list.end(); ++entry) {
    if (entry->first < sure && --tries < 0) {
      entry = list.lower_bound({sure, 0});
      if (entry == list.end()) break;
    }
    at = round_up(entry->second, alignment);
    if (at + bytes <= entry->second + entry->first) return extents_.find(entry->second);
  }
  return extents_.end();
}

// --- pages -------------------------------------------------------------------------------------------------------

bool Arena::commit(Address at, std::size_t bytes) noexcept {
  const Address first = round_down(at, page), end = round_up(at + bytes, page);
  const auto offset = static_cast<off_t>(settings_.file_offset + (first - reinterpret_cast<Address>(settings_.base)));
  int result;
  do result = posix_fallocate(settings_.fd, offset, static_cast<off_t>(end - first));
  while (result == EINTR);
  return result == 0;
}

/// Only an unused extent's whole pages: its neighbours may use the rest of the first and last one.
void Arena::decommit(Address at, std::size_t bytes) noexcept {
  const Address first = round_up(at, page), end = round_down(at + bytes, page);
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, in_child_ ? MADV_DONTNEED : MADV_REMOVE);
}

void Arena::raise_top(Address end) noexcept {
  top_ = std::max(top_, end);
  if (top_ <= dumpable_) return;
  const Address limit = reinterpret_cast<Address>(settings_.base) + settings_.bytes;
  const Address to = std::min(round_up(top_, dump_step), limit);
  madvise(reinterpret_cast<void*>(dumpable_), to - dumpable_, MADV_DODUMP);
  dumpable_ = to;
}

/// Punches the pages out without the lock (it takes long), then lists the extents as clean.
void Arena::give_back(std::unique_lock<std::recursive_mutex>& lock, const std::vector<Extents::iterator>& leaving) {
  std::vector<std::pair<Address, std::size_t>> ranges;
  for (const auto extent : leaving) {
    extent->second.state = State::leaving;
    ranges.emplace_back(extent->first, extent->second.bytes);
  }
  lock.unlock();
  for (const auto& [at, bytes] : ranges) decommit(at, bytes);
  lock.lock();
  for (const auto extent : leaving) set_free(extent, State::clean);
}

/// Gives pages back, of the largest free blocks first, when more than `keep` bytes of them are kept.
void Arena::trim(std::unique_lock<std::recursive_mutex>& lock) {
  if (dirty_ <= settings_.keep || forking_) return;
  auto& list = by_size_[static_cast<int>(State::dirty)];
  std::vector<Extents::iterator> leaving;
  while (dirty_ > settings_.keep / 2 && !list.empty()) {
    const auto extent = extents_.find(list.rbegin()->second);
    const Address first = round_up(extent->first, page), end = round_down(extent->first + extent->second.bytes, page);
    if (first >= end) break;
    unlist(extent);
    const auto whole = cut(extent, first);
    if (end < first + whole->second.bytes) {
      // The rest of the last page stays. The right neighbour is not dirty, or the two would have been joined.
      const auto tail = cut(whole, end);
      by_size_[static_cast<int>(State::dirty)].insert({tail->second.bytes, tail->first});
      dirty_ += tail->second.bytes;
    }
    if (whole != extent) {
      by_size_[static_cast<int>(State::dirty)].insert({extent->second.bytes, extent->first});
      dirty_ += extent->second.bytes;
    }
    whole->second.state = State::leaving;
    leaving.push_back(whole);
  }
  if (!leaving.empty()) give_back(lock, leaving);
}

// --- blocks ------------------------------------------------------------------------------------------------------

void* Arena::allocate(std::size_t bytes, std::size_t alignment, bool* zeroed) noexcept {
  if (!settings_.base || bytes > settings_.bytes || alignment > settings_.bytes) return nullptr;
  bytes = round_up(std::max<std::size_t>(bytes, 1), settings_.granule);
  alignment = std::max(alignment, settings_.granule);
  std::unique_lock lock(mutex_);
  if (forking_ || in_child_) return nullptr;
  Address at = 0;
  State from = State::dirty;
  auto extent = find_fit(from, bytes, alignment, at);
  if (extent == extents_.end()) extent = find_fit(from = State::clean, bytes, alignment, at);
  if (extent == extents_.end() && dirty_) {
    // Free, but split into extents with and without pages: once none has pages, all neighbours join.
    const std::size_t keep = std::exchange(settings_.keep, 0);
    trim(lock);
    settings_.keep = keep;
    extent = find_fit(from = State::clean, bytes, alignment, at);
  }
  if (extent == extents_.end()) return nullptr;

  unlist(extent);
  const auto block = cut(extent, at);
  if (at + bytes < block->first + block->second.bytes) {
    const auto rest = cut(block, at + bytes);
    block->second.state = State::used;  // otherwise the rest would join it again
    set_free(rest, from);
  }
  block->second.state = State::used;
  if (block != extent) set_free(extent, from);
  used_ += bytes;
  raise_top(at + bytes);
  if (zeroed) *zeroed = from == State::clean && settings_.granule >= page;
  if (from == State::clean && settings_.commit) {
    lock.unlock();
    if (!commit(at, bytes)) {
      lock.lock();
      used_ -= bytes;
      give_back(lock, {block});
      return nullptr;
    }
  }
  return reinterpret_cast<void*>(at);
}

Arena::Release Arena::release(void* address) noexcept {
  if (!settings_.base || !contains(address)) return Release::foreign;
  std::unique_lock lock(mutex_);
  const auto at = reinterpret_cast<Address>(address);
  const auto extent = std::prev(extents_.upper_bound(at));
  if (extent->second.state != State::used) return Release::freed_before;
  if (extent->first != at) return Release::inside;
  used_ -= extent->second.bytes;
  set_free(extent, State::dirty);
  trim(lock);
  return Release::done;
}

bool Arena::resize(void* address, std::size_t bytes) noexcept {
  if (bytes > settings_.bytes) return false;
  bytes = round_up(std::max<std::size_t>(bytes, 1), settings_.granule);
  std::unique_lock lock(mutex_);
  const auto block = extents_.find(reinterpret_cast<Address>(address));
  if (block == extents_.end() || block->second.state != State::used) return false;
  const std::size_t old = block->second.bytes;
  if (bytes < old) {
    set_free(cut(block, block->first + bytes), State::dirty);
    used_ -= old - bytes;
    trim(lock);
  } else if (bytes > old) {
    const auto next = std::next(block);
    if (forking_ || in_child_ || next == extents_.end() || next->second.bytes < bytes - old) return false;
    const State from = next->second.state;
    if (from != State::dirty && (from != State::clean || settings_.commit)) return false;
    unlist(next);
    if (next->second.bytes > bytes - old) {
      const auto rest = cut(next, next->first + (bytes - old));
      next->second.state = State::used;
      set_free(rest, from);
    }
    extents_.erase(next);
    block->second.bytes = bytes;
    used_ += bytes - old;
    raise_top(block->first + bytes);
  }
  return true;
}

std::size_t Arena::size_of(const void* address) const noexcept {
  std::lock_guard lock(mutex_);
  const auto block = extents_.find(reinterpret_cast<Address>(address));
  return block != extents_.end() && block->second.state == State::used ? block->second.bytes : 0;
}

std::size_t Arena::bytes_in_use() const noexcept {
  std::lock_guard lock(mutex_);
  return used_;
}

std::size_t Arena::bytes_kept() const noexcept {
  std::lock_guard lock(mutex_);
  return dirty_;
}

bool Arena::is_consistent() const noexcept {
  std::lock_guard lock(mutex_);
  Address at = reinterpret_cast<Address>(settings_.base);
  std::size_t used = 0, sum[2] = {}, listed = 0;
  State before = State::used;
  for (const auto& [first, extent] : extents_) {
    if (first != at || !extent.bytes || extent.bytes % settings_.granule) return false;
    if (extent.state == State::used) used += extent.bytes;
    if (extent.state <= State::clean) {
      const int kind = static_cast<int>(extent.state);
      if (before == extent.state || !by_size_[kind].contains({extent.bytes, first})) return false;
      sum[kind] += extent.bytes;
      ++listed;
    }
    before = extent.state;
    at += extent.bytes;
  }
  return at == reinterpret_cast<Address>(settings_.base) + settings_.bytes && used == used_ && sum[0] == dirty_ &&
         listed == by_size_[0].size() + by_size_[1].size();
}

// --- fork --------------------------------------------------------------------------------------------------------

/// Copies the blocks in use to the same place relative to `to`; pages that were never touched stay untouched.
void Arena::copy_used(std::byte* to) noexcept {
  const auto base = reinterpret_cast<Address>(settings_.base);
  const bool known = settings_.fd >= 0 && inode_of(settings_.fd) == inode_;  // a program may have closed descriptors it did not open
  for (auto extent = extents_.begin(); extent != extents_.end(); ++extent) {
    if (extent->second.state != State::used) continue;
    const std::size_t first = extent->first - base;
    std::size_t end = first + extent->second.bytes;
    for (auto next = std::next(extent); next != extents_.end() && next->second.state == State::used; extent = next++)
      end += next->second.bytes;
    for (std::size_t at = first; at < end;) {
      std::size_t stop = end;
      if (known) {
        const off_t data = lseek(settings_.fd, static_cast<off_t>(settings_.file_offset + at), SEEK_DATA);
        if (data < 0 && errno == ENXIO) return;
        if (data >= 0) {
          at = static_cast<std::size_t>(data) - settings_.file_offset;
          const off_t hole = lseek(settings_.fd, data, SEEK_HOLE);
          if (at >= end) break;
          if (hole > data) stop = std::min(end, static_cast<std::size_t>(hole) - settings_.file_offset);
        }
      }
      std::memcpy(to + at, settings_.base + at, stop - at);
      at = stop;
    }
  }
}

void Arena::before_fork() noexcept {
  mutex_.lock();
  if (!settings_.base || in_child_) return;
  const int error = errno;
  forking_ = true;  // blocks allocated from here on would be missing in the copy
  snapshot_bytes_ = round_up(top_, page) - reinterpret_cast<Address>(settings_.base);
  if (snapshot_bytes_) {
    snapshot_ = mmap(nullptr, snapshot_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (snapshot_ == MAP_FAILED)
      snapshot_ = nullptr;
    else if (used_)
      copy_used(static_cast<std::byte*>(snapshot_));
  }
  errno = error;
}

void Arena::after_fork_in_parent() noexcept {
  const int error = errno;
  if (snapshot_) munmap(snapshot_, snapshot_bytes_);
  snapshot_ = nullptr;
  forking_ = false;
  errno = error;
  mutex_.unlock();
}

void Arena::after_fork_in_child() noexcept {
  if (settings_.base && !in_child_) {
    const int error = errno;
    in_child_ = true;
    void* moved = snapshot_ ? mremap(snapshot_, snapshot_bytes_, snapshot_bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, settings_.base)
                            : MAP_FAILED;
    // Without a copy the child dies where it touches a block; it never changes the parent's.
    if (moved == MAP_FAILED && snapshot_bytes_)
      mmap(settings_.base, snapshot_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    snapshot_ = nullptr;
    for (auto& [at, extent] : extents_)
      if (extent.state == State::leaving) {  // the thread that was giving it back does not exist in the child
        extent.state = State::used;
        used_ += extent.bytes;
      }
    forking_ = false;
    errno = error;
  }
  // Not unlock(): a recursive lock checks its owner, and this thread's id is not that of the one that locked it.
  new (&mutex_) std::recursive_mutex;
}

}  // namespace heddle::sys
