// SequenceBuilder: lists of pieces become the shortest layout there is for them.
#include <algorithm>
#include <cstdlib>
#include <new>
#include <numeric>

#include "core/datatype_layout.hpp"
#include "core/datatype_node.hpp"

namespace heddle {

using namespace detail;

namespace {

int64_t* make_array(int64_t n) noexcept {
  return static_cast<int64_t*>(std::malloc(static_cast<std::size_t>(n) * sizeof(int64_t)));
}

constexpr int64_t shortest_cut = 4;  // blocks are not cut to pieces shorter than this
constexpr int64_t short_child = 8;   // a child of up to so many blocks is taken apart …
constexpr int64_t taken_apart_free =
    64;  // … while the blocks gained stay below this many, or below twice the pieces given
}  // namespace

SequenceBuilder::~SequenceBuilder() {
  for (int64_t i = 0; i < size_; ++i)
    if (parts_[i].child) release_layout(parts_[i].child);
  std::free(parts_);
}

bool SequenceBuilder::reserve() noexcept {
  if (size_ < capacity_) return true;
  const int64_t capacity = capacity_ ? capacity_ * 2 : 8;
  void* grown = std::realloc(parts_, static_cast<std::size_t>(capacity) * sizeof(Part));
  if (!grown) return false;
  parts_ = static_cast<Part*>(grown);
  capacity_ = capacity;
  return true;
}

bool SequenceBuilder::add_block(int64_t offset, int64_t bytes, BasicType basic) noexcept {
  if (!typed_) basic = 0;
  if (size_ > 0) {
    Part& last = parts_[size_ - 1];
    if (!last.child && last.basic == basic && last.offset + last.count == offset) {
      last.count += bytes;
      return true;
    }
  }
  if (!reserve()) return false;
  parts_[size_++] = {offset, bytes, 0, nullptr, basic};
  return true;
}

bool SequenceBuilder::add_child(int64_t offset, int64_t count, int64_t stride, const Layout* layout) noexcept {
  if (!reserve()) return false;
  parts_[size_++] = {offset, count, stride, retained(layout), 0};
  return true;
}

bool SequenceBuilder::add(int64_t offset, int64_t count, int64_t stride, const Layout* layout) noexcept {
  if (!layout || count == 0) return true;
  ++added_;
  {
    // Addresses, and distances between them, are proved to fit here, once: what follows calculates without checks.
    Checked c;
    const int64_t reach = c.mul(count - 1, stride);
    const int64_t low = c.add(c.add(offset, layout->low), std::min<int64_t>(0, reach));
    const int64_t high = c.add(c.add(offset, layout->high), std::max<int64_t>(0, reach));
    c.add(offset, layout->offset);
    c.mul(count, layout->size);
    low_ = size_ ? std::min(low_, low) : low;
    high_ = size_ ? std::max(high_, high) : high;
    c.sub(high_, low_);
    if (!c.ok()) return false;
  }
  return append(offset, count, stride, layout);
}

bool SequenceBuilder::append(int64_t offset, int64_t count, int64_t stride, const Layout* layout) noexcept {
  using Shape = Layout::Shape;
  if (layout->shape == Shape::block && (count == 1 || stride == layout->size))
    return add_block(offset + layout->offset, layout->size * count, layout->basic);
  const bool cheap =
      layout->count <= short_child && taken_apart_ + layout->count <= std::max(taken_apart_free, 2 * added_);
  if (count == 1 && cheap) {
    if (layout->shape == Shape::blocks) {
      taken_apart_ += layout->count;
      for (int64_t i = 0; i < layout->count; ++i)
        if (!add_block(offset + layout->offset + layout->offsets[i], layout->block_length(i), layout->basic))
          return false;
      return true;
    }
    if (layout->shape == Shape::loop && layout->child->shape == Shape::block) {
      taken_apart_ += layout->count;
      for (int64_t i = 0; i < layout->count; ++i)
        if (!add_block(offset + layout->offset + i * layout->stride + layout->child->offset, layout->child->size,
                       layout->basic))
          return false;
      return true;
    }
    if (layout->shape == Shape::items) {
      taken_apart_ += layout->count;
      for (int64_t i = 0; i < layout->count; ++i) {
        const Layout::Item& item = layout->items[i];
        if (!append(offset + layout->offset + item.offset, item.count, item.stride, item.child)) return false;
      }
      return true;
    }
  }
  if (count > 1 && layout->shape == Shape::loop && follows(*layout, stride)) {
    LayoutRef longer;
    return make_loop(layout, count, stride, longer) && add_child(offset, 1, 0, longer.get());
  }
  return add_child(offset, count, stride, layout);
}

bool SequenceBuilder::all_blocks(int64_t first, int64_t n, LayoutRef& result) const noexcept {
  const Part* p = parts_ + first;
  Layout* node = new (std::nothrow) Layout;
  if (!node) return false;
  LayoutRef owner(node);
  bool equal = true, regular = true;
  int64_t common = 0;  // divisor of all lengths
  Checked c;
  for (int64_t i = 0; i < n; ++i) {
    equal = equal && p[i].count == p[0].count;
    common = std::gcd(common, p[i].count);
    regular = regular && (i < 2 || p[i].offset - p[i - 1].offset == p[1].offset - p[0].offset);
    Layout piece;
    set_block(piece, p[i].basic, p[i].offset, p[i].count);
    node->low = i ? std::min(node->low, piece.low) : piece.low;
    node->high = i ? std::max(node->high, piece.high) : piece.high;
    if (!accumulate(*node, piece, 1)) return false;
  }
  node->basic = p[0].basic;
  node->typed = typed_;
  if (n == 1) {
    set_block(*node, p[0].basic, p[0].offset, p[0].count);
    node->typed = typed_;
    result = std::move(owner);
    return true;
  }
  node->count = n;
  if (equal && regular) {
    LayoutRef block;
    if (!make_block(p[0].basic, p[0].count, block)) return false;
    node->shape = Layout::Shape::loop;
    node->offset = p[0].offset;
    node->stride = p[1].offset - p[0].offset;
    node->child = block.take();
    result = std::move(owner);
    return true;
  }
  node->shape = Layout::Shape::blocks;
  // Blocks of few different lengths are better cut to their common divisor: a loop over one length has no branches.
  const bool cut = !equal && common >= shortest_cut && node->size / common <= 2 * n;
  if (cut) node->count = node->size / common;
  node->block = equal ? p[0].count : cut ? common : 0;
  node->offsets = make_array(node->count);
  if (!node->offsets) return false;
  if (cut) {
    int64_t k = 0;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t at = 0; at < p[i].count; at += common) node->offsets[k++] = p[i].offset + at;
    result = std::move(owner);
    return true;
  }
  if (!equal) {
    node->lengths = make_array(n);
    node->packed = make_array(n);
    if (!node->lengths || !node->packed) return false;
  }
  int64_t packed = 0;
  for (int64_t i = 0; i < n; ++i) {
    node->offsets[i] = p[i].offset;
    if (equal) continue;
    node->lengths[i] = p[i].count;
    node->packed[i] = packed;
    packed += p[i].count;
  }
  result = std::move(owner);
  return true;
}

