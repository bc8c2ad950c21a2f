// Walking through buffers side by side: which bytes of one belong to which of the others, for those who move data without packing it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/buffer.hpp"

namespace heddle {

/// `count` blocks of `bytes` bytes, the i-th at offset + i*stride: what a vector is as one description.
struct Blocks {
  std::int64_t offset = 0, bytes = 0, stride = 0, count = 0;

  /// Bytes of all blocks together.
  [[nodiscard]] std::int64_t total() const noexcept { return bytes * count; }
};

/// The same part of several buffers: `count` blocks of `bytes` bytes, on side s the i-th at address at[s] + i*stride[s]. Addresses are
/// numbers, as displacements from MPI_BOTTOM or in a window are.
template <int Sides>
struct Piece {
  std::int64_t at[Sides], stride[Sides];
  std::int64_t bytes, count;

  [[nodiscard]] std::int64_t total() const noexcept { return bytes * count; }
  /// Where block i of a side is, which lies in this process's memory.
  [[nodiscard]] std::byte* pointer(int side, std::int64_t i = 0) const noexcept {
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(at[side]) + static_cast<std::uintptr_t>(i * stride[side]));
  }
  [[nodiscard]] Blocks blocks(int side) const noexcept { return {at[side], bytes, stride[side], count}; }
};

/// Memory whose address is a displacement from somewhere: the target's side of a one-sided operation.
inline Buffer buffer_at(std::int64_t displacement, MPI_Count count, Datatype& type) noexcept {
  return {reinterpret_cast<const void*>(static_cast<std::uintptr_t>(displacement)), count, type};
}

namespace detail {

/// Where a contiguous buffer begins.
inline std::int64_t begin_of(const Buffer& buffer) noexcept {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(buffer.base) + static_cast<std::uintptr_t>(buffer.type->true_lb));
}

/// Where a walk stands on one side: in a turn of some blocks, with further blocks already found.
class PieceSide {
 public:
  /// \param elements see Pieces \param from where the walk begins
  void start(const Buffer& buffer, BasicType elements, std::int64_t from) noexcept {
    buffer_ = buffer;
    elements_ = elements;
    filled_ = next_ = 0;
    if (is_dense(buffer, elements)) [[likely]] {
      const std::int64_t all = total(buffer, elements);
      now_ = {begin_of(buffer) + from, all - from, 0, 1};
      left_ = now_.bytes;
      found_ = all;
    } else {
      left_ = 0;
      found_ = from;
      now_ = {};
    }
  }

  /// Bytes of the whole buffer, holes of its elements included.
  static std::int64_t total(const Buffer& buffer, BasicType elements) noexcept {
    const auto bytes = static_cast<std::int64_t>(buffer.bytes());
    if (!elements) [[likely]] return bytes;
    const BasicInfo& info = basic_info(elements);
    return bytes / info.size * info.extent;
  }
  /// Whether all is one block.
  static bool is_dense(const Buffer& buffer, BasicType elements) noexcept {
    if (!elements) [[likely]] return is_one_block(buffer.count, *buffer.type);
    const BasicInfo& info = basic_info(elements);
    return buffer.type->size == info.size && (buffer.type->extent == info.extent || buffer.count == 1);
  }

  /// Bytes that lie together from here on; > 0 once `look` returned.
  [[nodiscard]] std::int64_t left() const noexcept { return left_; }
  [[nodiscard]] std::int64_t address() const noexcept { return now_.offset + (now_.bytes - left_); }
  /// Makes sure that there is something here. \pre the buffer goes on
  void look() noexcept {
    if (left_ == 0) [[unlikely]] find();
  }
  /// How often a block of `bytes` bytes repeats at one distance from here on. \pre bytes <= left()
  [[nodiscard]] std::int64_t repeats(std::int64_t bytes) const noexcept {
    return bytes == now_.bytes ? now_.count : left_ / bytes;
  }
  [[nodiscard]] std::int64_t distance(std::int64_t bytes) const noexcept { return bytes == now_.bytes ? now_.stride : bytes; }
  void advance(std::int64_t bytes, std::int64_t times) noexcept {
    if (bytes == now_.bytes) {
      // Unsigned: one stride beyond the last turn may leave 63 bits.
      const std::uint64_t onward = static_cast<std::uint64_t>(now_.stride) * static_cast<std::uint64_t>(times);
      now_.offset = static_cast<std::int64_t>(static_cast<std::uint64_t>(now_.offset) + onward);
      now_.count -= times;
      left_ = now_.count ? now_.bytes : 0;
    } else if ((left_ -= bytes * times) == 0) {
      next_turn();
    }
  }

 private:
  static constexpr int room = 16;
  void next_turn() noexcept {
    if (--now_.count == 0) return;
    now_.offset += now_.stride;
    left_ = now_.bytes;
  }
  void find() noexcept;

  Buffer buffer_;
  std::int64_t left_;   ///< bytes of this turn
  std::int64_t found_;  ///< how far in the stream the blocks found so far reach
  Blocks now_;
  BasicType elements_;
  int filled_, next_;
  Blocks batch_[room];
};

}  // namespace detail

