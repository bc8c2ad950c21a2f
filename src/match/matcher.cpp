#include "match/matcher.hpp"

#include <cstdlib>
#include <new>

#include "sys/log.hpp"

namespace heddle::match {
namespace {

constexpr std::uint64_t first_buckets = 64;

bool is_empty(const PostedBin& bin) noexcept { return bin.queue.empty(); }
bool is_empty(const ArrivalBin& bin) noexcept { return !bin.head; }

}  // namespace

template <typename Bin>
Table<Bin>::Table() noexcept
    : buckets_(static_cast<Bin**>(std::calloc(first_buckets, sizeof(Bin*)))), mask_(first_buckets - 1) {
  if (!buckets_) sys::fatal("no memory for a matching table");
}

template <typename Bin>
Table<Bin>::~Table() {
  for (std::uint64_t b = 0; b <= mask_; ++b)
    while (Bin* bin = buckets_[b]) {
      buckets_[b] = bin->next;
      delete bin;
    }
  while (Bin* bin = spare_) {
    spare_ = bin->next;
    delete bin;
  }
  std::free(buckets_);
}

template <typename Bin>
Bin* Table<Bin>::insert(Pattern pattern) noexcept {
  if (bins_ > mask_) [[unlikely]] make_room();
  Bin* bin = spare_;
  if (bin) spare_ = bin->next;
  else bin = static_cast<Bin*>(::operator new(sizeof(Bin), std::nothrow));
  if (!bin) sys::fatal("no memory for a matching queue");
  Bin*& bucket = buckets_[hash(pattern) & mask_];
  new (bin) Bin{pattern, bucket, {}};
  bucket = bin;
  ++bins_;
  return last_ = bin;
}

// Sweeps the empty bins, and grows only if more than half of the table is really in use. Either way the insertions since the last
// time pay for it.
template <typename Bin>
void Table<Bin>::make_room() noexcept {
  last_ = nullptr;
  Bin* kept = nullptr;
  std::size_t used = 0;
  for (std::uint64_t b = 0; b <= mask_; ++b)
    while (Bin* bin = buckets_[b]) {
      buckets_[b] = bin->next;
      Bin*& list = is_empty(*bin) ? spare_ : kept;
      used += !is_empty(*bin);
      bin->next = list;
      list = bin;
    }
  if (used > mask_ / 2) {
    const std::uint64_t size = (mask_ + 1) * 2;
    if (auto* larger = static_cast<Bin**>(std::calloc(size, sizeof(Bin*)))) {
      std::free(buckets_);
      buckets_ = larger;
      mask_ = size - 1;
    }  // out of memory: longer chains, still correct
  }
  while (Bin* bin = kept) {
    kept = bin->next;
    Bin*& bucket = buckets_[hash(bin->pattern) & mask_];
    bin->next = bucket;
    bucket = bin;
  }
  bins_ = used;
}

template class Table<PostedBin>;
template class Table<ArrivalBin>;

Posted* Matcher::take_posted_among_wildcards(Pattern message) noexcept {
  Posted* best = nullptr;
  for (unsigned form = exact; form < forms; ++form) {
    PostedBin* bin = posted_table_.find(with_form(message, form));
    Posted* first = bin ? bin->queue.front() : nullptr;
    if (first && (!best || first->sequence < best->sequence)) best = first;
  }
  if (best) remove_posted(*best);
  return best;
}

std::size_t Matcher::posted() const noexcept {
  std::size_t count = 0;
  posted_table_.each([&](const PostedBin& bin) {
    for (const Posted* p = bin.queue.front(); p; p = p->link.next) ++count;
  });
  return count;
}

void Matcher::enter_further(Arrival& message) noexcept {
  for (unsigned form = any_source; form < forms; ++form)
    if (indexed_ & 1U << form) enter(message, form);
}

void Matcher::leave_further(Arrival& message) noexcept {
  for (unsigned form = any_source; form < forms; ++form)
    if (indexed_ & 1U << form) leave(message, form);
}

void Matcher::build_index(unsigned form) noexcept {
  indexed_ |= 1U << form;
  for (Arrival* message = all_.front(); message; message = message->all.next) enter(*message, form);
}

}  // namespace heddle::match
