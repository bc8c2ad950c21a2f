// What reductions share: the running result of a rank, and the fold of any number of ranks to a power of two.
#pragma once

#include <optional>

#include "coll/algorithms.hpp"

namespace heddle::coll {

/// The running result of a reduction on one rank: the values of a contiguous range of ranks combined in rank order.
///
/// The operand of the lower ranks is always the left one, also for commutative operations: so all ranks that combine
/// the same two operands get the same bits. Buffers are swapped rather than copied. A segment may be combined alone;
/// then only that segment means anything afterwards.
class Partial {
 public:
  /// `own`: this rank's values, only read (but may be `out`, for MPI_IN_PLACE). `out`: the result's buffer, also used as scratch
  /// space (null is a buffer too: MPI_BOTTOM); empty where no result is wanted. Check `steps.ok()` afterwards.
  Partial(Steps& steps, const Op& op, MPI_Count count, Datatype& type, const void* own,
          std::optional<void*> out) noexcept
      : steps_(steps),
        op_(op),
        count_(count),
        type_(type),
        in_out_(out && *out == own),
        own_(own),
        value_(own),
        out_(out ? *out : steps.temporary(count, type)) {
    void* room = steps.temporary(count, type);
    free_ = in_out_ ? room : out_;
    spare_ = in_out_ ? nullptr : room;
  }

  /// The result so far, from element `first` on.
  [[nodiscard]] const void* value(MPI_Count first = 0) const noexcept { return element(value_, first, type_); }
  /// Where the other operand is to be received.
  [[nodiscard]] void* incoming(MPI_Count first = 0) const noexcept { return element(free_, first, type_); }

  /// Combines elements [first, last) of the value with those that were received.
  void combine(bool incoming_is_lower, MPI_Count first, MPI_Count last) noexcept {
    const MPI_Count count = last - first;
    const bool value_is_own = value_ == own_ && !in_out_;
    if (!incoming_is_lower) {  // value op incoming, into the incoming buffer
      steps_.reduce(op_, value(first), incoming(first), count, type_);
      void* result = free_;
      free_ = value_is_own ? spare_ : const_cast<void*>(value_);
      if (value_is_own) spare_ = nullptr;
      value_ = result;
    } else {  // incoming op value, into the value's buffer
      if (value_is_own) {
        steps_.copy(value(first), count, type_, element(spare_, first, type_), count, type_);
        value_ = spare_;
        spare_ = nullptr;
      }
      steps_.reduce(op_, incoming(first), const_cast<void*>(value(first)), count, type_);
    }
  }
  void combine(bool incoming_is_lower) noexcept { combine(incoming_is_lower, 0, count_); }

  /// The same where no other rank combines these operands: commuting operands may swap if that puts the result into `out`.
  void combine_alone(bool incoming_is_lower, MPI_Count first, MPI_Count last) noexcept {
    combine(op_.commutative ? value_ == out_ : incoming_is_lower, first, last);
  }

  /// Leaves elements [first, last) of the result in `out`.
  void store(MPI_Count first, MPI_Count last) noexcept {
    if (value_ != out_ && first < last)
      steps_.copy(value(first), last - first, type_, element(out_, first, type_), last - first, type_);
    value_ = out_;
  }
  void store() noexcept { store(0, count_); }

 private:
  Steps& steps_;
  const Op& op_;
  const MPI_Count count_;
  Datatype& type_;
  const bool in_out_;  // our own values lie in `out` and may be overwritten
  const void* const own_;
  const void* value_;
  void* out_;
  void* free_;   // the next operand goes here
  void* spare_;  // a third buffer, as long as the value is in the user's
};

/// Reduces n ranks to a power of two of virtual ranks, in rank order: each of the first pairs of ranks becomes one virtual rank,
/// played by its survivor (the even one, or `survivor` if it is in a pair) after the other has given it its values.
class Fold {
 public:
  Fold(int n, int rank, int survivor = 0) noexcept : size(floor_power_of_two(n)), pairs(n - size), survivor_(survivor) {
    if (rank >= 2 * pairs) {
      virtual_rank = rank - pairs;
    } else {
      partner = rank ^ 1;
      virtual_rank = real(rank / 2) == rank ? rank / 2 : -1;
    }
  }
  const int size;  ///< number of virtual ranks
  const int pairs;
  int partner = -1;  ///< the other rank of this rank's pair, or -1
  int virtual_rank;  ///< -1 for the rank of a pair that gives its values away

  /// Who plays a virtual rank.
  [[nodiscard]] int real(int virtual_rank) const noexcept {
    if (virtual_rank >= pairs) return virtual_rank + pairs;
    return 2 * virtual_rank + (survivor_ == 2 * virtual_rank + 1 ? 1 : 0);
  }

 private:
  const int survivor_;
};

/// Combines the values of this rank's pair. False when this rank gave its own away and is out of the reduction.
inline bool fold_in(Steps& s, const Fold& fold, Partial& partial, MPI_Count count, Datatype& type) noexcept {
  if (fold.partner < 0) return true;
  if (fold.virtual_rank < 0) {
    s.send_round(partial.value(), count, type, fold.partner);
    return false;
  }
  s.recv_round(partial.incoming(), count, type, fold.partner);
  partial.combine(fold.partner < s.rank());
  return true;
}

/// Reduce and scatter by halving vectors and doubling distances: combines neighbours first, so the order of ranks is
/// kept. Afterwards this rank has the result of the elements [first, last).
struct Halving {
  MPI_Count first = 0, last = 0;
  void run(Steps& s, const Fold& fold, Partial& partial, MPI_Count count, Datatype& type) noexcept;
  /// The elements that the rank had before the round of `mask`, by the same arithmetic. \pre rounds above it were
  /// undone
  void widen(int virtual_rank, int mask, MPI_Count count) noexcept { *this = range(virtual_rank, mask, count); }
  /// The elements of a virtual rank before the round of `mask` (1, 2, 4, …).
  static Halving range(int virtual_rank, int mask, MPI_Count count) noexcept {
    Halving r{0, count};
    for (int m = 1; m < mask; m *= 2) {
      const MPI_Count middle = r.first + (r.last - r.first) / 2;
      (virtual_rank & m ? r.first : r.last) = middle;
    }
    return r;
  }
};

}  // namespace heddle::coll