/// Walks through the data of buffers at once, in packing order. The origin is side 0 by custom, the target side 1, the result side 2.
///
/// Neighbouring blocks are mostly given as one, and blocks at regular distances as one strided piece. No allocation; starting anywhere costs
/// the depth of the types (and a binary search in lists), so a walk is resumed by starting anew from its `position()`. The types must be
/// committed and stay alive. Not thread-safe; several walks may share types.
template <int Sides>
class Pieces {
 public:
  /// \param elements 0: a walk through bytes. A basic type: through its elements, of which all types are made; then every piece has whole
  ///   elements as in a C array, with their holes, and all numbers of bytes are multiples of the basic type's extent. It matters for pairs.
  /// \param from so many bytes (without holes: packed bytes) have been dealt with. \pre at most total(), a multiple of the extent
  /// Buffers of unequal length are walked as far as the shortest.
  explicit Pieces(const Buffer (&sides)[Sides], BasicType elements = 0, std::int64_t from = 0) noexcept
      : position_(from), total_(INT64_MAX), unit_(elements ? basic_info(elements).extent : 1) {
    if (elements && !basic_info(elements).has_holes()) elements = 0;
    for (const Buffer& side : sides) total_ = std::min(total_, detail::PieceSide::total(side, elements));
    if (from < total_) {
      for (int s = 0; s < Sides; ++s) sides_[s].start(sides[s], elements, from);
    }
  }

  [[nodiscard]] std::int64_t position() const noexcept { return position_; }
  [[nodiscard]] std::int64_t total() const noexcept { return total_; }

  /// The next piece, of at most `limit` bytes together (but of one element at least); false at the end.
  bool next(Piece<Sides>& piece, std::int64_t limit = INT64_MAX) noexcept { return find(piece, limit, INT64_MAX); }
  /// The same, one block at a time.
  bool next_block(Piece<Sides>& piece, std::int64_t limit = INT64_MAX) noexcept { return find(piece, limit, 1); }

 private:
  bool find(Piece<Sides>& piece, std::int64_t limit, std::int64_t times) noexcept {
    if (position_ >= total_) return false;
    limit = std::min(limit, total_ - position_);
    if (unit_ > 1) [[unlikely]] limit = std::max(unit_, limit - limit % unit_);
    std::int64_t bytes = limit;
    for (detail::PieceSide& side : sides_) {
      side.look();
      bytes = std::min(bytes, side.left());
    }
    if (times > 1) times = limit / bytes;
    for (const detail::PieceSide& side : sides_) times = std::min(times, side.repeats(bytes));
    for (int s = 0; s < Sides; ++s) {
      piece.at[s] = sides_[s].address();
      piece.stride[s] = sides_[s].distance(bytes);
      sides_[s].advance(bytes, times);
    }
    piece.bytes = bytes;
    piece.count = times;
    position_ += bytes * times;
    return true;
  }

  std::int64_t position_, total_, unit_;
  detail::PieceSide sides_[Sides];
};

/// Calls f(origin's address, target's address, bytes) for all blocks that lie together on both sides. Two contiguous buffers cost one branch.
template <typename F>
inline void for_each_block(const Buffer& origin, const Buffer& target, F&& f) noexcept {
  if (origin.contiguous() && target.contiguous()) [[likely]] {
    const auto bytes = static_cast<std::int64_t>(std::min(origin.bytes(), target.bytes()));
    if (bytes > 0) f(origin.data(), detail::begin_of(target), bytes);
    return;
  }
  Pieces<2> pieces({origin, target});
  for (Piece<2> piece; pieces.next_block(piece);) f(piece.pointer(0), piece.at[1], piece.bytes);
}

/// Whether everything that `count` elements of `type` at `displacement` touch lies in [0, size): without walking through them. True for no
/// data, wherever it is.
[[nodiscard]] bool within(const Datatype& type, MPI_Count count, std::int64_t displacement, std::int64_t size) noexcept;
/// The same for blocks, whose last `padding` bytes are a hole that nobody touches. False also for blocks that make no sense.
[[nodiscard]] bool within(const Blocks& blocks, std::int64_t size, std::int64_t padding = 0) noexcept;

/// Blocks on their way to another process: a few bytes each (offsets relative to the end of the blocks before), the same on every machine.
class BlocksEncoder {
 public:
  static constexpr std::size_t longest = 40;  ///< bytes that one description may take

  BlocksEncoder(std::byte* to, std::size_t room) noexcept : begin_(to), at_(to), end_(to + room) {}
  /// False when there are not `longest` bytes left: then nothing was written.
  [[nodiscard]] bool add(const Blocks& blocks) noexcept;
  /// Describes what comes next in a walk, at most `limit` bytes of data, as far as there is room. Returns the bytes of data described.
  std::int64_t add(Pieces<1>& pieces, std::int64_t limit = INT64_MAX) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(at_ - begin_); }

 private:
  std::byte *begin_, *at_, *end_;
  std::uint64_t last_ = 0;
};

/// Reads what came from another process, and trusts nothing in it.
class BlocksDecoder {
 public:
  /// \param size everything must lie in [0, size) \param elements 0, or the basic type of whose elements (see Pieces) every block consists
  BlocksDecoder(const std::byte* from, std::size_t bytes, std::int64_t size, BasicType elements = 0) noexcept
      : at_(from), end_(from + bytes), size_(size), elements_(elements) {}
  /// The next blocks; false at the end, and where the description is wrong: then ok() is false.
  [[nodiscard]] bool next(Blocks& blocks) noexcept;
  [[nodiscard]] bool ok() const noexcept { return ok_; }

 private:
  bool number(std::uint64_t& n) noexcept;

  const std::byte *at_, *end_;
  std::int64_t size_;
  std::uint64_t last_ = 0;
  BasicType elements_;
  bool ok_ = true;
};

}  // namespace heddle
