// Copying the bytes of a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace heddle::sys {

/// The sizes that `copy_bytes` copies without a call: 8 to 16 bytes, the most common small messages.
inline constexpr std::size_t copied_inline = 16;
inline bool is_copied_inline(std::size_t n) noexcept { return n - 8 <= copied_inline - 8; }

/// Copies `n` bytes between blocks that do not overlap; `n` may be 0, and the pointers null then. 8 to 16 bytes go as two words that may
/// overlap each other, read before they are written.
inline void copy_bytes(void* to, const void* from, std::size_t n) noexcept {
  if (is_copied_inline(n)) [[likely]] {
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
