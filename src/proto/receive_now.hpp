// The blocking receive, mostly without a request. A header, so that MPI_Recv and the library's own receives each get it inlined.
#pragma once

#include "core/status.hpp"
#include "proto/p2p.hpp"
#include "proto/protocol_state.hpp"
#include "vci/has_work.hpp"
#include "vci/wait.hpp"

namespace heddle::proto {

/// Posts a receive, or gives it a message that is here. \pre the VCI of `receive_lane` is held; the source is not MPI_PROC_NULL
template <Space space>
inline Request* receive(VciGuard& guard, const Buffer& buffer, int source, int tag, Comm& comm) noexcept {
  Request* r = guard.vci().requests.allocate(&guard.vci());  // its status is set when the message comes
  r->state.store(Request::active, std::memory_order_relaxed);
  r->type = Request::Type::recv;
  r->comm = &comm;
  fill(*r, buffer, {own_context(comm, space), source, tag});
  match_or_post(guard, *r);
  return r;
}

/// Takes a complete eager message that needs no acknowledgement and fits into a contiguous buffer out of the unexpected ones. False: the
/// message is something else, and left alone.
bool take_unexpected(Vci& vci, Unexpected& message, const Buffer& buffer, MPI_Status* status) noexcept;

/// Whether the record at the front of the ring is a message for this receive, and fits. Others may come first: unexpected messages, and posted
/// receives.
inline bool is_for(const Record& record, match::Pattern pattern, const Buffer& buffer) noexcept {
  return record.kind == PointToPoint::eager && record.context == pattern.context &&
         (record.source == pattern.source || pattern.source == MPI_ANY_SOURCE) && (record.tag == pattern.tag || pattern.tag == MPI_ANY_TAG) &&
         record.bytes <= buffer.bytes() && buffer.contiguous();
}
inline const Record* record_of(const sync::RingLine* line) noexcept { return reinterpret_cast<const Record*>(line); }

/// A message that was waited for is often answered at once: the line that the answer will be written to is prefetched.
inline void expect_answer(Vci& vci, const Comm& comm) noexcept {
  const sync::RingLine* line = vci.ring.front();
  if (!line) return;
  const int source = reinterpret_cast<const Record*>(line)->source;
  // A record of another communicator only costs a line.
  if (static_cast<unsigned>(source) >= static_cast<unsigned>(comm.peer_size())) return;
  const Address to = comm.plain ? Address{comm.peers->process(source), comm.lane, 0} : comm.address(source);
  const shm::Peer* peer = shm::find(to.process);
  const shm::Port* port = peer ? peer->port(to.lane) : nullptr;
  if (port) port->ring.expect();
}

/// Whether another thread of this process may hand the message over in the VCI itself, where looks at the ring do not see it.
inline bool may_come_from_here(const Vci& vci, const Comm& comm, int source) noexcept {
  if (!runtime.threads.load(std::memory_order_relaxed)) return false;
  if (source == MPI_ANY_SOURCE) return true;
  const Address from = comm.address(source);
  return from.process == runtime.self && &vci_of_lane(from.lane) == &vci;
}

/// Takes such a record. True: it is time to look at the other VCIs.
inline bool take(Vci& vci, const sync::RingLine* line, std::byte* to, MPI_Status* status) noexcept {
  const Record& record = *record_of(line);
  sys::copy_bytes(to, record.payload, record.bytes);
  fill_status(status, record.source, record.tag, record.bytes);
  vci.ring.pop(line);
  return look_around(vci);
}

/// What remains of a blocking receive that has been begun, one step in the VCI after another.
struct ReceiveStep {
  const Buffer& buffer;
  match::Pattern pattern;
  Comm& comm;
  MPI_Status* status;
  Request* request = nullptr;          ///< made when the message does not come soon
  bool taken = false, around = false;  ///< the message has come; it is time to look at the other VCIs

