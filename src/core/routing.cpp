#include "core/routing.hpp"

#include <atomic>

namespace heddle {

unsigned lane_of_thread() noexcept {
  static std::atomic<unsigned> next{0};
  static thread_local const unsigned lane = next.fetch_add(1, std::memory_order_relaxed) % 64;
  return lane;
}

}  // namespace heddle