bool SequenceBuilder::mixed(LayoutRef& result) const noexcept {
  // The same child at regular distances is a loop, whatever the child.
  const Part& head = parts_[0];
  bool regular = head.child != nullptr;
  for (int64_t i = 1; regular && i < size_; ++i) {
    const Part& p = parts_[i];
    regular = p.child == head.child && p.count == head.count && p.stride == head.stride &&
              p.offset - parts_[i - 1].offset == parts_[1].offset - parts_[0].offset;
  }
  if (regular) {
    LayoutRef inner, outer;
    return make_loop(head.child, head.count, head.stride, inner) &&
           make_loop(inner.get(), size_, size_ > 1 ? parts_[1].offset - head.offset : 0, outer) &&
           make_shifted(outer.get(), head.offset, result);
  }

  Layout* node = new (std::nothrow) Layout;
  if (!node) return false;
  LayoutRef owner(node);
  node->shape = Layout::Shape::items;
  node->typed = typed_;
  node->count = 0;
  node->items = static_cast<Layout::Item*>(std::malloc(static_cast<std::size_t>(size_) * sizeof(Layout::Item)));
  if (!node->items) return false;
  bool one_basic = true;
  LayoutRef block;  // of the last lone block: its equals share it
  for (int64_t i = 0; i < size_;) {
    const Part& p = parts_[i];
    Layout::Item item{p.offset, p.count, p.stride, node->size, p.child};
    int64_t n = 1;
    LayoutRef child;
    if (p.child) {
      child = LayoutRef::share(p.child);
    } else {
      while (i + n < size_ && !parts_[i + n].child && parts_[i + n].basic == p.basic) ++n;
      if (n == 1) {
        if (!block || block->size != p.count || block->basic != p.basic) {
          if (!make_block(p.basic, p.count, block)) return false;
        }
        child = block;
      } else {
        if (!all_blocks(i, n, child)) return false;
        item.offset = 0;
      }
      item.count = 1;
      item.stride = 0;
    }
    item.child = child.take();
    node->items[node->count++] = item;  // owned by the node from here on
    if (!accumulate(*node, *item.child, item.count) ||
        !cover(*node, node->count == 1, *item.child, item.offset, item.count, item.stride))
      return false;
    if (node->count == 1) node->basic = item.child->basic;
    one_basic = one_basic && item.child->basic == node->basic;
    i += n;
  }
  if (!one_basic) node->basic = 0;
  result = std::move(owner);
  return true;
}

bool SequenceBuilder::finish(LayoutRef& result) noexcept {
  result = LayoutRef();
  if (size_ == 0) return true;
  bool blocks_only = true;
  for (int64_t i = 0; blocks_only && i < size_; ++i)
    blocks_only = !parts_[i].child && parts_[i].basic == parts_[0].basic;
  return blocks_only ? all_blocks(0, size_, result) : mixed(result);
}

}  // namespace heddle
