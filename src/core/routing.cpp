#include "core/routing.hpp"

#include <atomic>

namespace heddle {

Lane lane_of_thread() noexcept {
  static std::atomic<unsigned> next{0};
  static thread_local const Lane lane = lane_at(next.fetch_add(1, std::memory_order_relaxed));
  return lane;
}

}  // namespace heddle
