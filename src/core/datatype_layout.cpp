#include "core/datatype_layout.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "core/datatype_node.hpp"

namespace heddle {

using namespace detail;

namespace {

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

}  // namespace heddle
