// The requests of a VCI that are in nobody's hands.
#pragma once

#include <atomic>

#include "sync/cpu.hpp"
#include "sys/log.hpp"
#include "vci/request.hpp"

namespace heddle {

/// Requests of one VCI: taken under the VCI's lock, given back by anyone without it.
///
/// Cost: allocate 0 read-modify-writes (1 when the local list is empty), free 1 where the cache is shared, else 0.
class RequestCache {
 public:
  /// Whether threads that do not hold the VCI may release a request while another one holds it. Set with Vci::mode.
  void share(bool shared) noexcept { shared_ = shared; }
  [[nodiscard]] bool shared() const noexcept { return shared_; }

  /// A request in its default state, kind and `vci` set. \pre `vci`, whose cache this is, is held. Ends the job when memory is out.
  Request* allocate(Vci* vci) noexcept {
    if (!free_) [[unlikely]] refill(vci);
    Request* request = free_;
    free_ = request->next;
    request->kind.store(Kind::request, std::memory_order_relaxed);
    return request;
  }

  /// True when the next `allocate` need not ask for memory.
  [[nodiscard]] bool stocked() const noexcept { return free_; }

  /// From any thread. The request's memory stays a Request for ever, so a stale handle is detected.
  void release(Request* request) noexcept {
    request->kind.store(Kind::freed, std::memory_order_relaxed);
    if (shared_) return release_chain(request, request);
    request->next = free_;
    free_ = request;
  }
  /// The same for a thread that holds the VCI.
  void release_held(Request* request) noexcept {
    request->kind.store(Kind::freed, std::memory_order_relaxed);
    request->next = free_;
    free_ = request;
  }
  /// Requests linked by `next` from `first` to `last`, their kinds cleared: one read-modify-write for all. \pre shared()
  void release_chain(Request* first, Request* last) noexcept {
    Request* head = returned_.load(std::memory_order_relaxed);
    do last->next = head;  // Release pairs with the acquire in refill: the fields are ours again.
    while (!returned_.compare_exchange_weak(head, first, std::memory_order_release, std::memory_order_relaxed));
  }
  /// Calls `use(Request&)` for all requests, free ones too. \pre the VCI is held
  template <typename Use>
  void for_each(Use&& use) noexcept {
    for (Request* request = all_; request; request = request->sibling) use(*request);
  }

 private:
  [[gnu::noinline]] void refill(Vci* vci) noexcept {
    // Acquire pairs with release_chain's push.
    free_ = returned_.exchange(nullptr, std::memory_order_acquire);
    for (int i = 0; !free_ || i < 31; ++i) {
      if (free_ && i == 0) return;
      Request* request = pool<Request>().create();
      if (!request) {
        if (free_) return;
        sys::fatal("no memory for a request");
      }
      request->vci = vci;
      request->sibling = all_;
      all_ = request;
      request->next = free_;
      free_ = request;
    }
  }

  Request* free_ = nullptr;
  bool shared_ = false;
  Request* all_ = nullptr;
  alignas(sync::cache_line) std::atomic<Request*> returned_{nullptr};  ///< pushed by any thread, taken as a whole
};

/// Releases requests together: consecutive ones of one VCI with one read-modify-write, at the latest when it goes out of scope.
class ReleaseBatch {
 public:
  ReleaseBatch() noexcept = default;
  ReleaseBatch(const ReleaseBatch&) = delete;
  ReleaseBatch& operator=(const ReleaseBatch&) = delete;
  ~ReleaseBatch() {
    if (first_) flush();
  }
  void add(Request& request, RequestCache& cache) noexcept {
    if (!cache.shared()) return cache.release(&request);
    if (&cache != cache_) {
      if (first_) flush();
      cache_ = &cache;
      last_ = &request;
    }
    request.kind.store(Kind::freed, std::memory_order_relaxed);
    request.next = first_;
    first_ = &request;
  }

 private:
  void flush() noexcept {
    cache_->release_chain(first_, last_);
    first_ = nullptr;
  }
  RequestCache* cache_ = nullptr;
  Request *first_ = nullptr, *last_ = nullptr;
};

}  // namespace heddle
