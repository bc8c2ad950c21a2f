// HEDDLE_HANG_REPORT: what a thread has been waiting for that long, in a sentence of its own.
#include <dlfcn.h>
#include <execinfo.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "core/comm.hpp"
#include "proto/protocol_state.hpp"
#include "sys/log.hpp"
#include "vci/wait.hpp"

namespace heddle::proto {
namespace {

class Text {
 public:
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) noexcept {
    va_list arguments;
    va_start(arguments, format);
    const int n = std::vsnprintf(text_ + length_, sizeof text_ - length_, format, arguments);
    va_end(arguments);
    if (n > 0)
      length_ += static_cast<std::size_t>(n) < sizeof text_ - length_ ? static_cast<std::size_t>(n)
                                                                      : sizeof text_ - length_ - 1;
  }
  [[nodiscard]] const char* c_str() const noexcept { return text_; }

 private:
  char text_[1024] = {};
  std::size_t length_ = 0;
};

/// The MPI function that this thread is in, found on its stack: nothing is noted on the way in, where it would cost
/// something.
const char* function_on_the_stack() noexcept {
  void* frames[48];
  const int depth = backtrace(frames, 48);
  for (int i = 0; i < depth; ++i) {
    Dl_info found;
    if (!dladdr(frames[i], &found) || !found.dli_sname) continue;
    const char* name = found.dli_sname + (*found.dli_sname == 'P');
    if (!std::strncmp(name, "MPI_", 4) || !std::strncmp(name, "MPIX_", 5)) return name;
  }
  return "an MPI function";
}

void add_comm(Text& text, const Comm* comm) noexcept {
  if (!comm || comm->is(Kind::freed)) return;
  if (comm->stands_for) comm = comm->stands_for;
  text.add(", on communicator %s", *comm->name ? comm->name : "(unnamed)");
}

void add_message(Text& text, int source, int tag) noexcept {
  if (source == MPI_ANY_SOURCE)
    text.add("from any rank");
  else
    text.add("from rank %d", source);
  if (tag == MPI_ANY_TAG)
    text.add(", any tag");
  else
    text.add(", tag %d", tag);
}

void add_subject(Text& text, const WaitSubject& subject) noexcept {
  const Request* request = subject.request;
  const Comm* comm = request ? request->comm : subject.comm;
  if (comm && comm->is(Kind::freed)) comm = nullptr;
  const bool collective =
      request && (request->type == Request::Type::collective || request->type == Request::Type::persistent_coll);
  const bool receives =
      request && (request->type == Request::Type::recv || request->type == Request::Type::persistent_recv);
  const bool sends =
      request && (request->type == Request::Type::send || request->type == Request::Type::persistent_send);
  if ((receives || sends) && request->pattern.context & 1) {
    text.add(receives ? ": a part from rank %d" : ": a part to rank %d",
             receives ? request->pattern.source : request->peer);
  } else if (receives) {
    text.add(": for a message ");
    add_message(text, request->pattern.source, request->pattern.tag);
  } else if (sends && request->asked) {
    text.add(": to cancel a send of %llu bytes to rank %d, tag %d, which has not answered: it is in no MPI call, or has taken the message by a matched probe",
             static_cast<unsigned long long>(request->capacity), request->peer, request->pattern.tag);
  } else if (sends) {
    text.add(": to send %llu bytes to rank %d, tag %d, which has not received them yet",
             static_cast<unsigned long long>(request->capacity), request->peer, request->pattern.tag);
  } else if (request && request->ops && request->ops->describe) {
    char awaited[256];
    request->ops->describe(*request, awaited, sizeof awaited);
    text.add("%s", awaited);
  } else if (collective) {
    text.add(": for a nonblocking operation to end");
  } else if (request) {
    text.add(": for a generalized request");
  } else if (subject.rank_is_late) {
    text.add(": rank %d has not come to it", subject.rank);
  } else if (subject.of_rank) {
    text.add(": %s rank %d", subject.of_rank, subject.rank);
  } else if (comm) {
    text.add(": for a message ");
    add_message(text, subject.rank, subject.tag);
  }
  add_comm(text, comm);
}

/// Messages that nobody asked for, the trace of a wrong tag or rank.
void add_first_unexpected(Text& text, Vci& vci, const WaitSubject& subject) noexcept {
  const auto* first = static_cast<const Unexpected*>(vci.matcher.first_arrival());
  if (!first) return;
  text.add(". Not asked for so far: ");
  if (vci.matcher.unexpected() > 1) text.add("%zu messages; the first is ", vci.matcher.unexpected());
  constexpr auto collective = static_cast<std::uint64_t>(Space::collective);
  if (first->key.context & collective) {  // its tag and size are the library's, and would only puzzle
    text.add("a part of a collective operation from rank %d", first->key.source);
  } else {
    if (vci.matcher.unexpected() == 1) text.add("a message ");
    add_message(text, first->key.source, first->key.tag);
    text.add(", %llu bytes", static_cast<unsigned long long>(first->bytes));
  }
  const Comm* comm = subject.request ? subject.request->comm : subject.comm;
  if (comm && !comm->is(Kind::freed))
    text.add((first->key.context & ~collective) == own_context(*comm, Space::user) ? ", on the same communicator"
                                                                                   : ", on another communicator");
}

void add_unexpected(Text& text, Vci* vci, const WaitSubject& subject) noexcept {
  if (!vci && subject.request) vci = subject.request->vci;
  if (vci) try_submit(*vci, [&](VciGuard&) { add_first_unexpected(text, *vci, subject); });
}

}  // namespace

void report_wait(Vci* vci, const WaitSubject& subject, std::int64_t seconds) noexcept {
  Text text;
  add_subject(text, subject);
  add_unexpected(text, vci, subject);
  sys::notice("has waited for %lld seconds in %s%s", static_cast<long long>(seconds),
              subject.function ? subject.function : function_on_the_stack(), text.c_str());
}

}  // namespace heddle::proto
