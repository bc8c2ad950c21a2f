// A ring of cache lines that carries records of one or more lines from many producers to one consumer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sync/cpu.hpp"
#include "sync/thread_sanitizer.hpp"

namespace heddle::sync {

/// One line of the ring. The first eight bytes of a record's first line are its stamp; the rest of the record, across lines, is the
/// user's and contiguous.
struct alignas(cache_line) RingLine {
  std::atomic<std::uint64_t> stamp;
  std::byte data[cache_line - sizeof(std::uint64_t)];
};
static_assert(sizeof(RingLine) == cache_line);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "a lock would be private to one process");

/// The shared counters of a ring. All zeroes is an empty ring.
struct RingControl {
  alignas(cache_line) std::atomic<std::uint64_t> tail;  ///< next line to reserve; written by producers
  alignas(cache_line) std::atomic<std::uint64_t> head;  ///< next line to consume; written by the consumer, read once a lap
  alignas(cache_line) std::atomic<std::uint32_t> hold;  ///< set by the consumer: producers shall send no eager payloads; rarely written
};
static_assert(sizeof(RingControl) == 3 * cache_line);

namespace ring_detail {
// A stamp names the lap-unique index of its line and the record's length: a stale one can never be taken for a fresh one.
inline constexpr int length_bits = 12;
inline constexpr std::uint64_t length_mask = (1U << length_bits) - 1;
inline RingLine& line_at(RingLine& first, std::uint64_t index, std::uint64_t lines) {
  RingLine* line = &first + (index & (lines - 1));
  if (!line) __builtin_unreachable();  // so that callers, who get nullptr where there is no record, need not ask
  return *line;
}
inline std::uint64_t stamp_of(std::uint64_t index, std::uint64_t lines) { return (index + 1) << length_bits | lines; }
/// Only the length is left when the index is the stamp's.
inline bool stamp_is(std::uint64_t stamp, std::uint64_t index) { return (stamp ^ (index + 1) << length_bits) <= length_mask; }
}  // namespace ring_detail

/// The producers' view of a ring, one per ring and producing process; any thread of it may push.
///
/// Use it where small messages must reach another core with one cache-line transfer, and larger ones in one pass.
/// Do not use it for records above `max_lines` (a quarter of the ring, at most 2047 lines), nor where a producer may die between
/// `reserve` and `publish`: later records stay hidden behind the gap (the job is being torn down in that case).
///
/// Progress: `reserve` is lock-free. A record becomes visible once every earlier one has been published.
/// Cost: 1 read-modify-write, 1 release store; the consumer's counter is read once a lap, through `head_cache_`.
class RingProducer {
 public:
  /// \pre `lines` is a power of two and the number of RingLines at `first`.
  RingProducer(RingControl* control, RingLine* first, std::uint32_t lines) noexcept
      : control_(control), first_(first), lines_(lines) {}
  RingProducer() noexcept = default;

  [[nodiscard]] std::uint32_t max_lines() const noexcept { return lines_ < 8188 ? static_cast<std::uint32_t>(lines_ / 4) : 2047; }
  [[nodiscard]] std::uint64_t lines() const noexcept { return lines_; }
  [[nodiscard]] bool held() const noexcept { return control_->hold.load(std::memory_order_relaxed) != 0; }

  struct Reservation {
    RingLine* line;  ///< nullptr: the ring is full, nothing has changed
    std::uint64_t index;
  };

  /// Reserves a record of `n` contiguous lines. The caller fills it (all but the stamp) and must then publish it.
  /// \param spare lines to leave free behind it, for records that must get through when the ring is nearly full
  [[nodiscard]] Reservation reserve(std::uint32_t n, std::uint64_t spare = 0) noexcept {
    const std::uint64_t lines = lines_;
    std::uint64_t tail = control_->tail.load(std::memory_order_relaxed);
    for (;;) {
      std::uint64_t start = tail;
      if (n != 1 && (tail & (lines - 1)) + n > lines) [[unlikely]] start = (tail | (lines - 1)) + 1;
      const std::uint64_t end = start + n;
      // Acquire pairs with the release below: another thread's view of the consumer's counter is as good as ours.
      if (end + spare - head_cache_.load(std::memory_order_acquire) > lines) [[unlikely]] {
        // Acquire pairs with RingConsumer::pop's release: the consumer has read and cleared the lines.
        const std::uint64_t head = control_->head.load(std::memory_order_acquire);
        heard_from_another_process();
        head_cache_.store(head, std::memory_order_release);
        if (end + spare - head > lines) return {nullptr, 0};
      }
      // Relaxed: the reservation publishes nothing; the stamp does.
      if (control_->tail.compare_exchange_weak(tail, end, std::memory_order_relaxed)) {
        // The consumer's core owns these lines since the last lap. In a stream of small records each exchange above would wait for the
        // previous record's line to arrive; prefetched this early, the lines of several records are in flight at once.
        own_soon(at(end + lines_ahead));
        for (std::uint64_t i = tail; in_thread_sanitizer && i != end; ++i) taken_back_from_another_process(at(i)->stamp);
        if (n != 1 && start != tail) [[unlikely]]
          at(tail)->stamp.store(ring_detail::stamp_of(tail, (start - tail) | padding_bit), std::memory_order_release);
        return {at(start), start};
      }
    }
  }

