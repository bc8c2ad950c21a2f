#include "core/accumulate.hpp"

#include <algorithm>
#include <cstring>

#include "core/basic_type.hpp"
#include "core/pieces.hpp"
#include "sys/error.hpp"

namespace heddle {
namespace {

using std::int64_t;
using std::uint64_t;

constexpr std::size_t tile_bytes = 2048;  // staged at once: three tiles stay in the first-level cache

bool is_aligned(const void* address, std::size_t to) noexcept { return (reinterpret_cast<std::uintptr_t>(address) & (to - 1)) == 0; }

template <typename T>
T load(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
/// Atomic, so that it is one store whatever the compiler makes of it. Relaxed: the order is the lock's business. \pre aligned
template <typename T>
void store(std::byte* to, T value) noexcept {
  __atomic_store_n(reinterpret_cast<T*>(to), value, __ATOMIC_RELAXED);
}

/// Copies `bytes` bytes in stores of T, so that aligned elements of that size or less change at once. A whole memcpy may store a short block
/// byte by byte. \pre `to` is aligned to T
template <typename T>
std::size_t store_words(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  std::size_t done = 0;
  for (; done + sizeof(T) <= bytes; done += sizeof(T)) store<T>(to + done, load<T>(from + done));
  return done;
}

/// Copies elements of `size` bytes, a power of two up to 8. \pre `to` is aligned to it
void store_elements(std::byte* to, const std::byte* from, std::size_t bytes, std::size_t size) noexcept {
  // A word of 8 bytes at a multiple of 8 holds whole elements. Before and after the words: element by element.
  const std::size_t before = size == 8 ? 0 : std::min(bytes, -reinterpret_cast<std::uintptr_t>(to) & 7);
  std::size_t done = 0;
  const auto one_by_one = [&](std::size_t until) {
    switch (size) {
      case 1:
        done += store_words<std::uint8_t>(to + done, from + done, until - done);
        break;
      case 2:
        done += store_words<std::uint16_t>(to + done, from + done, until - done);
        break;
      case 4:
        done += store_words<std::uint32_t>(to + done, from + done, until - done);
        break;
    }
  };
  one_by_one(before);
  done += store_words<uint64_t>(to + done, from + done, bytes - done);
  one_by_one(bytes);
}

/// A member of a pair, in one store where it is aligned and not longer than 8 bytes.
void copy_member(std::byte* to, const std::byte* from, std::size_t size) noexcept {
  switch (size) {
    case 2:
      return void(std::memcpy(to, from, 2));
    case 4:
      return void(std::memcpy(to, from, 4));
    case 8:
      return void(std::memcpy(to, from, 8));
    default:
      std::memcpy(to, from, size);
  }
}

/// Copies the members of pairs whose distances are given, and nothing between them.
void copy_pairs(const BasicInfo& info, std::byte* to, std::size_t to_step, std::size_t to_second, const std::byte* from, std::size_t from_step,
                std::size_t from_second, int64_t n) noexcept {
  const std::size_t first = basic_info(info.first).size, second = basic_info(info.second).size;
  for (int64_t i = 0; i < n; ++i, to += to_step, from += from_step) {
    copy_member(to, from, first);
    copy_member(to + to_second, from + from_second, second);
  }
}

// What follows comes in pairs: a short way for one element of the common lengths (which has no holes), and a function for the rest, apart so
// that it costs the short way no registers.

[[gnu::noinline]] void replace_run(const BasicInfo& info, const std::byte* origin, std::byte* target, int64_t n) noexcept {
  if (info.has_holes()) return copy_pairs(info, target, info.extent, info.second_offset, origin, info.extent, info.second_offset, n);
  const auto bytes = static_cast<std::size_t>(n) * info.size;
  // What is stored at once: a complex number or a pair in its parts, each aligned as the whole.
  const std::size_t unit = std::min(info.size, info.alignment);
  if (unit <= 8 && is_aligned(target, unit)) return store_elements(target, origin, bytes, unit);
  std::memcpy(target, origin, bytes);
}

/// target[i] = origin[i].
inline void replace(const BasicInfo& info, const std::byte* origin, std::byte* target, int64_t n) noexcept {
  if (n == 1 && info.size == 8 && is_aligned(target, 8)) return store(target, load<uint64_t>(origin));
  if (n == 1 && info.size == 4 && is_aligned(target, 4)) return store(target, load<std::uint32_t>(origin));
  replace_run(info, origin, target, n);
}

[[gnu::noinline]] void fetch_run(const BasicInfo& info, const std::byte* target, std::byte* fetched, int64_t n) noexcept {
  if (info.has_holes()) return copy_pairs(info, fetched, info.extent, info.second_offset, target, info.extent, info.second_offset, n);
  std::memcpy(fetched, target, static_cast<std::size_t>(n) * info.size);
}

/// A copy out of the target, whose lock we hold.
inline void fetch(const BasicInfo& info, const std::byte* target, std::byte* fetched, int64_t n) noexcept {
  if (n == 1 && info.size == 8) return void(std::memcpy(fetched, target, 8));
  if (n == 1 && info.size == 4) return void(std::memcpy(fetched, target, 4));
  fetch_run(info, target, fetched, n);
}

/// Where an address is not aligned, the operation goes through aligned copies.
[[gnu::noinline]] void combine_staged(OpKernel kernel, const BasicInfo& info, const std::byte* origin, std::byte* target, int64_t n) noexcept {
  alignas(64) std::byte left[tile_bytes], right[tile_bytes];
  const auto tile = static_cast<int64_t>(tile_bytes / info.extent);
  for (int64_t i = 0; i < n; i += tile) {
    const int64_t here = std::min(tile, n - i);
    fetch(info, origin + i * info.extent, left, here);
    fetch(info, target + i * info.extent, right, here);
    kernel(left, right, here);
    replace(info, right, target + i * info.extent, here);
  }
}

/// One stretch of elements, after what was fetched.
inline void combine(OpCode op, const BasicInfo& info, const std::byte* origin, std::byte* target, int64_t n) noexcept {
  if (op == OpCode::replace) return replace(info, origin, target, n);
  if (op == OpCode::no_op) return;
  const OpKernel kernel = find_kernel(op, info.value);
  const auto both = reinterpret_cast<std::uintptr_t>(origin) | reinterpret_cast<std::uintptr_t>(target);
  if ((both & (info.alignment - 1u)) == 0) [[likely]]
    return kernel(origin, target, n);
  combine_staged(kernel, info, origin, target, n);
}

int not_of_one_type(const char* what) noexcept {
  return error(MPI_ERR_TYPE, "an accumulate needs datatypes that are made of one predefined datatype, and the %s is not", what);
}

}  // namespace

int check_accumulate(const Op& op, const Datatype& origin, const Datatype& target) noexcept {
  if (!op.builtin)
    return error(MPI_ERR_OP, "an accumulate cannot use a user-defined operation: take a predefined one, MPI_REPLACE or MPI_NO_OP");
  if (origin.size == 0 || target.size == 0) return MPI_SUCCESS;
  if (origin.basic == 0) return not_of_one_type("origin's datatype");
  if (target.basic == 0) return not_of_one_type("target's datatype");
  if (origin.basic != target.basic)
    return error(MPI_ERR_TYPE, "the origin has elements of %s and the target of %s; an accumulate needs the same predefined datatype at both",
                 basic_info(origin.basic).name, basic_info(target.basic).name);
  if (op.code == OpCode::replace || op.code == OpCode::no_op || find_kernel(op.code, target.basic)) [[likely]]
    return MPI_SUCCESS;
  return error(MPI_ERR_OP, "%s is not defined for %s", op_name(op), basic_info(target.basic).name);
}

namespace {

/// A longer run: by tiles, so that the target is still in the cache for the second step.
[[gnu::noinline]] void accumulate_tiles(OpCode op, const BasicInfo& info, const std::byte* origin, std::byte* target, int64_t n,
                                        std::byte* fetched) noexcept {
  const auto tile = static_cast<int64_t>(2 * tile_bytes / info.extent);
  for (int64_t i = 0; i < n; i += tile) {
    const int64_t here = std::min(tile, n - i), at = i * info.extent;
    fetch(info, target + at, fetched + at, here);
    combine(op, info, origin + at, target + at, here);
  }
}

}  // namespace

void accumulate(OpCode op, BasicType basic, const void* origin, void* target, int64_t n, void* fetched) noexcept {
  const BasicInfo& info = basic_info(basic);
  const auto* from = static_cast<const std::byte*>(origin);
  auto* to = static_cast<std::byte*>(target);
  auto* out = static_cast<std::byte*>(fetched);
  if (out) {
    if (op == OpCode::no_op) return fetch(info, to, out, n);
    if (n != 1) return accumulate_tiles(op, info, from, to, n, out);
    fetch(info, to, out, 1);
  }
  combine(op, info, from, to, n);
}

void accumulate_packed(OpCode op, BasicType basic, const void* origin, void* target, int64_t n, void* fetched) noexcept {
  const BasicInfo& info = basic_info(basic);
  if (!info.has_holes()) [[likely]] return accumulate(op, basic, origin, target, n, fetched);
  alignas(64) std::byte spread[tile_bytes];
  const std::size_t first = basic_info(info.first).size;
  const auto* from = static_cast<const std::byte*>(origin);
  auto* to = static_cast<std::byte*>(target);
  auto* out = static_cast<std::byte*>(fetched);
  const auto tile = static_cast<int64_t>(tile_bytes / info.extent);
  for (int64_t i = 0; i < n; i += tile) {
    const int64_t here = std::min(tile, n - i);
    if (out) copy_pairs(info, out + i * info.size, info.size, first, to + i * info.extent, info.extent, info.second_offset, here);
    if (op == OpCode::no_op) continue;
    copy_pairs(info, spread, info.extent, info.second_offset, from + i * info.size, info.size, first, here);
    combine(op, info, spread, to + i * info.extent, here);
  }
}

namespace {

/// Scattered elements: walks all sides, and changes the lock with the stripe. The last side is the result's if there are three, or if
/// there is no origin.
template <int Sides>
[[gnu::noinline]] void accumulate_scattered(OpCode op, BasicType basic, const Buffer (&sides)[Sides], int origin, int target, int result,
                                            sync::StripeLocks& locks, uint64_t to_owner) noexcept {
  const auto extent = static_cast<uint64_t>(basic_info(basic).extent);
  sync::HeldStripe held(locks);
  Pieces<Sides> pieces(sides, basic);
  for (Piece<Sides> piece; pieces.next(piece);)
    for (int64_t turn = 0; turn < piece.count; ++turn) {
      std::byte* at = piece.pointer(target, turn);
      const std::byte* from = origin < 0 ? nullptr : piece.pointer(origin, turn);
      std::byte* out = result < 0 ? nullptr : piece.pointer(result, turn);
      for (auto left = static_cast<uint64_t>(piece.bytes) / extent; left;) {
        const uint64_t owner = reinterpret_cast<std::uintptr_t>(at) + to_owner;
        const uint64_t n = sync::StripeLocks::elements_here(owner, left, extent);
        held.move_to(owner);
        accumulate(op, basic, from, at, static_cast<int64_t>(n), out);
        left -= n;
        at += n * extent;
        if (from) from += n * extent;
        if (out) out += n * extent;
      }
    }
}

}  // namespace

void accumulate(OpCode op, BasicType basic, const Buffer& origin, const Buffer& target, const Buffer* result, sync::StripeLocks& locks,
                uint64_t to_owner) noexcept {
  const bool reads_origin = op != OpCode::no_op;
  if (!reads_origin && !result) return;
  const BasicInfo& info = basic_info(basic);
  const auto dense = [&](const Buffer& b) {
    return b.type->builtin || detail::PieceSide::is_dense(b, info.has_holes() ? basic : BasicType{0});
  };
  if (!dense(target) || (reads_origin && !dense(origin)) || (result && !dense(*result))) [[unlikely]] {
    if (!result) return accumulate_scattered<2>(op, basic, {origin, target}, 0, 1, -1, locks, to_owner);
    if (!reads_origin) return accumulate_scattered<2>(op, basic, {target, *result}, -1, 0, 1, locks, to_owner);
    return accumulate_scattered<3>(op, basic, {origin, target, *result}, 0, 1, 2, locks, to_owner);
  }
  const auto elements_of = [&](const Buffer& b) {
    return b.type->size == info.size ? static_cast<uint64_t>(b.count) : b.bytes() / info.size;
  };
  uint64_t n = elements_of(target);
  if (reads_origin) n = std::min(n, elements_of(origin));
  if (result) n = std::min(n, elements_of(*result));
  const std::byte* from = reads_origin ? origin.data() : nullptr;
  std::byte *to = target.data(), *out = result ? result->data() : nullptr;
  locks.for_each_chunk(reinterpret_cast<std::uintptr_t>(to) + to_owner, n, info.extent, [&](uint64_t, uint64_t here) {
    accumulate(op, basic, from, to, static_cast<int64_t>(here), out);
    const uint64_t bytes = here * info.extent;
    to += bytes;
    if (from) from += bytes;
    if (out) out += bytes;
  });
}

int check_compare_and_swap(const Datatype& type) noexcept {
  using R = Representation;
  const BasicInfo& info = basic_info(type.basic);
  // A predefined type or a duplicate of one.
  const bool one = type.basic != 0 && type.size == info.size && type.extent == info.extent && type.lb == 0 && type.true_lb == 0;
  const R r = info.representation;
  const bool integer = r >= R::i8 && r <= R::u64, logical = r >= R::l8 && r <= R::l128;
  const bool byte = type.basic == 0x47, character = type.basic == 0x43;  // MPI_BYTE; MPI_CHAR counts as an integer, as in reductions
  if (one && (integer || logical || byte || character)) [[likely]] return MPI_SUCCESS;
  return error(MPI_ERR_TYPE, "%s cannot be compared and swapped: it takes a predefined datatype for integers, logicals or bytes",
               one ? info.name : "a derived datatype");
}

namespace {

template <typename T>
bool swap_if_same(const std::byte* origin, const std::byte* compare, std::byte* target, std::byte* result) noexcept {
  const T old = load<T>(target), wanted = load<T>(compare);
  std::memcpy(result, &old, sizeof old);
  if (old != wanted) return false;
  const T value = load<T>(origin);
  if (is_aligned(target, sizeof(T))) [[likely]]
    store<T>(target, value);
  else
    std::memcpy(target, &value, sizeof value);
  return true;
}

}  // namespace

bool compare_and_swap(BasicType basic, const void* origin, const void* compare, void* target, void* result) noexcept {
  const auto *from = static_cast<const std::byte*>(origin), *wanted = static_cast<const std::byte*>(compare);
  auto *to = static_cast<std::byte*>(target), *out = static_cast<std::byte*>(result);
  switch (basic_info(basic).size) {
    case 1:
      return swap_if_same<std::uint8_t>(from, wanted, to, out);
    case 2:
      return swap_if_same<std::uint16_t>(from, wanted, to, out);
    case 4:
      return swap_if_same<std::uint32_t>(from, wanted, to, out);
    case 8:
      return swap_if_same<uint64_t>(from, wanted, to, out);
    default: {  // 16, for which few processors have one store
      const bool same = std::memcmp(to, wanted, 16) == 0;
      std::memcpy(out, to, 16);
      if (same) std::memcpy(to, from, 16);
      return same;
    }
  }
}

}  // namespace heddle
