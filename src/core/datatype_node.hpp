// What the makers of layouts share: checked sums, bounds, reference counts of nodes. Private to datatype_layout.cpp and
// datatype_sequence.cpp.
#pragma once

#include <algorithm>

#include "core/datatype_layout.hpp"

namespace heddle::detail {

using std::int64_t;

/// Arithmetic that remembers whether it left 63 bits.
class Checked {
 public:
  int64_t add(int64_t a, int64_t b) noexcept {
    int64_t r = 0;
    bad_ |= __builtin_add_overflow(a, b, &r);
    return r;
  }
  int64_t sub(int64_t a, int64_t b) noexcept {
    int64_t r = 0;
    bad_ |= __builtin_sub_overflow(a, b, &r);
    return r;
  }
  int64_t mul(int64_t a, int64_t b) noexcept {
    int64_t r = 0;
    bad_ |= __builtin_mul_overflow(a, b, &r);
    return r;
  }
  [[nodiscard]] bool ok() const noexcept { return !bad_; }

 private:
  bool bad_ = false;
};

/// A further reference to a node.
inline const Layout* retained(const Layout* layout) noexcept {
  layout->references.fetch_add(1, std::memory_order_relaxed);
  return layout;
}

/// Widens [low, high) of `node` by a child's bounds repeated `count` times at offset + j*stride.
inline bool cover(Layout& node, bool first, const Layout& child, int64_t offset, int64_t count,
                  int64_t stride) noexcept {
  Checked c;
  const int64_t reach = c.mul(count - 1, stride);
  const int64_t low = c.add(c.add(offset, child.low), std::min<int64_t>(0, reach));
  const int64_t high = c.add(c.add(offset, child.high), std::max<int64_t>(0, reach));
  node.low = first ? low : std::min(node.low, low);
  node.high = first ? high : std::max(node.high, high);
  return c.ok();
}

/// Adds the sums of `count` children to those of `node`.
inline bool accumulate(Layout& node, const Layout& child, int64_t count) noexcept {
  Checked c;
  node.size = c.add(node.size, c.mul(child.size, count));
  node.elements = c.add(node.elements, c.mul(child.elements, count));
  node.external = c.add(node.external, c.mul(child.external, count));
  return c.ok();
}

/// Makes `node` a block of one basic type (0: untyped).
inline void set_block(Layout& node, BasicType basic, int64_t offset, int64_t bytes) noexcept {
  node.shape = Layout::Shape::block;
  node.basic = basic;
  node.typed = basic != 0;
  node.offset = node.low = offset;
  node.high = offset + bytes;
  node.size = bytes;
  if (basic) {
    const BasicInfo& info = basic_info(basic);
    node.elements = bytes / info.size;
    node.external = node.elements * info.external;
  }
}

/// Whether a loop repeated every `stride` bytes goes on where its last turn left off.
inline bool follows(const Layout& loop, int64_t stride) noexcept {
  int64_t length;
  return !__builtin_mul_overflow(loop.count, loop.stride, &length) && length == stride;
}

}  // namespace heddle::detail
