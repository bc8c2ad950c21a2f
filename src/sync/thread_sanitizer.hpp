// Tells ThreadSanitizer of an order it cannot see: between two threads of this process, by way of another process.
//
// The sanitizer watches one process. Thread A fills shared memory, another process consumes it and says so, and thread B, which read that,
// fills it again: A's writes happen before B's, but the sanitizer sees only two writes. Code calls the first function before it publishes
// the data and the second after it has read the answer. The publishing store itself comes after the first call and is not covered;
// whoever reuses its place calls the third. Without the sanitizer all are empty.
#pragma once

#include <atomic>
#include <cstdint>

#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace heddle::sync {

#if defined(__SANITIZE_THREAD__)
inline char beyond_the_process;  ///< its address stands for all other processes
inline void goes_to_another_process() noexcept { __tsan_release(&beyond_the_process); }
inline void heard_from_another_process() noexcept { __tsan_acquire(&beyond_the_process); }
inline constexpr bool in_thread_sanitizer = true;
#else
inline constexpr bool in_thread_sanitizer = false;
inline void goes_to_another_process() noexcept {}
inline void heard_from_another_process() noexcept {}
#endif

/// Another process has let go of `place`, where threads of this process once stored with release order.
template <typename T>
void taken_back_from_another_process([[maybe_unused]] const std::atomic<T>& place) noexcept {
  // Acquire pairs with that store: the order exists already, by way of the other process.
  if constexpr (in_thread_sanitizer) (void)place.load(std::memory_order_acquire);
}

/// Reads a place that its next owner may be filling with ordinary stores meanwhile: for a hint, where any value will do. Hidden from the
/// sanitizer, which would rightly report it: nothing orders the two.
#if defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize("thread"), noinline)) inline std::uint64_t glance_at(const std::atomic<std::uint64_t>& place) noexcept {
  return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(&place), __ATOMIC_RELAXED);
}
#else
inline std::uint64_t glance_at(const std::atomic<std::uint64_t>& place) noexcept { return place.load(std::memory_order_relaxed); }
#endif

}  // namespace heddle::sync
