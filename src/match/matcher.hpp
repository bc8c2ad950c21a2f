// The matching engine of a VCI: which receive gets which message, in the order MPI demands, at a cost that does not grow.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "sync/intrusive.hpp"

namespace heddle::match {

/// What a receive asks for and what a message is: context id, source rank, tag. A receive may hold MPI_ANY_SOURCE, MPI_ANY_TAG.
struct Pattern {
  std::uint64_t context;
  std::int32_t source;
  std::int32_t tag;
  /// Source and tag in one word.
  [[nodiscard]] std::uint64_t who() const noexcept {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(tag)) << 32 | static_cast<std::uint32_t>(source);
  }
  friend bool operator==(const Pattern& a, const Pattern& b) noexcept { return a.who() == b.who() && a.context == b.context; }
};

/// Which of the two wildcards a pattern has. Each form is an index of its own.
enum Form : unsigned { exact = 0, any_source = 1, any_tag = 2, any_both = 3, forms = 4 };

inline unsigned form_of(Pattern p) noexcept {
  return (p.source == MPI_ANY_SOURCE ? any_source : 0U) | (p.tag == MPI_ANY_TAG ? any_tag : 0U);
}
inline Pattern with_form(Pattern p, unsigned form) noexcept {
  return {p.context, form & any_source ? MPI_ANY_SOURCE : p.source, form & any_tag ? MPI_ANY_TAG : p.tag};
}

struct Posted;
struct Arrival;
struct PostedBin;
struct ArrivalBin;

/// A posted receive, as the engine sees it (base of Request).
struct Posted {
  Pattern pattern{};
  PostedBin* bin = nullptr;    ///< where it waits; nullptr when not posted
  std::uint64_t sequence = 0;  ///< posting order, decides between an exact and a wildcard receive
  sync::Link<Posted> link{};
};

/// An unexpected message, as the engine sees it (base of proto::Unexpected).
struct Arrival {
  Pattern key{};
  // Set when the message enters the index of that form.
  ArrivalBin* bins[forms];
  sync::Link<Arrival> links[forms];
  sync::Link<Arrival> all;
};

/// A hash table from patterns to queues. A queue (bin) stays when it runs empty, because programs repeat their patterns; empty ones
/// are swept when the table would have to grow.
template <typename Bin>
class Table {
 public:
  Table() noexcept;
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  /// The bin of `pattern`, or nullptr.
  Bin* find(Pattern pattern) noexcept {
    if (last_ && last_->pattern == pattern) return last_;
    for (Bin* bin = buckets_[hash(pattern) & mask_]; bin; bin = bin->next)
      if (bin->pattern == pattern) return last_ = bin;
    return nullptr;
  }
  /// Calls `visit` with every bin.
  template <typename Visit>
  void each(Visit&& visit) const noexcept {
    for (std::uint64_t b = 0; b <= mask_; ++b)
      for (const Bin* bin = buckets_[b]; bin; bin = bin->next) visit(*bin);
  }

  /// The bin of `pattern`, made if needed.
  Bin* get(Pattern pattern) noexcept {
    Bin* bin = find(pattern);
    return bin ? bin : insert(pattern);
  }

 private:
  static std::uint64_t hash(Pattern p) noexcept {
    std::uint64_t h = p.context * 0x9e3779b97f4a7c15U;
    h ^= p.who();
    return h * 0xd6e8feb86659fd93U >> 32;  // the upper bits depend on all of the pattern
  }
  Bin* insert(Pattern pattern) noexcept;
  void make_room() noexcept;

  Bin** buckets_;
  std::uint64_t mask_;
  Bin* last_ = nullptr;  ///< most programs ask for the same pattern again
  Bin* spare_ = nullptr;
  std::size_t bins_ = 0;
};

struct PostedBin {
  Pattern pattern;
  PostedBin* next;
  sync::List<Posted, &Posted::link> queue;
};

struct ArrivalBin {
  Pattern pattern;
  ArrivalBin* next;
  Arrival *head = nullptr, *tail = nullptr;  ///< through links[form]
};

/// The posted receives and the unexpected queue of a VCI. Guarded by the VCI.
///
/// Order (MPI-5.0 §3.5): a message takes the earliest posted receive that matches it, a receive the earliest message.
/// Cost: a message looks into one bin, or while receives with wildcards are posted into four; a receive into one. Neither grows with
/// the number outstanding. The indexes of unexpected messages by wildcard form are kept only from the first such receive on.
class Matcher {
 public:
  /// Takes the earliest posted receive that matches a message, or nullptr.
  Posted* take_posted(Pattern message) noexcept {
    return awaits_wildcards() ? take_posted_among_wildcards(message) : take_exact(message);
  }
  /// The same where it takes no call; nullptr whenever a receive with wildcards is posted.
  Posted* take_exact(Pattern message) noexcept {
    PostedBin* bin = wildcards_posted_ ? nullptr : posted_table_.find(message);
    if (!bin) return nullptr;
    Posted* first = bin->queue.pop_front();
    if (!first) return nullptr;
    first->bin = nullptr;
    ++taken_;
    return first;
  }
  /// Whether receives with wildcards are posted.
  [[nodiscard]] bool awaits_wildcards() const noexcept { return wildcards_posted_; }

