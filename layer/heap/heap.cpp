// libheddle_heap.so: stands before the C library's malloc and serves blocks of 64 KiB and more from a memfd of this process, so
// that the other ranks of the node can map them and copy large messages straight out of them. Everything smaller goes to
// the next malloc in line (the C library's, or another that was preloaded).
//
// Nothing happens before the first large block: then the memfd is made, which lives and dies with the process. The MPI library
// finds it through `heddle_program_heap_1`.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "sys/arena.hpp"
#include "sys/program_heap.hpp"

namespace {

using heddle::sys::Arena;

constexpr std::size_t threshold = 64 << 10;  // smaller messages do not move by rendezvous
constexpr std::size_t page = 4096;

// --- the next malloc in line ---------------------------------------------------------------------------------------

struct Next {
  void* (*malloc)(std::size_t);
  void (*free)(void*);
  void* (*calloc)(std::size_t, std::size_t);
  void* (*realloc)(void*, std::size_t);
  void* (*memalign)(std::size_t, std::size_t);
  int (*posix_memalign)(void**, std::size_t, std::size_t);
  std::size_t (*usable_size)(void*);
};
constinit Next next{};
enum : int { unknown, looking, known };
constinit std::atomic<int> found{unknown};

// dlsym itself may allocate before `next` is known: a little static memory for that, never freed.
alignas(16) constinit std::byte early[16 << 10] = {};
constinit std::atomic<std::size_t> early_used{0};

bool is_early(const void* p) noexcept {
  return static_cast<std::size_t>(static_cast<const std::byte*>(p) - early) < sizeof early;
}

void* early_block(std::size_t bytes) noexcept {
  bytes = (bytes + 15) & ~std::size_t{15};
  const std::size_t at = early_used.fetch_add(bytes, std::memory_order_relaxed);  // relaxed: only the place counts
  return at + bytes <= sizeof early ? early + at : nullptr;
}

template <typename Function>
void look_up(Function& function, const char* name) noexcept {
  function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

/// False while the functions are being looked up by this very call.
bool find_next() noexcept {
  int expected = unknown;
  // Acquire pairs with the release below.
  if (!found.compare_exchange_strong(expected, looking, std::memory_order_acquire)) return expected == known;
  look_up(next.malloc, "malloc");
  look_up(next.free, "free");
  look_up(next.calloc, "calloc");
  look_up(next.realloc, "realloc");
  look_up(next.memalign, "memalign");
  look_up(next.posix_memalign, "posix_memalign");
  look_up(next.usable_size, "malloc_usable_size");
  found.store(known, std::memory_order_release);
  return true;
}

bool have_next() noexcept {
  return found.load(std::memory_order_acquire) == known || find_next();  // acquire: `next` is written
}

// --- the shared part -----------------------------------------------------------------------------------------------

alignas(Arena) constinit std::byte arena_memory[sizeof(Arena)] = {};  // static, never destroyed: malloc outlives everything
constinit std::atomic<Arena*> the_arena{nullptr};
// Relaxed reads suffice for is_shared: whoever has one of our blocks received it in a way that orders these stores before.
constinit std::atomic<std::uintptr_t> shared_base{0};
constinit std::atomic<std::size_t> shared_bytes{0};
constinit std::atomic<bool> is_forked_child{false};
constinit heddle::sys::ProgramHeap description{-1, nullptr, 0};
constinit std::uint64_t inode = 0;

class KeepErrno {
 public:
  KeepErrno() noexcept : value_(errno) {}
  ~KeepErrno() { errno = value_; }

 private:
  int value_;
};

bool is_shared(const void* p) noexcept {
  return reinterpret_cast<std::uintptr_t>(p) - shared_base.load(std::memory_order_relaxed) <
         shared_bytes.load(std::memory_order_relaxed);
}

void start() noexcept {
  int fd = memfd_create("heddle-heap", MFD_CLOEXEC);
  if (fd < 0) return;
  // A high number: scripts and programs use low ones (`exec 3>file`) without asking.
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(std::min<rlim_t>(limit.rlim_cur / 2, 600)));
  if (high >= 0) {
    close(fd);
    fd = high;
  }
  void* base = MAP_FAILED;
  std::size_t bytes = std::size_t{1} << 38;
  rlimit space{};
  if (getrlimit(RLIMIT_AS, &space)) space.rlim_cur = RLIM_INFINITY;
  for (; bytes >= std::size_t{1} << 28; bytes /= 4) {
    // Under a limit on address space most of it is left to others, above all to the mappings of MPI_Init.
    if (space.rlim_cur != RLIM_INFINITY && bytes > space.rlim_cur / 4) continue;
    if (ftruncate(fd, static_cast<off_t>(bytes))) continue;
    base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base != MAP_FAILED) break;
  }
  if (base == MAP_FAILED) {
    close(fd);
    return;
  }
  madvise(base, bytes, MADV_HUGEPAGE);  // takes effect where the system offers huge pages for shared memory
  Arena::Settings settings;
  settings.base = static_cast<std::byte*>(base);
  settings.bytes = bytes;
  settings.fd = fd;
  settings.granule = page;
  settings.commit = Arena::touching_can_fail(fd);
  Arena* arena = new (arena_memory) Arena;
  arena->start(settings);
  struct stat info;
  if (!fstat(fd, &info)) inode = info.st_ino;
  description = {fd, settings.base, bytes};
  pthread_atfork([] { the_arena.load(std::memory_order_relaxed)->before_fork(); },
                 [] { the_arena.load(std::memory_order_relaxed)->after_fork_in_parent(); },
                 [] {
                   is_forked_child.store(true, std::memory_order_relaxed);
                   the_arena.load(std::memory_order_relaxed)->after_fork_in_child();
                 });
  shared_base.store(reinterpret_cast<std::uintptr_t>(base), std::memory_order_relaxed);
  shared_bytes.store(bytes, std::memory_order_relaxed);
  the_arena.store(arena, std::memory_order_release);  // pairs with the acquire in `arena`
}

