// Shared memory without names: memfd regions that vanish with the last process that has them open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace heddle::sys {

/// A region of a shared file, mapped or not. `base` is nullptr until mapped.
struct Segment {
  int fd = -1;
  std::uint64_t offset = 0;  ///< of the region in the file
  std::size_t size = 0;      ///< of the region; sparse: pages exist once touched or committed
  std::byte* base = nullptr;
  std::size_t mapped = 0;    ///< bytes from the region's beginning that `base` maps
};

/// Makes an anonymous shared file of `size` sparse bytes (mode 0600, close-on-exec): a memfd, or, where /proc does not let peers open
/// it (HEDDLE_SHM_BACKING=file forces this), a file in /dev/shm that `unlink_segment` removes once all have attached. Its maker
/// holds a lock on it (flock), so the next call that makes such a file can remove one whose maker was killed before that.
/// False: `problem` says why.
bool create_segment(std::size_t size, const char* job_id, int local_rank, Segment& segment, std::string& problem);

/// What a peer needs to open the segment, as a short printable text for the bootstrap (part of the process address).
std::string segment_card(const Segment& segment);
/// Opens a peer's segment from that text.
bool open_segment(const std::string& card, Segment& segment, std::string& problem);
/// Whether this process's segment still has a name to remove.
bool has_name() noexcept;
/// Removes the name of this process's or a peer's segment, if it has one.
void unlink_segment() noexcept;
void unlink_segment(const std::string& card) noexcept;

/// Size of the segment's file system in bytes; UINT64_MAX if the machine's memory is the only limit.
std::uint64_t room_in_all(const Segment& segment) noexcept;

/// Maps the first `bytes` of the region, read and write.
bool map_segment(Segment& segment, std::size_t bytes, std::string& problem);
void unmap_segment(Segment& segment) noexcept;

/// Allocates the pages of [offset, offset+size) of the region, so that touching them cannot fail later. False when memory is out.
bool commit(const Segment& segment, std::uint64_t offset, std::size_t size) noexcept;
/// Gives the pages back; they read as zero when touched again.
void decommit(const Segment& segment, std::uint64_t offset, std::size_t size) noexcept;

}  // namespace heddle::sys
