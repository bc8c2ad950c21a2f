// Copying the bytes of a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace heddle::sys {

/// Copies `n` bytes between blocks that do not overlap; `n` may be 0, and the pointers null then. The most common small messages, 8 to
/// 16 bytes, go as two words that may overlap each other, without a call.
inline void copy_bytes(void* to, const void* from, std::size_t n) noexcept {
  if (n - 8 <= 8) [[likely]] {
    std::uint64_t first, last;
    std::memcpy(&first, from, 8);
    std::memcpy(&last, static_cast<const std::byte*>(from) + n - 8, 8);
    std::memcpy(to, &first, 8);
    std::memcpy(static_cast<std::byte*>(to) + n - 8, &last, 8);
  } else if (n) {
    std::memcpy(to, from, n);
  }
}

}  // namespace heddle::sys
