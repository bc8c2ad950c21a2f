#include "core/fortran.hpp"

#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>

namespace heddle {
namespace {

struct Slot {
  std::atomic<bool> set{false};
  FortranBooleans values;
};
Slot slots[5];  // for 1, 2, 4, 8 and 16 bytes
std::mutex mutex;

Slot& slot_of(int size) noexcept { return slots[std::countr_zero(static_cast<unsigned>(size))]; }

}  // namespace

FortranBooleans fortran_booleans(int size) noexcept {
  const Slot& slot = slot_of(size);
  if (slot.set.load(std::memory_order_acquire)) return slot.values;  // pairs with the release in set_fortran_booleans
  FortranBooleans values{};
  values.truth[std::endian::native == std::endian::little ? 0 : size - 1] = std::byte{1};
  return values;
}

bool set_fortran_booleans(int size, const void* truth, const void* falsehood) noexcept {
  std::lock_guard lock(mutex);
  Slot& slot = slot_of(size);
  if (slot.set.load(std::memory_order_relaxed)) return false;
  std::memcpy(slot.values.truth, truth, static_cast<std::size_t>(size));
  std::memcpy(slot.values.falsehood, falsehood, static_cast<std::size_t>(size));
  slot.set.store(true, std::memory_order_release);  // pairs with the acquire in fortran_booleans
  return true;
}

}  // namespace heddle