  /// Whether any receive is posted.
  [[nodiscard]] bool awaits_any() const noexcept { return taken_ != next_sequence_; }
  /// Whether a posted receive may match such a message. A cheap test: true may be wrong, false never is.
  [[nodiscard]] bool awaits(Pattern message) noexcept {
    if (!awaits_any()) return false;
    if (wildcards_posted_) return true;
    const PostedBin* bin = posted_table_.find(message);
    return bin && !bin->queue.empty();
  }

  /// Adds a receive that no unexpected message matched.
  void post(Posted& receive) noexcept {
    post_exact(receive, *posted_table_.get(receive.pattern));
    if (form_of(receive.pattern) != exact) [[unlikely]] ++wildcards_posted_;
  }
  /// The same, without wildcards, into the bin that `posted_bin` has found for its pattern.
  void post_exact(Posted& receive, PostedBin& bin) noexcept {
    receive.sequence = next_sequence_++;
    receive.bin = &bin;
    bin.queue.push_back(&receive);
  }
  PostedBin* posted_bin(Pattern pattern) noexcept { return posted_table_.find(pattern); }

  /// Withdraws a posted receive (cancel, or taken by a message). \pre receive.bin
  void remove_posted(Posted& receive) noexcept {
    receive.bin->queue.remove(&receive);
    receive.bin = nullptr;
    ++taken_;
    if (form_of(receive.pattern) != exact) --wildcards_posted_;
  }

  /// The earliest unexpected message that a receive of this pattern would take, left in place; or nullptr.
  Arrival* find_arrival(Pattern pattern) noexcept {
    if (all_.empty()) return nullptr;
    const unsigned form = form_of(pattern);
    if (!(indexed_ & 1U << form)) [[unlikely]] build_index(form);
    ArrivalBin* bin = arrivals_.find(pattern);
    return bin ? bin->head : nullptr;
  }

  /// The unexpected message with exactly this key for which `wanted(Arrival&)` is true, left in place; or nullptr. Searches from both ends, since
  /// cancelled messages are mostly the newest or the oldest. Cost: at worst one look at each message of the key.
  template <typename Wanted>
  Arrival* find_arrival_if(Pattern key, Wanted&& wanted) noexcept {
    const ArrivalBin* bin = arrivals_.find(key);
    if (!bin) return nullptr;
    Arrival* newest = bin->tail;
    for (Arrival* oldest = bin->head; oldest; oldest = oldest->links[exact].next, newest = newest->links[exact].prev) {
      if (wanted(*oldest)) return oldest;
      if (wanted(*newest)) return newest;
      if (oldest == newest || oldest->links[exact].next == newest) break;
    }
    return nullptr;
  }

  /// Keeps a message that no posted receive matched.
  void keep(Arrival& message) noexcept {
    all_.push_back(&message);
    ++unexpected_;
    enter(message, exact);
    if (indexed_ != 1U << exact) [[unlikely]] enter_further(message);
  }

  void remove_arrival(Arrival& message) noexcept {
    all_.remove(&message);
    --unexpected_;
    leave(message, exact);
    if (indexed_ != 1U << exact) [[unlikely]] leave_further(message);
  }

  [[nodiscard]] std::size_t unexpected() const noexcept { return unexpected_; }
  /// Counts the posted receives one by one. For tests and reports.
  [[nodiscard]] std::size_t posted() const noexcept;
  [[nodiscard]] Arrival* first_arrival() const noexcept { return all_.front(); }

 private:
  Posted* take_posted_among_wildcards(Pattern message) noexcept;
  void enter(Arrival& message, unsigned form) noexcept {
    ArrivalBin* bin = arrivals_.get(with_form(message.key, form));
    message.bins[form] = bin;
    message.links[form] = {bin->tail, nullptr};
    if (bin->tail) bin->tail->links[form].next = &message; else bin->head = &message;
    bin->tail = &message;
  }
  void leave(Arrival& message, unsigned form) noexcept {
    ArrivalBin* bin = message.bins[form];
    auto [prev, next] = message.links[form];
    if (prev) prev->links[form].next = next; else bin->head = next;
    if (next) next->links[form].prev = prev; else bin->tail = prev;
  }
  void enter_further(Arrival& message) noexcept;
  void leave_further(Arrival& message) noexcept;
  void build_index(unsigned form) noexcept;

  std::size_t wildcards_posted_ = 0;
  std::uint64_t next_sequence_ = 0;  ///< receives that were ever posted
  std::uint64_t taken_ = 0;          ///< and those of them that no longer are
  Table<PostedBin> posted_table_;

  unsigned indexed_ = 1U << exact;
  std::size_t unexpected_ = 0;
  sync::List<Arrival, &Arrival::all> all_;  ///< in order of arrival
  Table<ArrivalBin> arrivals_;
};

}  // namespace heddle::match
