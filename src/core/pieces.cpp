#include "core/pieces.hpp"

#include "core/datatype_copy.hpp"
#include "core/datatype_layout.hpp"

namespace heddle {
namespace {

using std::int64_t;
using std::uint64_t;

/// An address as a number; sums of addresses and displacements wrap around.
int64_t as_offset(UserAddress address) noexcept { return static_cast<int64_t>(address); }

/// Gathers blocks in packing order, making them longer and more regular as they come.
class Gathering {
 public:
  Gathering(Blocks* to, int room) noexcept : to_(to), room_(room) {}
  [[nodiscard]] int size() const noexcept { return size_; }

  /// False when there is no room.
  bool add(UserAddress at, int64_t bytes, int64_t stride, int64_t count) noexcept {
    if (count > 1 && stride == bytes) {
      bytes *= count;
      count = 1;
    }
    if (size_ && extend(to_[size_ - 1], at, bytes, stride, count)) return true;
    if (size_ == room_) return false;
    to_[size_++] = {as_offset(at), bytes, count > 1 ? stride : 0, count};
    return true;
  }

 private:
  static bool extend(Blocks& last, UserAddress at, int64_t bytes, int64_t stride, int64_t count) noexcept {
    const int64_t distance = as_offset(at - static_cast<UserAddress>(last.offset));
    if (last.count == 1) {
      if (distance == last.bytes && count == 1) {
        last.bytes += bytes;
        return true;
      }
      if (bytes != last.bytes || (count > 1 && distance != stride)) return false;
      last.stride = distance;
      last.count += count;
      return true;
    }
    if (bytes != last.bytes || (count > 1 && stride != last.stride)) return false;
    if (static_cast<uint64_t>(distance) != static_cast<uint64_t>(last.stride) * static_cast<uint64_t>(last.count)) return false;
    last.count += count;
    return true;
  }

  Blocks* to_;
  int room_, size_ = 0;
};

/// Takes blocks of bytes as they are.
struct Bytes {
  Gathering& to;
  bool add(UserAddress at, int64_t bytes, int64_t stride, int64_t count) noexcept { return to.add(at, bytes, stride, count); }
};

/// Takes the blocks of the members of pairs and finds where each pair begins: the first byte of every `size` in packing order. The others need
/// not be looked at, for all pairs have the same form.
struct Elements {
  Gathering& to;
  int64_t size, extent;
  int64_t inside = 0;  ///< packed bytes since the last pair began, modulo size

