#include "core/datatype_layout.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <numeric>

namespace heddle {
namespace {

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

const Layout* retained(const Layout* layout) noexcept {
  layout->references.fetch_add(1, std::memory_order_relaxed);
  return layout;
}

int64_t* make_array(int64_t n) noexcept {
  return static_cast<int64_t*>(std::malloc(static_cast<std::size_t>(n) * sizeof(int64_t)));
}

/// Widens [low, high) of `node` by a child's bounds repeated `count` times at offset + j*stride.
bool cover(Layout& node, bool first, const Layout& child, int64_t offset, int64_t count, int64_t stride) noexcept {
  Checked c;
  const int64_t reach = c.mul(count - 1, stride);
  const int64_t low = c.add(c.add(offset, child.low), std::min<int64_t>(0, reach));
  const int64_t high = c.add(c.add(offset, child.high), std::max<int64_t>(0, reach));
  node.low = first ? low : std::min(node.low, low);
  node.high = first ? high : std::max(node.high, high);
  return c.ok();
}

/// Adds the sums of `count` children to those of `node`.
bool accumulate(Layout& node, const Layout& child, int64_t count) noexcept {
  Checked c;
  node.size = c.add(node.size, c.mul(child.size, count));
  node.elements = c.add(node.elements, c.mul(child.elements, count));
  node.external = c.add(node.external, c.mul(child.external, count));
  return c.ok();
}

void set_block(Layout& node, BasicType basic, int64_t offset, int64_t bytes) noexcept {
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
bool follows(const Layout& loop, int64_t stride) noexcept {
  int64_t length;
  return !__builtin_mul_overflow(loop.count, loop.stride, &length) && length == stride;
}

/// A copy of the head of a block or loop node, for changing its offset or length.
Layout* copy_head(const Layout& from) noexcept {
  Layout* node = new (std::nothrow) Layout;
  if (!node) return nullptr;
  node->shape = from.shape;
  node->basic = from.basic;
  node->typed = from.typed;
  node->size = from.size;
  node->elements = from.elements;
  node->external = from.external;
  node->low = from.low;
  node->high = from.high;
  node->offset = from.offset;
  node->count = from.count;
  node->stride = from.stride;
  if (from.child) node->child = retained(from.child);
  return node;
}

}  // namespace

void release_layout(const Layout* layout) noexcept {
  while (layout && layout->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    const Layout* next = layout->child;  // chains of single children are walked, not recursed into
    if (const Layout* plan = layout->stripped.load(std::memory_order_acquire)) release_layout(plan);
    if (layout->items) {
      for (int64_t i = 0; i < layout->count; ++i) release_layout(layout->items[i].child);
      std::free(layout->items);
    }
    std::free(layout->offsets);
    std::free(layout->lengths);
    std::free(layout->packed);
    delete layout;
    layout = next;
  }
}

bool make_block(BasicType basic, int64_t bytes, LayoutRef& result) noexcept {
  result = LayoutRef();
  if (bytes == 0) return true;
  Layout* node = new (std::nothrow) Layout;
  if (!node) return false;
  set_block(*node, basic, 0, bytes);
  result = LayoutRef(node);
  return true;
}

bool make_shifted(const Layout* layout, int64_t offset, LayoutRef& result) noexcept {
  if (!layout || offset == 0) {
    result = LayoutRef::share(layout);
    return true;
  }
  Checked c;
  const int64_t low = c.add(layout->low, offset), high = c.add(layout->high, offset);
  const int64_t start = c.add(layout->offset, offset);
  if (!c.ok()) return false;
  Layout* node;
  if (layout->shape == Layout::Shape::block || layout->shape == Layout::Shape::loop) {
    node = copy_head(*layout);
    if (!node) return false;
    node->offset = start;
  } else {  // the arrays stay with their node: a loop of one turn around it
    node = new (std::nothrow) Layout;
    if (!node) return false;
    node->shape = Layout::Shape::loop;
    node->basic = layout->basic;
    node->typed = layout->typed;
    (void)accumulate(*node, *layout, 1);
    node->offset = offset;
    node->child = retained(layout);
  }
  node->low = low;
  node->high = high;
  result = LayoutRef(node);
  return true;
}

bool make_loop(const Layout* child, int64_t count, int64_t stride, LayoutRef& result) noexcept {
  if (!child || count == 0) {
    result = LayoutRef();
    return true;
  }
  if (count == 1) {
    result = LayoutRef::share(child);
    return true;
  }
  // A loop of one turn is only a displacement: loop over what is inside it.
  int64_t offset = 0;
  if (child->shape == Layout::Shape::loop && child->count == 1) {
    offset = child->offset;
    child = child->child;
  }
  Layout* node = new (std::nothrow) Layout;
  if (!node) return false;
  LayoutRef owner(node);
  node->shape = Layout::Shape::loop;
  node->basic = child->basic;
  node->typed = child->typed;
  node->offset = offset;
  node->count = count;
  node->stride = stride;
  if (!accumulate(*node, *child, count) || !cover(*node, true, *child, offset, count, stride)) return false;

  if (child->shape == Layout::Shape::block && stride == child->size) {  // back to back: one block
    const int64_t start = offset + child->offset;
    set_block(*node, child->basic, start, node->size);
    node->count = 1;
    node->stride = 0;
  } else if (child->shape == Layout::Shape::loop && offset == 0 && follows(*child, stride)) {
    node->offset = child->offset;  // the turns of the inner loop go on at the same pace: one longer loop
    node->count = count * child->count;
    node->stride = child->stride;
    node->child = retained(child->child);
  } else {
    node->child = retained(child);
  }
  result = std::move(owner);
  return true;
}

bool make_plan(const Layout* layout, LayoutRef& result) noexcept {
  if (!layout || !layout->typed || layout->basic) {  // one basic type: merging could not do better without types
    result = LayoutRef::share(layout);
    return true;
  }
  if (const Layout* known = layout->stripped.load(std::memory_order_acquire)) {
    result = LayoutRef::share(known);
    return true;
  }
  LayoutRef plan;
  switch (layout->shape) {
    case Layout::Shape::block:
    case Layout::Shape::blocks:  // have a basic type: handled above
      return false;
    case Layout::Shape::loop: {
      LayoutRef child, loop;
      if (!make_plan(layout->child, child)) return false;
      if (!make_loop(child.get(), layout->count, layout->stride, loop)) return false;
      if (!make_shifted(loop.get(), layout->offset, plan)) return false;
      break;
    }
    case Layout::Shape::items: {
      SequenceBuilder builder(false);
      LayoutRef child;
      const Layout* of = nullptr;
      for (int64_t i = 0; i < layout->count; ++i) {
        const Layout::Item& item = layout->items[i];
        if (item.child != of && !make_plan(item.child, child)) return false;
        of = item.child;
        if (!builder.add(layout->offset + item.offset, item.count, item.stride, child.get())) return false;
      }
      if (!builder.finish(plan)) return false;
      break;
    }
  }
  const Layout* expected = nullptr;
  const Layout* mine = retained(plan.get());
  // Release pairs with the acquire above: who finds the plan sees it whole. Two makers may race; one plan is kept.
  if (!layout->stripped.compare_exchange_strong(expected, mine, std::memory_order_release, std::memory_order_relaxed))
    release_layout(mine);
  result = std::move(plan);
  return true;
}

int64_t elements_in(const Layout& layout, int64_t bytes) noexcept {
  if (bytes == layout.size) return layout.elements;
  const auto in_repeated = [](const Layout& child, int64_t n) -> int64_t {
    const int64_t whole = n / child.size, rest = n % child.size;
    const int64_t tail = rest ? elements_in(child, rest) : 0;
    return tail < 0 ? -1 : whole * child.elements + tail;
  };
  if (layout.basic) {
    const int64_t unit = basic_info(layout.basic).size;
    return bytes % unit ? -1 : bytes / unit;
  }
  if (layout.shape == Layout::Shape::loop) return in_repeated(*layout.child, bytes);
  int64_t sum = 0;
  for (int64_t i = 0; i < layout.count && bytes > 0; ++i) {  // items: blocks have a basic type
    const Layout::Item& item = layout.items[i];
    const int64_t here = std::min(bytes, item.count * item.child->size);
    const int64_t n = in_repeated(*item.child, here);
    if (n < 0) return -1;
    sum += n;
    bytes -= here;
  }
  return sum;
}

int64_t bytes_of(const Layout& layout, int64_t elements) noexcept {
  if (elements == layout.elements) return layout.size;
  if (layout.basic) return elements * basic_info(layout.basic).size;
  const auto in_repeated = [](const Layout& child, int64_t n) {
    const int64_t whole = n / child.elements, rest = n % child.elements;
    return whole * child.size + (rest ? bytes_of(child, rest) : 0);
  };
  if (layout.shape == Layout::Shape::loop) return in_repeated(*layout.child, elements);
  int64_t bytes = 0;
  for (int64_t i = 0; i < layout.count && elements > 0; ++i) {
    const Layout::Item& item = layout.items[i];
    const int64_t here = std::min(elements, item.count * item.child->elements);
    bytes += in_repeated(*item.child, here);
    elements -= here;
  }
  return bytes;
}

// --- SequenceBuilder -----------------------------------------------------------------------------------------------

namespace {
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
