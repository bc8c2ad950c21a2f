// Copying between a layout in user memory and its packed form: the loops that pack and unpack execute.
#pragma once

#include <cstdint>

#include "core/datatype_layout.hpp"

namespace heddle {

/// Addresses are numbers here: displacements from MPI_BOTTOM start at 0, where pointer arithmetic is not defined.
using UserAddress = std::uintptr_t;

/// Copies packed bytes [skip, skip+bytes) of `count` times `plan`, `stride` bytes apart from `user` on, to (from)
/// `packed`. Thread-safe; no allocation. Cost to begin anywhere: the depth of the plan, and a binary search in lists.
void pack_range(const Layout& plan, UserAddress user, std::int64_t count, std::int64_t stride, std::int64_t skip,
                std::int64_t bytes, std::byte* packed) noexcept;
void unpack_range(const Layout& plan, UserAddress user, std::int64_t count, std::int64_t stride, std::int64_t skip,
                  std::int64_t bytes, const std::byte* packed) noexcept;

}  // namespace heddle
