// Layouts: normalised, shared, immutable descriptions of where the bytes of a datatype are, in packing order.
//
// The same tree serves two readers. The *typed* layout of a datatype knows the basic type of every block
// (MPI_Get_elements, external32); its *plan* has forgotten the types, so that neighbours of different types are one
// block. Both are normalised while they are built: adjacent blocks are merged, regular lists become loops, loops of
// loops collapse where strides allow. A layout's memory is bounded by the length of the description, never by the
// number of elements: a vector of 10^9 blocks is one node.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/basic_type.hpp"

namespace heddle {

/// One node. Displacements are in bytes from the address of the element; `size` > 0 always (a layout without data is
/// nullptr). Reference counted: types made of one another share nodes.
struct Layout {
  enum class Shape : std::uint8_t {
    block,   ///< `size` bytes at `offset`
    loop,    ///< `count` times `child`, the i-th at offset + i*stride
    blocks,  ///< `count` blocks: the i-th of `block` bytes (or lengths[i]) at offset + offsets[i]
    items,   ///< `count` repeated children: see Item
  };
  /// Member of `items`: `count` times `child`, the j-th at offset + j*stride. Packed bytes before it: `packed`.
  struct Item {
    std::int64_t offset, count, stride, packed;
    const Layout* child;
  };

  mutable std::atomic<std::int32_t> references{1};
  Shape shape = Shape::block;
  BasicType basic = 0;             ///< of all blocks below; 0: mixed, or types forgotten
  bool typed = false;              ///< blocks know their basic types
  std::int64_t size = 0;           ///< packed bytes
  std::int64_t elements = 0;       ///< basic elements (typed only)
  std::int64_t external = 0;       ///< bytes in external32 (typed only)
  std::int64_t low = 0, high = 0;  ///< all bytes lie in [low, high)
  std::int64_t offset = 0;
  std::int64_t count = 1;
  std::int64_t stride = 0;
  const Layout* child = nullptr;

  std::int64_t block = 0;           ///< blocks: common length, or 0 when `lengths` are used
  std::int64_t* offsets = nullptr;  ///< blocks
  std::int64_t* lengths = nullptr;  ///< blocks of unequal length
  std::int64_t* packed = nullptr;   ///< blocks of unequal length: packed bytes before the i-th
  Item* items = nullptr;
  mutable std::atomic<const Layout*> stripped{nullptr};  ///< the plan made of this typed node, kept for its next user

  [[nodiscard]] std::int64_t block_length(std::int64_t i) const noexcept { return lengths ? lengths[i] : block; }
};

void release_layout(const Layout* layout) noexcept;

/// Owner of one reference.
class LayoutRef {
 public:
  LayoutRef() = default;
  explicit LayoutRef(const Layout* owned) noexcept : layout_(owned) {}
  LayoutRef(const LayoutRef& other) noexcept : layout_(other.layout_) {
    if (layout_) layout_->references.fetch_add(1, std::memory_order_relaxed);
  }
  LayoutRef(LayoutRef&& other) noexcept : layout_(std::exchange(other.layout_, nullptr)) {}
  LayoutRef& operator=(LayoutRef other) noexcept {
    std::swap(layout_, other.layout_);
    return *this;
  }
  ~LayoutRef() {
    if (layout_) release_layout(layout_);
  }
  /// A further reference to a layout that someone else owns.
  static LayoutRef share(const Layout* layout) noexcept {
    if (layout) layout->references.fetch_add(1, std::memory_order_relaxed);
    return LayoutRef(layout);
  }
  [[nodiscard]] const Layout* get() const noexcept { return layout_; }
  [[nodiscard]] const Layout* take() noexcept { return std::exchange(layout_, nullptr); }
  const Layout* operator->() const noexcept { return layout_; }
  explicit operator bool() const noexcept { return layout_ != nullptr; }

 private:
  const Layout* layout_ = nullptr;
};

/// The makers return false when memory is out or a displacement or size leaves 63 bits; `result` may come out empty (no
/// data). `bytes` bytes of one basic type (0: untyped) at displacement 0.
[[nodiscard]] bool make_block(BasicType basic, std::int64_t bytes, LayoutRef& result) noexcept;
/// `count` times `child`, `stride` bytes apart.
[[nodiscard]] bool make_loop(const Layout* child, std::int64_t count, std::int64_t stride, LayoutRef& result) noexcept;
/// `layout`, displaced by `offset` bytes.
[[nodiscard]] bool make_shifted(const Layout* layout, std::int64_t offset, LayoutRef& result) noexcept;
/// The same layout without types.
[[nodiscard]] bool make_plan(const Layout* layout, LayoutRef& result) noexcept;

/// How many basic elements the first `bytes` packed bytes hold, or -1 when they end inside one. \pre typed, bytes <=
/// layout.size
std::int64_t elements_in(const Layout& layout, std::int64_t bytes) noexcept;

/// The packed bytes of the first `elements` basic elements. \pre typed, elements <= layout.elements
std::int64_t bytes_of(const Layout& layout, std::int64_t elements) noexcept;

/// Collects pieces in packing order, merging while they come, and makes the shortest layout for them.
///
/// Short children are taken apart so that their blocks merge with the neighbours; the number of blocks that appear this
/// way is bounded, so the memory stays proportional to what was described.
class SequenceBuilder {
 public:
  explicit SequenceBuilder(bool typed) noexcept : typed_(typed) {}
  SequenceBuilder(const SequenceBuilder&) = delete;
  SequenceBuilder& operator=(const SequenceBuilder&) = delete;
  ~SequenceBuilder();

  /// Appends `count` times `layout`, the j-th at offset + j*stride. False when memory is out or an address overflows.
  [[nodiscard]] bool add(std::int64_t offset, std::int64_t count, std::int64_t stride, const Layout* layout) noexcept;
  [[nodiscard]] bool finish(LayoutRef& result) noexcept;

 private:
  /// A block (child == nullptr) or a child with its own structure (owned reference).
  struct Part {
    std::int64_t offset, count, stride;  ///< block: count is its length
    const Layout* child;
    BasicType basic;
  };
  bool append(std::int64_t offset, std::int64_t count, std::int64_t stride, const Layout* layout) noexcept;
  bool add_block(std::int64_t offset, std::int64_t bytes, BasicType basic) noexcept;
  bool add_child(std::int64_t offset, std::int64_t count, std::int64_t stride, const Layout* layout) noexcept;
  bool reserve() noexcept;
  bool all_blocks(std::int64_t first, std::int64_t n, LayoutRef& result) const noexcept;
  bool mixed(LayoutRef& result) const noexcept;

  bool typed_;
  Part* parts_ = nullptr;
  std::int64_t size_ = 0, capacity_ = 0;
  std::int64_t taken_apart_ = 0, added_ = 0;
  std::int64_t low_ = 0, high_ = 0;  // bounds of what was added
};

}  // namespace heddle
