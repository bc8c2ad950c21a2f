#include "sys/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sys/params.hpp"

namespace heddle::sys {
namespace {

HEDDLE_PARAM_TEXT(backing, "HEDDLE_SHM_BACKING", "auto",
                  "where shared memory lives: memfd (no name, not limited by /dev/shm), file (in /dev/shm), auto");

char file_name[96];  ///< of our segment when it has a name

std::string describe(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

bool create_memfd(std::size_t size, Segment& segment, std::string& problem) {
  segment.fd = memfd_create("heddle", MFD_CLOEXEC);
  if (segment.fd < 0 || ftruncate(segment.fd, static_cast<off_t>(size))) {
    problem = describe("memfd_create");
    return false;
  }
  // Peers open it through /proc; where that is hidden, they need a name.
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", static_cast<int>(getpid()), segment.fd);
  const int again = open(path, O_RDWR | O_CLOEXEC);
  if (again < 0) {
    problem = describe(path);
    return false;
  }
  close(again);
  return true;
}

bool create_file(std::size_t size, const char* job_id, int local_rank, Segment& segment, std::string& problem) {
  std::snprintf(file_name, sizeof file_name, "/dev/shm/heddle-%s-%d", job_id, local_rank);
  segment.fd = open(file_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (segment.fd < 0 || ftruncate(segment.fd, static_cast<off_t>(size))) {
    problem = describe(file_name);
    unlink_segment();
    return false;
  }
  return true;
}

}  // namespace

bool create_segment(std::size_t size, const char* job_id, int local_rank, Segment& segment, std::string& problem) {
  segment.size = size;
  const bool memfd_only = !std::strcmp(backing.text(), "memfd");
  const bool file_only = !std::strcmp(backing.text(), "file");
  if (!file_only) {
    if (create_memfd(size, segment, problem)) return true;
    if (segment.fd >= 0) close(segment.fd);
    segment.fd = -1;
    if (memfd_only) return false;
  }
  return create_file(size, job_id, local_rank, segment, problem);
}

std::string segment_card(const Segment& segment) {
  if (*file_name) return std::string("f") + file_name + " " + std::to_string(segment.size);
  return "p/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(segment.fd) + " " + std::to_string(segment.size);
}

bool open_segment(const std::string& card, Segment& segment, std::string& problem) {
  const std::size_t space = card.rfind(' ');
  if (card.size() < 2 || space == std::string::npos) {
    problem = "malformed segment card";
    return false;
  }
  const std::string path = card.substr(1, space - 1);
  segment.size = std::stoull(card.substr(space + 1));
  segment.fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (segment.fd < 0) problem = describe(path.c_str());
  return segment.fd >= 0;
}

void unlink_segment() noexcept {
  if (*file_name) unlink(file_name);
  *file_name = 0;
}

bool map_segment(Segment& segment, std::size_t bytes, std::string& problem) {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, segment.fd,
                    static_cast<off_t>(segment.offset));
  if (base == MAP_FAILED) {
    problem = describe("mmap of shared memory");
    return false;
  }
  madvise(base, bytes, MADV_DONTDUMP);  // a core file would make every page of the sparse region exist
  segment.base = static_cast<std::byte*>(base);
  segment.mapped = bytes;
  return true;
}

void unmap_segment(Segment& segment) noexcept {
  if (segment.base) munmap(segment.base, segment.mapped);
  segment.base = nullptr;
  segment.mapped = 0;
}

bool commit(const Segment& segment, std::uint64_t offset, std::size_t size) noexcept {
  const int result = posix_fallocate(segment.fd, static_cast<off_t>(segment.offset + offset), static_cast<off_t>(size));
  return result == 0 || result == EOPNOTSUPP || result == EINVAL;
}

void decommit(const Segment& segment, std::uint64_t offset, std::size_t size) noexcept {
  fallocate(segment.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(segment.offset + offset),
            static_cast<off_t>(size));
}

}  // namespace heddle::sys
