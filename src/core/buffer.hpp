// Memory of the user: where it is, how many elements it has, how they lie.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "core/datatype.hpp"
#include "sys/copy.hpp"

namespace heddle {

/// `count` elements of `type` at `base`: what an operation sends from or receives into. A value, which owns nothing.
///
/// Above core/, users' data is copied, packed and unpacked through these functions only: memory that the processor cannot reach would get
/// its branch here.
struct Buffer {
  void* base = nullptr;
  MPI_Count count = 0;
  Datatype* type = nullptr;

  Buffer() noexcept = default;
  Buffer(const void* memory, MPI_Count elements, Datatype& of) noexcept : base(const_cast<void*>(memory)), count(elements), type(&of) {}

  /// Bytes of data, packed.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(type->size); }
  /// Whether the data is one block of memory, which begins at `data()`.
  [[nodiscard]] bool contiguous() const noexcept { return type->contiguous; }
  [[nodiscard]] std::byte* data() const noexcept { return displaced(base, type->true_lb); }

  /// Copies packed bytes [offset, offset+n) out of the buffer. \pre they exist, type->committed
  void pack(std::uint64_t offset, void* to, std::size_t n) const noexcept {
    if (contiguous()) [[likely]] return sys::copy_bytes(to, data() + offset, n);
    PackCursor cursor{static_cast<MPI_Count>(offset)};
    heddle::pack(base, count, *type, cursor, to, n);
  }
  /// The same into the buffer.
  void unpack(std::uint64_t offset, const void* from, std::size_t n) const noexcept {
    if (contiguous()) [[likely]] return sys::copy_bytes(data() + offset, from, n);
    PackCursor cursor{static_cast<MPI_Count>(offset)};
    heddle::unpack(base, count, *type, cursor, from, n);
  }
};

/// Copies between two buffers of this process, which are the same memory or do not overlap.
/// \param bytes that the smaller of the two holds
inline void copy(const Buffer& from, const Buffer& to, std::uint64_t bytes) noexcept {
  if (!from.contiguous() || !to.contiguous()) [[unlikely]] return copy_typed(from.base, from.count, *from.type, to.base, to.count, *to.type);
  if (from.data() != to.data()) sys::copy_bytes(to.data(), from.data(), bytes);
}
inline void copy(const Buffer& from, const Buffer& to) noexcept {
  const std::uint64_t have = from.bytes(), room = to.bytes();
  copy(from, to, have < room ? have : room);
}

}  // namespace heddle
