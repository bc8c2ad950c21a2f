// How a plan is executed. Two walks over the same tree:
//
//   part    finds where a range of the packed stream begins and ends; it touches only the edges of the range;
//   whole   copies n complete repetitions of a node. The repetition is passed down, so that short inner structure is
//   turned inside
//           out: a struct of three members, repeated a million times, is three strided loops over a tile that stays in
//           the cache, and nothing is interpreted per element.
//
// Both ends in strided kernels with a fixed block size (1 … 16 bytes and common multiples), or memcpy for long blocks.
#include "core/datatype_copy.hpp"

#include <algorithm>
#include <cstring>

namespace heddle {
namespace {

using std::int64_t;

constexpr int64_t tile_bytes = 8 * 1024;  // of packed data: with its user side it stays in a first-level cache
constexpr int64_t few = 4;                // loops around a block that are shorter than this are turned inside out …
constexpr int64_t several = 16;           // … and loops around anything else

/// `count` steps of `user` bytes on the user's side and `packed` bytes in the packed stream.
struct Stride {
  int64_t count, user, packed;
};

/// Copies one block. Pack: user → packed; otherwise packed → user.
template <bool Pack, std::size_t N>
[[gnu::always_inline]] inline void move_fixed(UserAddress user, std::byte* packed) noexcept {
  if constexpr (Pack)
    __builtin_memcpy(packed, reinterpret_cast<const void*>(user), N);
  else
    __builtin_memcpy(reinterpret_cast<void*>(user), packed, N);
}

template <bool Pack>
[[gnu::always_inline]] inline void move(UserAddress user, std::byte* packed, int64_t n) noexcept {
  if constexpr (Pack)
    std::memcpy(packed, reinterpret_cast<const void*>(user), static_cast<std::size_t>(n));
  else
    std::memcpy(reinterpret_cast<void*>(user), packed, static_cast<std::size_t>(n));
}

/// A block of unknown but mostly short length, without a call up to 32 bytes (two overlapping moves of half the length
/// or more).
template <bool Pack>
[[gnu::always_inline]] inline void move_short(UserAddress user, std::byte* packed, int64_t n) noexcept {
  if (n > 32) return move<Pack>(user, packed, n);
  if (n >= 16) {
    move_fixed<Pack, 16>(user, packed);
    return move_fixed<Pack, 16>(user + static_cast<UserAddress>(n) - 16, packed + n - 16);
  }
  if (n >= 8) {
    move_fixed<Pack, 8>(user, packed);
    return move_fixed<Pack, 8>(user + static_cast<UserAddress>(n) - 8, packed + n - 8);
  }
  if (n >= 4) {
    move_fixed<Pack, 4>(user, packed);
    return move_fixed<Pack, 4>(user + static_cast<UserAddress>(n) - 4, packed + n - 4);
  }
  if (n >= 2) {
    move_fixed<Pack, 2>(user, packed);
    return move_fixed<Pack, 2>(user + static_cast<UserAddress>(n) - 2, packed + n - 2);
  }
  move_fixed<Pack, 1>(user, packed);
}

/// Calls kernel<N>() with N the block length where there is a kernel for it, kernel<0>() for any other.
template <typename Kernel>
[[gnu::always_inline]] inline void with_block_length(int64_t bytes, Kernel&& kernel) noexcept {
  switch (bytes) {
    case 1:
      return kernel.template operator()<1>();
    case 2:
      return kernel.template operator()<2>();
    case 3:
      return kernel.template operator()<3>();
    case 4:
      return kernel.template operator()<4>();
    case 6:
      return kernel.template operator()<6>();
    case 8:
      return kernel.template operator()<8>();
    case 12:
      return kernel.template operator()<12>();
    case 16:
      return kernel.template operator()<16>();
    case 20:
      return kernel.template operator()<20>();
    case 24:
      return kernel.template operator()<24>();
    case 32:
      return kernel.template operator()<32>();
    case 40:
      return kernel.template operator()<40>();
    case 48:
      return kernel.template operator()<48>();
    case 64:
      return kernel.template operator()<64>();
    case 128:
      return kernel.template operator()<128>();
    default:
      return kernel.template operator()<0>();
  }
}

template <bool Pack, std::size_t N>
[[gnu::always_inline]] inline void move_block(UserAddress user, std::byte* packed, int64_t bytes) noexcept {
  if constexpr (N)
    move_fixed<Pack, N>(user, packed);
  else
    move_short<Pack>(user, packed, bytes);
}

/// Gathers four blocks of 4 or two of 8 bytes into one 16-byte store: a core loads more blocks per cycle than it
/// stores.
template <std::size_t N>
[[gnu::always_inline]] inline void gather16(UserAddress a, UserAddress b, UserAddress c, UserAddress d,
                                            std::byte* packed) noexcept {
  if constexpr (N == 4) {
    using Word [[gnu::may_alias, gnu::aligned(1)]] = std::uint32_t;
    using Vector [[gnu::vector_size(16)]] = std::uint32_t;
    const Vector v = {*reinterpret_cast<const Word*>(a), *reinterpret_cast<const Word*>(b),
                      *reinterpret_cast<const Word*>(c), *reinterpret_cast<const Word*>(d)};
    __builtin_memcpy(packed, &v, 16);
  } else {
    static_assert(N == 8);
    using Word [[gnu::may_alias, gnu::aligned(1)]] = std::uint64_t;
    using Vector [[gnu::vector_size(16)]] = std::uint64_t;
    const Vector v = {*reinterpret_cast<const Word*>(a), *reinterpret_cast<const Word*>(b)};
    const Vector w = {*reinterpret_cast<const Word*>(c), *reinterpret_cast<const Word*>(d)};
    __builtin_memcpy(packed, &v, 16);
    __builtin_memcpy(packed + 16, &w, 16);
  }
}

/// Four blocks at once, which lie back to back in the packed stream.
template <bool Pack, std::size_t N>
[[gnu::always_inline]] inline void move_four(UserAddress a, UserAddress b, UserAddress c, UserAddress d,
                                             std::byte* packed, int64_t bytes) noexcept {
  if constexpr (Pack && (N == 4 || N == 8)) {
    gather16<N>(a, b, c, d, packed);
  } else {
    move_block<Pack, N>(a, packed, bytes);
    move_block<Pack, N>(b, packed + bytes, bytes);
    move_block<Pack, N>(c, packed + 2 * bytes, bytes);
    move_block<Pack, N>(d, packed + 3 * bytes, bytes);
  }
}

/// One strided run. Dense: the blocks are back to back in the packed stream.
template <bool Pack, std::size_t N, bool Dense>
[[gnu::always_inline]] inline void strided_run(UserAddress u, std::byte* p, int64_t bytes, Stride by) noexcept {
  const UserAddress step = static_cast<UserAddress>(by.user);
  const int64_t packed_step = Dense ? (N ? static_cast<int64_t>(N) : bytes) : by.packed;
  int64_t j = 0;
  for (; j + 4 <= by.count; j += 4) {
    if constexpr (Dense) {
      move_four<Pack, N>(u, u + step, u + 2 * step, u + 3 * step, p, packed_step);
    } else {
      move_block<Pack, N>(u, p, bytes);
      move_block<Pack, N>(u + step, p + packed_step, bytes);
      move_block<Pack, N>(u + 2 * step, p + 2 * packed_step, bytes);
      move_block<Pack, N>(u + 3 * step, p + 3 * packed_step, bytes);
    }
    u += 4 * step;
    p += 4 * packed_step;
  }
  for (; j < by.count; ++j) {
    move_block<Pack, N>(u, p, bytes);
    u += step;
    p += packed_step;
  }
}

/// Two loops around one block length. The inner loop is the strided copy everything else leads to.
template <bool Pack>
void strided(UserAddress user, std::byte* packed, int64_t bytes, Stride outer, Stride inner) noexcept {
  with_block_length(bytes, [=]<std::size_t N>() {
    for (int64_t i = 0; i < outer.count; ++i) {
      const UserAddress u = user + static_cast<UserAddress>(i * outer.user);
      std::byte* p = packed + i * outer.packed;
      if (inner.packed == bytes)
        strided_run<Pack, N, true>(u, p, bytes, inner);
      else
        strided_run<Pack, N, false>(u, p, bytes, inner);
    }
  });
}

/// Blocks of one length at listed offsets, repeated.
template <bool Pack>
void listed(UserAddress user, std::byte* packed, int64_t bytes, const int64_t* offsets, int64_t n,
            Stride outer) noexcept {
  with_block_length(bytes, [=]<std::size_t N>() {
    const int64_t step = N ? static_cast<int64_t>(N) : bytes;
    for (int64_t i = 0; i < outer.count; ++i) {
      const UserAddress u = user + static_cast<UserAddress>(i * outer.user);
      std::byte* p = packed + i * outer.packed;
      int64_t k = 0;
      for (; k + 4 <= n; k += 4, p += 4 * step)
        move_four<Pack, N>(u + static_cast<UserAddress>(offsets[k]), u + static_cast<UserAddress>(offsets[k + 1]),
                           u + static_cast<UserAddress>(offsets[k + 2]), u + static_cast<UserAddress>(offsets[k + 3]),
                           p, step);
      for (; k < n; ++k, p += step) move_block<Pack, N>(u + static_cast<UserAddress>(offsets[k]), p, bytes);
    }
  });
}

/// Blocks of listed lengths, once.
template <bool Pack>
void listed_unequal(UserAddress user, std::byte* packed, const int64_t* offsets, const int64_t* lengths,
                    int64_t n) noexcept {
  for (int64_t k = 0; k < n; ++k) {
    move_short<Pack>(user + static_cast<UserAddress>(offsets[k]), packed, lengths[k]);
    packed += lengths[k];
  }
}

constexpr Stride once{1, 0, 0};

/// Calls use(user, packed, Stride) for tiles of a repetition of a node of `size` bytes.
template <typename Use>
void in_tiles(UserAddress user, std::byte* packed, Stride by, int64_t size, Use&& use) noexcept {
  const int64_t tile = std::max<int64_t>(1, tile_bytes / size);
  for (int64_t i = 0; i < by.count; i += tile)
    use(user + static_cast<UserAddress>(i * by.user), packed + i * by.packed,
        Stride{std::min(tile, by.count - i), by.user, by.packed});
}

/// Copies all of `node`, repeated as `by` says.
template <bool Pack>
void whole(const Layout& node, UserAddress user, std::byte* packed, Stride by) noexcept;

/// Copies `inner.count` times `child` within each of `by.count` repetitions.
template <bool Pack>
void whole_nested(const Layout& child, UserAddress user, std::byte* packed, Stride by, Stride inner) noexcept {
  if (by.count == 1) return whole<Pack>(child, user, packed, inner);
  if (inner.count == 1) return whole<Pack>(child, user, packed, by);
  if (by.user == inner.count * inner.user && by.packed == inner.count * inner.packed)  // goes on at the same pace
    return whole<Pack>(child, user, packed, {by.count * inner.count, inner.user, inner.packed});
  const bool simple = child.shape == Layout::Shape::block;
  if (inner.count >= (simple ? few : several) || inner.count >= by.count) {
    if (simple) return strided<Pack>(user + static_cast<UserAddress>(child.offset), packed, child.size, by, inner);
    for (int64_t i = 0; i < by.count; ++i)
      whole<Pack>(child, user + static_cast<UserAddress>(i * by.user), packed + i * by.packed, inner);
    return;
  }
  in_tiles(user, packed, by, child.size * inner.count, [&](UserAddress u, std::byte* p, Stride tile) {
    for (int64_t j = 0; j < inner.count; ++j)
      whole<Pack>(child, u + static_cast<UserAddress>(j * inner.user), p + j * inner.packed, tile);
  });
}

template <bool Pack>
void whole_items(const Layout& node, UserAddress user, std::byte* packed, Stride by) noexcept {
  for (int64_t k = 0; k < node.count; ++k) {
    const Layout::Item& item = node.items[k];
    whole_nested<Pack>(*item.child, user + static_cast<UserAddress>(item.offset), packed + item.packed, by,
                       {item.count, item.stride, item.child->size});
  }
}

template <bool Pack>
void whole(const Layout& node, UserAddress user, std::byte* packed, Stride by) noexcept {
  user += static_cast<UserAddress>(node.offset);
  switch (node.shape) {
    case Layout::Shape::block:
      if (by.count == 1) return move<Pack>(user, packed, node.size);
      if (by.user == node.size && by.packed == node.size) return move<Pack>(user, packed, node.size * by.count);
      return strided<Pack>(user, packed, node.size, once, by);
    case Layout::Shape::loop:
      return whole_nested<Pack>(*node.child, user, packed, by, {node.count, node.stride, node.child->size});
    case Layout::Shape::blocks:
      if (!node.lengths) return listed<Pack>(user, packed, node.block, node.offsets, node.count, by);
      if (by.count >= few && node.count <= by.count && node.size * few <= tile_bytes)
        return in_tiles(user, packed, by, node.size, [&](UserAddress u, std::byte* p, Stride tile) {
          for (int64_t k = 0; k < node.count; ++k)
            strided<Pack>(u + static_cast<UserAddress>(node.offsets[k]), p + node.packed[k], node.lengths[k], once,
                          tile);
        });
      for (int64_t i = 0; i < by.count; ++i)
        listed_unequal<Pack>(user + static_cast<UserAddress>(i * by.user), packed + i * by.packed, node.offsets,
                             node.lengths, node.count);
      return;
    case Layout::Shape::items:
      if (by.count == 1) return whole_items<Pack>(node, user, packed, by);
      return in_tiles(user, packed, by, node.size,
                      [&](UserAddress u, std::byte* p, Stride tile) { whole_items<Pack>(node, u, p, tile); });
  }
}

/// A range of the packed stream of one node: `bytes` from `skip` on.
template <bool Pack>
void part(const Layout& node, UserAddress user, std::byte* packed, int64_t skip, int64_t bytes) noexcept;

/// The same of `count` times `child`.
template <bool Pack>
void part_repeated(const Layout& child, UserAddress user, std::byte* packed, int64_t stride, int64_t skip,
                   int64_t bytes) noexcept {
  if (skip) {
    const int64_t first = skip / child.size, inside = skip - first * child.size;
    user += static_cast<UserAddress>(first * stride);
    if (inside) {
      const int64_t head = std::min(bytes, child.size - inside);
      part<Pack>(child, user, packed, inside, head);
      user += static_cast<UserAddress>(stride);
      packed += head;
      bytes -= head;
    }
  }
  if (const int64_t n = bytes < child.size ? 0 : bytes / child.size) {
    whole<Pack>(child, user, packed, {n, stride, child.size});
    user += static_cast<UserAddress>(n * stride);
    packed += n * child.size;
    bytes -= n * child.size;
  }
  if (bytes) part<Pack>(child, user, packed, 0, bytes);
}

template <bool Pack>
void part_blocks(const Layout& node, UserAddress user, std::byte* packed, int64_t skip, int64_t bytes) noexcept {
  int64_t k, inside;
  if (node.lengths) {
    k = std::upper_bound(node.packed, node.packed + node.count, skip) - node.packed - 1;
    inside = skip - node.packed[k];
  } else {
    k = skip / node.block;
    inside = skip - k * node.block;
  }
  if (inside) {
    const int64_t head = std::min(bytes, node.block_length(k) - inside);
    move<Pack>(user + static_cast<UserAddress>(node.offsets[k] + inside), packed, head);
    packed += head;
    bytes -= head;
    ++k;
  }
  if (bytes == 0) return;
  int64_t n, length;  // complete blocks from k on, and their bytes
  if (node.lengths) {
    const int64_t end = node.packed[k] + bytes;
    n = end == node.size ? node.count - k
                         : std::upper_bound(node.packed + k, node.packed + node.count, end) - (node.packed + k) - 1;
    length = (k + n < node.count ? node.packed[k + n] : node.size) - node.packed[k];
    listed_unequal<Pack>(user, packed, node.offsets + k, node.lengths + k, n);
  } else {
    n = bytes / node.block;
    length = n * node.block;
    listed<Pack>(user, packed, node.block, node.offsets + k, n, once);
  }
  if (bytes > length) move<Pack>(user + static_cast<UserAddress>(node.offsets[k + n]), packed + length, bytes - length);
}

template <bool Pack>
void part(const Layout& node, UserAddress user, std::byte* packed, int64_t skip, int64_t bytes) noexcept {
  if (bytes == node.size) return whole<Pack>(node, user, packed, once);
  user += static_cast<UserAddress>(node.offset);
  switch (node.shape) {
    case Layout::Shape::block:
      return move<Pack>(user + static_cast<UserAddress>(skip), packed, bytes);
    case Layout::Shape::loop:
      return part_repeated<Pack>(*node.child, user, packed, node.stride, skip, bytes);
    case Layout::Shape::blocks:
      return part_blocks<Pack>(node, user, packed, skip, bytes);
    case Layout::Shape::items: {
      const Layout::Item* item = std::upper_bound(node.items, node.items + node.count, skip,
                                                  [](int64_t at, const Layout::Item& i) { return at < i.packed; }) -
                                 1;
      skip -= item->packed;
      for (; bytes; ++item, skip = 0) {
        const int64_t here = std::min(bytes, item->count * item->child->size - skip);
        part_repeated<Pack>(*item->child, user + static_cast<UserAddress>(item->offset), packed, item->stride, skip,
                            here);
        packed += here;
        bytes -= here;
      }
      return;
    }
  }
}

template <bool Pack>
void range(const Layout& plan, UserAddress user, int64_t count, int64_t stride, int64_t skip, int64_t bytes,
           std::byte* packed) noexcept {
  if (bytes == 0) return;
  if (skip == 0 && bytes == count * plan.size) return whole<Pack>(plan, user, packed, {count, stride, plan.size});
  part_repeated<Pack>(plan, user, packed, stride, skip, bytes);
}

}  // namespace

void pack_range(const Layout& plan, UserAddress user, int64_t count, int64_t stride, int64_t skip, int64_t bytes,
                std::byte* packed) noexcept {
  range<true>(plan, user, count, stride, skip, bytes, packed);
}

void unpack_range(const Layout& plan, UserAddress user, int64_t count, int64_t stride, int64_t skip, int64_t bytes,
                  const std::byte* packed) noexcept {
  range<false>(plan, user, count, stride, skip, bytes, const_cast<std::byte*>(packed));
}

}  // namespace heddle