  bool add(UserAddress at, int64_t bytes, int64_t stride, int64_t count) noexcept {
    if (inside == 0 && bytes == size) return to.add(at, extent, stride, count);
    for (int64_t i = 0; i < count; ++i, at += static_cast<UserAddress>(stride)) {
      const int64_t first = inside ? size - inside : 0;
      if (first < bytes) {
        const int64_t n = (bytes - first + size - 1) / size;
        if (!to.add(at + static_cast<UserAddress>(first), extent, size, n)) return false;
      }
      inside = (inside + bytes) % size;
    }
    return true;
  }
};

/// Gives `to` the blocks of a range of the packed stream of one node: `bytes` from `skip` on. False when it has no more room.
template <typename To>
bool walk(const Layout& node, UserAddress at, int64_t skip, int64_t bytes, To& to) noexcept;

/// The same of repetitions of `child`, as many as it takes.
template <typename To>
bool walk_repeated(const Layout& child, UserAddress at, int64_t stride, int64_t skip, int64_t bytes, To& to) noexcept {
  const auto step = static_cast<UserAddress>(stride);
  if (skip) {
    const int64_t first = skip / child.size, inside = skip - first * child.size;
    at += static_cast<UserAddress>(first) * step;
    if (inside) {
      const int64_t head = std::min(bytes, child.size - inside);
      if (!walk(child, at, inside, head, to)) return false;
      at += step;
      bytes -= head;
    }
  }
  if (child.shape == Layout::Shape::block) {
    if (const int64_t n = bytes / child.size) {
      if (!to.add(at + static_cast<UserAddress>(child.offset), child.size, stride, n)) return false;
      at += static_cast<UserAddress>(n) * step;
      bytes -= n * child.size;
    }
  }
  for (; bytes > 0; at += step, bytes -= child.size)
    if (!walk(child, at, 0, std::min(bytes, child.size), to)) return false;
  return true;
}

template <typename To>
bool walk_blocks(const Layout& node, UserAddress at, int64_t skip, int64_t bytes, To& to) noexcept {
  int64_t k;
  if (node.lengths) {
    k = std::upper_bound(node.packed, node.packed + node.count, skip) - node.packed - 1;
    skip -= node.packed[k];
  } else {
    k = skip / node.block;
    skip -= k * node.block;
  }
  for (; bytes > 0; ++k, skip = 0) {
    const int64_t here = std::min(bytes, node.block_length(k) - skip);
    if (!to.add(at + static_cast<UserAddress>(node.offsets[k] + skip), here, 0, 1)) return false;
    bytes -= here;
  }
  return true;
}

template <typename To>
bool walk(const Layout& node, UserAddress at, int64_t skip, int64_t bytes, To& to) noexcept {
  at += static_cast<UserAddress>(node.offset);
  switch (node.shape) {
    case Layout::Shape::block:
      return to.add(at + static_cast<UserAddress>(skip), bytes, 0, 1);
    case Layout::Shape::loop:
      return walk_repeated(*node.child, at, node.stride, skip, bytes, to);
    case Layout::Shape::blocks:
      return walk_blocks(node, at, skip, bytes, to);
    case Layout::Shape::items: {
      const auto begins = [](int64_t position, const Layout::Item& i) { return position < i.packed; };
      const Layout::Item* item = std::upper_bound(node.items, node.items + node.count, skip, begins) - 1;
      skip -= item->packed;
      for (; bytes > 0; ++item, skip = 0) {
        const int64_t here = std::min(bytes, item->count * item->child->size - skip);
        if (!walk_repeated(*item->child, at + static_cast<UserAddress>(item->offset), item->stride, skip, here, to)) return false;
        bytes -= here;
      }
      return true;
    }
  }
  return true;
}

}  // namespace

namespace detail {

void PieceSide::find() noexcept {
  if (next_ == filled_) {
    Gathering gathering(batch_, room);
    const auto base = reinterpret_cast<UserAddress>(buffer_.base);
    const Datatype& type = *buffer_.type;
    const auto all = static_cast<int64_t>(buffer_.bytes());
    if (elements_) {
      const BasicInfo& info = basic_info(elements_);
      Elements to{gathering, info.size, info.extent};
      const int64_t skip = found_ / info.extent * info.size;
      walk_repeated(*type.plan, base, type.extent, skip, all - skip, to);
    } else {
      Bytes to{gathering};
      walk_repeated(*type.plan, base, type.extent, found_, all - found_, to);
    }
    filled_ = gathering.size();
    next_ = 0;
  }
  now_ = batch_[next_++];
  left_ = now_.bytes;
  found_ += now_.total();
}

}  // namespace detail

namespace {

/// Whether `count` blocks that touch [low, high) relative to displacements `stride` apart, from `at` on, stay in [0, size).
bool inside(int64_t low, int64_t high, int64_t at, int64_t count, int64_t stride, int64_t size) noexcept {
  int64_t reach, first, last;
  if (__builtin_mul_overflow(count - 1, stride, &reach) || __builtin_add_overflow(at, low, &first) ||
      __builtin_add_overflow(first, std::min<int64_t>(0, reach), &first) || __builtin_add_overflow(at, high, &last) ||
      __builtin_add_overflow(last, std::max<int64_t>(0, reach), &last))
    return false;
  return first >= 0 && last <= size;
}

/// Small for small numbers of either sign.
uint64_t folded(uint64_t n) noexcept { return n << 1 ^ (n >> 63 ? ~uint64_t{0} : 0); }
uint64_t unfolded(uint64_t n) noexcept { return n >> 1 ^ (n & 1 ? ~uint64_t{0} : 0); }

/// Seven bits in each byte, the lowest first; all but the last have the eighth set.
std::byte* put_number(std::byte* to, uint64_t n) noexcept {
  for (; n >= 0x80; n >>= 7) *to++ = static_cast<std::byte>(n | 0x80);
  *to++ = static_cast<std::byte>(n);
  return to;
}

/// Where the last of some blocks ends, in arithmetic that wraps around.
uint64_t end_of(const Blocks& b) noexcept {
  return static_cast<uint64_t>(b.offset) + static_cast<uint64_t>(b.bytes) + static_cast<uint64_t>(b.count - 1) * static_cast<uint64_t>(b.stride);
}

}  // namespace

bool within(const Datatype& type, MPI_Count count, int64_t displacement, int64_t size) noexcept {
  if (count == 0 || type.size == 0) return true;
  int64_t high;
  if (__builtin_add_overflow(type.true_lb, type.true_extent, &high)) return false;
  return inside(type.true_lb, high, displacement, count, type.extent, size);
}

bool within(const Blocks& blocks, int64_t size, int64_t padding) noexcept {
  int64_t total;
  if (blocks.bytes <= 0 || blocks.count <= 0 || __builtin_mul_overflow(blocks.bytes, blocks.count, &total)) return false;
  return inside(0, blocks.bytes - padding, blocks.offset, blocks.count, blocks.stride, size);
}

// What is written: bytes * 2, plus 1 where there is more than one block; the offset; then, if more than one, their number and stride.

bool BlocksEncoder::add(const Blocks& blocks) noexcept {
  if (static_cast<std::size_t>(end_ - at_) < longest) return false;
  const bool several = blocks.count > 1;
  at_ = put_number(at_, static_cast<uint64_t>(blocks.bytes) << 1 | (several ? 1 : 0));
  at_ = put_number(at_, folded(static_cast<uint64_t>(blocks.offset) - last_));
  if (several) {
    at_ = put_number(at_, static_cast<uint64_t>(blocks.count));
    at_ = put_number(at_, folded(static_cast<uint64_t>(blocks.stride)));
  }
  last_ = end_of(blocks);
  return true;
}

int64_t BlocksEncoder::add(Pieces<1>& pieces, int64_t limit) noexcept {
  int64_t done = 0;
  Piece<1> piece;
  while (done < limit && static_cast<std::size_t>(end_ - at_) >= longest && pieces.next(piece, limit - done)) {
    (void)add(piece.blocks(0));
    done += piece.total();
  }
  return done;
}

bool BlocksDecoder::number(uint64_t& n) noexcept {
  n = 0;
  for (int shift = 0; at_ < end_ && shift < 64; shift += 7) {
    const auto byte = static_cast<uint64_t>(*at_++);
    if (shift == 63 && byte > 1) return false;
    n |= (byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool BlocksDecoder::next(Blocks& blocks) noexcept {
  if (at_ == end_ || !ok_) return false;
  ok_ = false;
  uint64_t bytes, offset, count = 1, stride = 0;
  if (!number(bytes) || !number(offset)) return false;
  if (bytes & 1 && (!number(count) || !number(stride))) return false;
  blocks = {static_cast<int64_t>(last_ + unfolded(offset)), static_cast<int64_t>(bytes >> 1), static_cast<int64_t>(unfolded(stride)),
            static_cast<int64_t>(count)};
  int64_t padding = 0;
  if (elements_) {
    const BasicInfo& info = basic_info(elements_);
    if (blocks.bytes % info.extent) return false;
    padding = info.extent - (info.is_pair() ? info.second_offset + basic_info(info.second).size : info.size);
  }
  if (!within(blocks, size_, padding)) return false;
  last_ = end_of(blocks);
  return ok_ = true;
}

}  // namespace heddle