  /// A record of one line, if that takes one attempt; else as if the ring were full, though it may not be.
  [[nodiscard]] Reservation reserve_at_once() noexcept {
    std::uint64_t tail = control_->tail.load(std::memory_order_relaxed);
    if (tail + 1 - head_cache_.load(std::memory_order_acquire) > lines_) [[unlikely]] return {nullptr, 0};
    if (!control_->tail.compare_exchange_strong(tail, tail + 1, std::memory_order_relaxed)) [[unlikely]] return {nullptr, 0};
    own_soon(at(tail + 1 + lines_ahead));
    if (in_thread_sanitizer) taken_back_from_another_process(at(tail)->stamp);
    return {at(tail), tail};
  }

  /// Prefetches for writing the line in which the next record will begin.
  void expect() const noexcept { own_soon(at(control_->tail.load(std::memory_order_relaxed))); }

  /// Makes a filled record of `n` lines visible. Release pairs with the acquire in RingConsumer::front.
  static void publish(Reservation r, std::uint32_t n) noexcept {
    goes_to_another_process();
    r.line->stamp.store(ring_detail::stamp_of(r.index, n), std::memory_order_release);
  }

 private:
  friend class RingConsumer;
  static constexpr std::uint64_t lines_ahead = 4;
  static constexpr std::uint64_t padding_bit = std::uint64_t{1} << (ring_detail::length_bits - 1);
  RingLine* at(std::uint64_t index) const noexcept { return &ring_detail::line_at(*first_, index, lines_); }

  RingControl* control_ = nullptr;
  RingLine* first_ = nullptr;
  std::uint64_t lines_ = 0;
  std::atomic<std::uint64_t> head_cache_{0};
};

/// The consumer's view of a ring. One thread at a time (the VCI's holder), but `pending` may be asked by anyone.
///
/// Progress: wait-free. Cost: one line read per line of a record; one store per line to clear it.
class RingConsumer {
 public:
  RingConsumer(RingControl* control, RingLine* first, std::uint32_t lines) noexcept
      : control_(control), first_(first), lines_(lines) {}
  RingConsumer() noexcept = default;

  /// True when a record waits. Racy by design for threads that do not hold the ring: a hint to try for the lock.
  [[nodiscard]] bool pending() const noexcept {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    // The head may have moved on: then the line is a producer's again, and its payload is at worst a wrong hint.
    return ring_detail::stamp_is(glance_at(at(head)->stamp), head);
  }

  /// True when nothing is in the ring, nor being written to it. \pre this thread is the consumer
  [[nodiscard]] bool is_drained() noexcept {
    static_cast<void>(front());  // skips the lines left unused at the end of the memory
    return control_->tail.load(std::memory_order_relaxed) == head_.load(std::memory_order_relaxed);
  }

  /// The oldest record, or nullptr. Stays in place until `pop`.
  [[nodiscard]] RingLine* front() noexcept {
    for (;;) {
      const std::uint64_t head = head_.load(std::memory_order_relaxed);
      RingLine* line = at(head);
      const std::uint64_t stamp = line->stamp.load(std::memory_order_acquire);  // pairs with publish
      if (!ring_detail::stamp_is(stamp, head)) return nullptr;
      if (stamp & RingProducer::padding_bit) [[unlikely]] {
        advance(head + (stamp & (RingProducer::padding_bit - 1)));
        continue;
      }
      return line;
    }
  }

  /// The same, but nullptr also where lines were left unused before the record: for who has no time for more.
  [[nodiscard]] const RingLine* front_at_once() const noexcept {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    const RingLine* line = at(head);
    const std::uint64_t stamp = line->stamp.load(std::memory_order_acquire);  // pairs with publish
    return (stamp ^ ring_detail::stamp_of(head, 0)) < RingProducer::padding_bit ? line : nullptr;
  }

  /// Gives the record at the front, which has one line, back to the producers.
  void pop_line() noexcept { advance(head_.load(std::memory_order_relaxed) + 1); }
  /// The same for any record. \param front what `front` has returned
  void pop(const RingLine* front) noexcept {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    const std::uint64_t n = front->stamp.load(std::memory_order_relaxed) & ring_detail::length_mask;
    // A later record may begin in any of these lines, where payload bytes could read as its stamp.
    for (std::uint64_t i = 1; i < n; ++i) at(head + i)->stamp.store(0, std::memory_order_relaxed);
    advance(head + n);
  }

  void set_hold(bool hold) noexcept { control_->hold.store(hold, std::memory_order_relaxed); }

 private:
  void advance(std::uint64_t head) noexcept {
    head_.store(head, std::memory_order_relaxed);
    control_->head.store(head, std::memory_order_release);  // pairs with the acquire in reserve
  }
  RingLine* at(std::uint64_t index) const noexcept { return &ring_detail::line_at(*first_, index, lines_); }

  RingControl* control_ = nullptr;
  RingLine* first_ = nullptr;
  std::uint64_t lines_ = 0;
  std::atomic<std::uint64_t> head_{0};  ///< atomic only for `pending`
};

}  // namespace heddle::sync