  /// \param looked not for the first time
  template <Space space>
  void look(VciGuard& guard, bool looked) noexcept {
    Vci& vci = guard.vci();
    if (looked) expect_answer(vci, comm);
    Unexpected* message = nullptr;
    if (vci.matcher.unexpected()) message = static_cast<Unexpected*>(vci.matcher.find_arrival(pattern));
    if (message) {
      taken = message->bytes <= buffer.bytes() && take_unexpected(vci, *message, buffer, status);
      if (taken) return;
    } else if (const sync::RingLine* line = vci.ring.front(); line && is_for(*record_of(line), pattern, buffer)) {
      const Record& record = *record_of(line);
      taken = !vci.matcher.awaits({record.context, record.source, record.tag});
      if (taken) return void(around = take(vci, line, buffer.data(), status));
    }
    if (!looked && !message && !has_work(vci)) return;
    request = receive<space>(guard, buffer, pattern.source, pattern.tag, comm);
    if (vci.ring.pending() && progress(guard, request)) {  // it may be among the next in the ring
      taken = reap(guard, *request, status);
      around = look_around(vci);
    }
  }
  [[nodiscard]] bool is_decided() const noexcept { return taken || request; }
};

/// \param held the home VCI is, and is released at the end of the first look
template <Space space, bool held>
[[gnu::noinline]] int receive_now_slowly(void* base, MPI_Count count, Datatype& type, int source, int tag, Comm& comm, MPI_Status* status) noexcept {
  const Buffer buffer(base, count, type);
  if (source == MPI_PROC_NULL || (space == Space::user && comm.routing && comm.routing->spread)) [[unlikely]]
    return wait(irecv(buffer, source, tag, comm, space), status);
  ReceiveStep step{buffer, {own_context(comm, space), source, tag}, comm, status};
  Vci& vci = home_vci(comm);
  if constexpr (held) {
    HandOver first(vci);
    step.template look<space>(first.guard(), false);
  }
  for (bool looked = held; !step.is_decided(); looked = true) {
    if (looked && !may_come_from_here(vci, comm, source))
      for (unsigned looks = 4 * idle_looks(); looks && !vci.ring.pending(); --looks) sync::one_look();
    submit(vci, [&](VciGuard& guard) { step.template look<space>(guard, looked); });
  }
  if (step.around) [[unlikely]]
    progress_all();
  return step.taken ? MPI_SUCCESS : wait(step.request, status);
}

/// A receive that finds unexpected messages. \pre the home VCI is held; released at the end
template <Space space>
[[gnu::noinline]] int receive_unexpected(void* base, MPI_Count count, Datatype& type, int source, int tag, Comm& comm, MPI_Status* status) noexcept {
  Vci& vci = home_vci(comm);
  const Buffer buffer(base, count, type);
  auto* message = static_cast<Unexpected*>(vci.matcher.find_arrival({own_context(comm, space), source, tag}));
  if (!message || message->bytes > buffer.bytes() || !take_unexpected(vci, *message, buffer, status))
    return receive_now_slowly<space, true>(base, count, type, source, tag, comm, status);
  HandOver::release(vci);
  return MPI_SUCCESS;
}

/// The ends of a receive that has found its message in the ring: of any size, with the VCI held, which is released; and with a look at all VCIs.
[[gnu::noinline]] int take_held(Vci& vci, const sync::RingLine* line, std::byte* to, MPI_Status* status) noexcept;
[[gnu::cold, gnu::noinline]] int look_at_all() noexcept;

/// MPI_Recv: returns the error code. A message that is here, or comes soon, is copied to the user without a request; the first in the ring,
/// where it is a few words and nothing can come before it, without a call, so that no register has to be saved.
template <Space space>
inline int receive_now(void* base, MPI_Count count, Datatype& type, int source, int tag, Comm& comm, MPI_Status* status) noexcept {
  Vci* vci = detail::lane_table[number(comm.lane)].load(std::memory_order_acquire);  // pairs with open_lane
  if (source == MPI_PROC_NULL || (space == Space::user && comm.routing && comm.routing->spread) || !vci || !HandOver::try_hold(*vci)) [[unlikely]]
    return receive_now_slowly<space, false>(base, count, type, source, tag, comm, status);
  const Buffer buffer(base, count, type);
  if (vci->matcher.unexpected()) return receive_unexpected<space>(base, count, type, source, tag, comm, status);
  const sync::RingLine* line = vci->ring.front_at_once();
  if (vci->matcher.awaits_any() || !line || !is_for(*record_of(line), {own_context(comm, space), source, tag}, buffer))
    return receive_now_slowly<space, true>(base, count, type, source, tag, comm, status);
  const Record& record = *record_of(line);
  if (!sys::is_copied_inline(record.bytes)) return take_held(*vci, line, buffer.data(), status);
  sys::copy_bytes(buffer.data(), record.payload, record.bytes);
  fill_status(status, record.source, record.tag, record.bytes);
  vci->ring.pop_line();
  const bool around = look_around(*vci);
  HandOver::release(*vci);
  return around ? look_at_all() : MPI_SUCCESS;
}

}  // namespace heddle::proto
