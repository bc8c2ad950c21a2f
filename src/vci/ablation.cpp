#ifdef HEDDLE_ABLATION
#include "vci/ablation.hpp"

#include <new>
#include <string_view>

#include "sys/log.hpp"
#include "sys/params.hpp"
#include "vci/vci.hpp"

namespace heddle::ablation {
namespace {

HEDDLE_PARAM_TEXT(ablate, "HEDDLE_ABLATE", "",
                  "what to switch off: progress, looks, requests, lines (only in a bench build)");

struct alignas(sync::cache_line) Apart {
  Words words;
};
Apart apart[64];
Words together[64];

sync::Lock request_lock;
Request* free_requests = nullptr;

}  // namespace

Off off;

void start() noexcept {
  const char* text = ablate.text();
  std::string_view list = text ? text : "";
  while (!list.empty()) {
    const std::string_view word = list.substr(0, list.find(','));
    list.remove_prefix(word.size() < list.size() ? word.size() + 1 : list.size());
    if (word == "progress")
      off.progress = true;
    else if (word == "looks")
      off.looks = true;
    else if (word == "requests")
      off.requests = true;
    else if (word == "lines")
      off.lines = true;
    else
      sys::fatal("HEDDLE_ABLATE: '%.*s' is none of progress, looks, requests, lines", static_cast<int>(word.size()),
                 word.data());
  }
}

Words& words_of(unsigned vci) noexcept { return off.lines ? together[vci] : apart[vci].words; }

Request* allocate_request(Vci* vci) noexcept {
  request_lock.lock();
  Request* request = free_requests;
  if (request) free_requests = request->next;
  request_lock.unlock();
  if (!request) request = pool<Request>().create();
  if (!request) sys::fatal("no memory for a request");
  request->vci = vci;
  request->kind.store(Kind::request, std::memory_order_relaxed);
  return request;
}

void release_request(Request* request) noexcept {
  request->kind.store(Kind::freed, std::memory_order_relaxed);
  request_lock.lock();
  request->next = free_requests;
  free_requests = request;
  request_lock.unlock();
}

}  // namespace heddle::ablation
#endif
