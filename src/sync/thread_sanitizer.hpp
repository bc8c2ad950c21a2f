// What ThreadSanitizer cannot see: an order between two threads of this process that goes by way of another process.
//
// It watches one process. When thread A fills shared memory, another process consumes it and says so, and thread B, which has heard
// that, fills it again, then A's writes come before B's; the sanitizer knows only that both wrote. Code calls the first function
// where the data leave and the second where the answer is heard. The store that makes them leave comes after the first call, so it
// is not covered: who uses its place again calls the third. Without the sanitizer all are nothing.
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

/// Looks at a place that its next owner may be filling with ordinary stores meanwhile: for a hint, where any value will do. The sanitizer is
/// kept from looking, for it would be right: nothing orders the two.
#if defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize("thread"), noinline)) inline std::uint64_t glance_at(const std::atomic<std::uint64_t>& place) noexcept {
  return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(&place), __ATOMIC_RELAXED);
}
#else
inline std::uint64_t glance_at(const std::atomic<std::uint64_t>& place) noexcept { return place.load(std::memory_order_relaxed); }
#endif

}  // namespace heddle::sync
