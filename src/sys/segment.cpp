#include "sys/segment.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sys/params.hpp"

namespace heddle::sys {
namespace {

enum Backing { automatic, memfd, file };
HEDDLE_PARAM_CHOICE(backing, "HEDDLE_SHM_BACKING",
                    "where shared memory lives: memfd (no name, not limited by /dev/shm), file (in /dev/shm), auto",
                    "auto", "memfd", "file");

constexpr const char* directory = "/dev/shm";
constexpr const char* prefix = "heddle-";

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

/// Removes the files of processes that were killed before all their peers had attached: those that nobody has locked.
void remove_abandoned_files() noexcept {
  DIR* files = opendir(directory);
  if (!files) return;
  while (const dirent* file = readdir(files)) {
    if (std::strncmp(file->d_name, prefix, std::strlen(prefix))) continue;
    const int fd = openat(dirfd(files), file->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) continue;  // another user's
    if (!flock(fd, LOCK_EX | LOCK_NB)) unlinkat(dirfd(files), file->d_name, 0);
    close(fd);
  }
  closedir(files);
}

/// A new file that its maker has locked for as long as it lives: -1 and errno on failure.
int create_locked(const char* name) noexcept {
  for (;;) {
    const int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return fd;
    struct stat info;
    if (!flock(fd, LOCK_SH) && !fstat(fd, &info) && info.st_nlink) return fd;
    close(fd);  // another process removed it as abandoned in the moment before it was locked
  }
}

bool create_file(std::size_t size, const char* job_id, int local_rank, Segment& segment, std::string& problem) {
  remove_abandoned_files();
  std::snprintf(file_name, sizeof file_name, "%s/%s%s-%d", directory, prefix, job_id, local_rank);
  segment.fd = create_locked(file_name);
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
  if (backing.value() != Backing::file) {
    if (create_memfd(size, segment, problem)) return true;
    if (segment.fd >= 0) close(segment.fd);
    segment.fd = -1;
    if (backing.value() == Backing::memfd) return false;
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

bool has_name() noexcept { return *file_name; }

void unlink_segment() noexcept {
  if (*file_name) unlink(file_name);
  *file_name = 0;
}

void unlink_segment(const std::string& card) noexcept {
  if (card.size() > 1 && card[0] == 'f') unlink(card.substr(1, card.rfind(' ') - 1).c_str());
}

std::uint64_t room_in_all(const Segment& segment) noexcept {
  struct statfs system;
  if (fstatfs(segment.fd, &system) || !system.f_blocks) return UINT64_MAX;  // a memfd's file system reports no limit
  return static_cast<std::uint64_t>(system.f_blocks) * static_cast<std::uint64_t>(system.f_bsize);
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
