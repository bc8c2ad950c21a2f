#include "rma/stripes.hpp"

#include <cstring>
#include <mutex>

#include "transport/shm/heap.hpp"

namespace heddle::rma {
namespace {

sync::StripeLocks* locks = nullptr;  // never freed: blocks of 8 KiB that the next window needs again

}  // namespace

sync::StripeLocks* own_stripes() noexcept { return locks; }

bool make_stripes() noexcept {
  static std::mutex once;
  std::lock_guard hold(once);
  if (locks) return true;
  void* block = shm::allocate(sizeof *locks, sync::cache_line);
  if (!block) return false;
  std::memset(block, 0, sizeof *locks);
  locks = static_cast<sync::StripeLocks*>(block);
  return true;
}

}  // namespace heddle::rma