Arena* arena() noexcept {
  if (Arena* made = the_arena.load(std::memory_order_acquire)) [[likely]] return made;
  static constinit pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, start);
  return the_arena.load(std::memory_order_acquire);
}

/// A block of the shared part, or nullptr when it has none.
[[gnu::noinline]] void* take(std::size_t bytes, std::size_t alignment, bool* zeroed = nullptr) noexcept {
  const KeepErrno keep;
  Arena* it = arena();
  return it ? it->allocate(bytes, alignment, zeroed) : nullptr;
}

[[gnu::cold]] void complain(const char* text) noexcept {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
  std::abort();
}

[[gnu::noinline]] void give(void* p) noexcept {
  const KeepErrno keep;
  switch (the_arena.load(std::memory_order_acquire)->release(p)) {
    case Arena::Release::done: return;
    case Arena::Release::freed_before: return complain("heddle: free() of a block of the shared heap that is free\n");
    default: return complain("heddle: free() of a pointer into the middle of a block of the shared heap\n");
  }
}

[[gnu::noinline]] void* move(void* p, std::size_t bytes) noexcept {
  Arena* it = the_arena.load(std::memory_order_acquire);
  const std::size_t old = it->size_of(p);
  if (!old) complain("heddle: realloc() of what is no block of the shared heap\n");
  if (bytes >= threshold) {
    const KeepErrno keep;
    if (it->resize(p, bytes)) return p;
  }
  void* moved = bytes >= threshold ? take(bytes, page) : nullptr;
  if (!moved) moved = next.malloc(bytes);
  if (!moved) return nullptr;
  std::memcpy(moved, p, std::min(old, bytes));
  give(p);
  return moved;
}

}  // namespace

#define HEDDLE_EXPORT extern "C" [[gnu::visibility("default")]]

HEDDLE_EXPORT void* malloc(std::size_t bytes) noexcept {
  if (!have_next()) [[unlikely]] return early_block(bytes);
  if (bytes >= threshold)
    if (void* p = take(bytes, page)) return p;
  return next.malloc(bytes);
}

HEDDLE_EXPORT void free(void* p) noexcept {
  if (is_shared(p)) return give(p);
  if (!p || is_early(p)) return;
  if (have_next()) next.free(p);
}

HEDDLE_EXPORT void* calloc(std::size_t count, std::size_t size) noexcept {
  if (!have_next()) [[unlikely]] return early_block(count * size);  // untouched, so zero
  std::size_t bytes;
  if (!__builtin_mul_overflow(count, size, &bytes) && bytes >= threshold) {
    bool zeroed = false;
    if (void* p = take(bytes, page, &zeroed)) return zeroed ? p : std::memset(p, 0, bytes);
  }
  return next.calloc(count, size);
}

HEDDLE_EXPORT void* realloc(void* p, std::size_t bytes) noexcept {
  if (!p) return malloc(bytes);
  if (is_shared(p)) {
    if (bytes) return move(p, bytes);
    give(p);
    return nullptr;
  }
  if (is_early(p)) [[unlikely]] {
    const auto room = static_cast<std::size_t>(early + sizeof early - static_cast<std::byte*>(p));
    void* moved = malloc(bytes);
    if (moved) std::memcpy(moved, p, std::min(bytes, room));
    return moved;
  }
  if (!have_next()) [[unlikely]] return nullptr;
  if (bytes >= threshold) {
    if (void* moved = take(bytes, page)) {
      std::memcpy(moved, p, std::min(next.usable_size(p), bytes));
      next.free(p);
      return moved;
    }
  }
  return next.realloc(p, bytes);
}

HEDDLE_EXPORT void* reallocarray(void* p, std::size_t count, std::size_t size) noexcept {
  std::size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  return realloc(p, bytes);
}

HEDDLE_EXPORT void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  if (!have_next()) [[unlikely]] return nullptr;
  if (bytes >= threshold && std::has_single_bit(alignment))
    if (void* p = take(bytes, alignment)) return p;
  return next.memalign(alignment, bytes);
}

HEDDLE_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept { return memalign(alignment, bytes); }

HEDDLE_EXPORT int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) noexcept {
  if (!have_next()) [[unlikely]] return ENOMEM;
  if (bytes >= threshold && std::has_single_bit(alignment) && alignment >= sizeof(void*))
    if (void* p = take(bytes, alignment)) return *result = p, 0;
  return next.posix_memalign(result, alignment, bytes);
}

HEDDLE_EXPORT void* valloc(std::size_t bytes) noexcept { return memalign(page, bytes); }

HEDDLE_EXPORT void* pvalloc(std::size_t bytes) noexcept { return memalign(page, (bytes + page - 1) & ~(page - 1)); }

HEDDLE_EXPORT std::size_t malloc_usable_size(void* p) noexcept {
  if (is_shared(p)) return the_arena.load(std::memory_order_acquire)->size_of(p);
  return p && !is_early(p) && have_next() ? next.usable_size(p) : 0;
}

HEDDLE_EXPORT const heddle::sys::ProgramHeap* heddle_program_heap_1() {
  struct stat info;
  if (is_forked_child.load(std::memory_order_relaxed) || !arena()) return nullptr;
  // A program may have closed what it did not open.
  return fstat(description.fd, &info) == 0 && info.st_ino == inode ? &description : nullptr;
}
