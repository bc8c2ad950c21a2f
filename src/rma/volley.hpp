// What a flow has under way by the network's own writes and reads, in the order in which somebody waits for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>

#include "sys/log.hpp"
#include "transport/net/region.hpp"
#include "vci/completion.hpp"

namespace heddle::rma {

class Volleys;

/// Operations that are waited for together: those between two flushes, or those of one call that has a request.
struct Volley : net::Pending {
  Volleys* of = nullptr;
  Request* request = nullptr;  ///< completed at the end
  Volley* next = nullptr;
};

/// The volleys of a flow. They end in the order in which they were closed, so that one number says which have.
///
/// All but `has_ended` with the VCI held. Memory: one volley for each flush or request under way, used again afterwards.
class Volleys {
 public:
  Volleys() = default;
  Volleys(const Volleys&) = delete;
  Volleys& operator=(const Volleys&) = delete;
  /// \pre nothing is under way
  ~Volleys() {
    delete open_;
    while (Volley* volley = spare_) {
      spare_ = volley->next;
      delete volley;
    }
  }

  /// Where operations without a request are counted, until the next flush.
  [[nodiscard]] Volley& open() noexcept {
    if (!open_) open_ = &new_volley();
    return *open_;
  }
  /// A volley of its own for a call that has a request. It counts one more than is under way until `one_less` is called at the end of the call.
  [[nodiscard]] Volley& begin(Request* request) noexcept {
    close();
    Volley& volley = new_volley();
    volley.request = request;
    ++volley.under_way;
    append(volley);
    return volley;
  }
  /// For what is not the network's to count.
  void one_less(Volley& volley, Held& held) noexcept {
    if (!--volley.under_way) retire(held);
  }
  /// What is started from now on belongs to the next flush. How many volleys will have ended when all before is done.
  std::uint64_t close() noexcept {
    if (open_ && open_->under_way) {
      append(*open_);
      open_ = nullptr;
    }
    return closed_;
  }
  /// Whether so many have ended, and buffers at this end are free or filled. Thread-safe.
  [[nodiscard]] bool has_ended(std::uint64_t volleys) const noexcept { return ended_.load(std::memory_order_acquire) >= volleys; }  // pairs with retire

 private:
  Volley& new_volley() noexcept {
    Volley* volley = spare_;
    if (volley) spare_ = volley->next;
    else if (!(volley = new (std::nothrow) Volley)) sys::fatal("no memory for one-sided operations");
    *volley = Volley{};
    volley->of = this;
    volley->done = [](net::Pending& self, Held& held) noexcept { static_cast<Volley&>(self).of->retire(held); };
    return *volley;
  }
  void append(Volley& volley) noexcept {
    (first_ ? last_->next : first_) = &volley;
    last_ = &volley;
    ++closed_;
  }
  void retire(Held& held) noexcept {
    std::uint64_t ended = 0;
    while (first_ && !first_->under_way) {
      Volley* const volley = first_;
      first_ = volley->next;
      if (volley->request) complete(*volley->request, VciGuard::of(held));
      volley->next = spare_;
      spare_ = volley;
      ++ended;
    }
    // Only who holds the VCI writes it. The last touch: a flush that sees it may be followed by the window's end.
    if (ended) ended_.store(ended_.load(std::memory_order_relaxed) + ended, std::memory_order_release);
  }

  Volley* open_ = nullptr;  ///< in no queue yet
  Volley *first_ = nullptr, *last_ = nullptr;
  Volley* spare_ = nullptr;
  std::uint64_t closed_ = 0;
  std::atomic<std::uint64_t> ended_{0};
};

}  // namespace heddle::rma
