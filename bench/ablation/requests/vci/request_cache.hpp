// Ablation: one cache of requests for all VCIs, with a lock (paper 004, figure 7).
#pragma once

#include "sync/lock.hpp"
#include "sys/log.hpp"
#include "vci/request.hpp"

namespace heddle {

class RequestCache {
 public:
  void share(bool) noexcept {}
  [[nodiscard]] bool stocked() const noexcept { return true; }

  [[gnu::noinline]] Request* allocate(Vci* vci) noexcept {
    lock_.lock();
    Request* request = free_;
    if (request) free_ = request->next;
    lock_.unlock();
    if (!request) request = pool<Request>().create();
    if (!request) sys::fatal("no memory for a request");
    request->vci = vci;
    request->kind.store(Kind::request, std::memory_order_relaxed);
    return request;
  }

  [[gnu::noinline]] void release(Request* request) noexcept {
    request->kind.store(Kind::freed, std::memory_order_relaxed);
    lock_.lock();
    request->next = free_;
    free_ = request;
    lock_.unlock();
  }
  void release_held(Request* request) noexcept { release(request); }

  /// Visits none: what asks is MPI_Finalize, for operations whose request was freed, and benchmarks have none.
  template <typename Use>
  void for_each(Use&&) noexcept {}

 private:
  inline static sync::Lock lock_;
  inline static Request* free_ = nullptr;
};

class ReleaseBatch {
 public:
  void add(Request& request, RequestCache& cache) noexcept { cache.release(&request); }
};

}  // namespace heddle
