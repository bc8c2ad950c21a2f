// MPI_Cancel. A receive is in this process's hands. The message of a send may be with its receiver, who alone knows whether it has
// matched it, and so is asked. docs/design/core.md, cancelling.
#include <atomic>
#include <string>

#include "proto/network.hpp"
#include "proto/protocol_state.hpp"
#include "proto/rendezvous.hpp"

namespace heddle {

using proto::Unexpected;

void cancel_receive(Request& receive) noexcept {
  submit(*receive.vci, [&](VciGuard& guard) {
    if (receive.is_done() || !receive.bin) return;
    guard.vci().matcher.remove_posted(receive);
    receive.special = receive.cancelled = true;
    receive.source = MPI_ANY_SOURCE;
    receive.tag = MPI_ANY_TAG;
    receive.bytes = 0;
    complete(receive, guard);
  });
}

namespace {

/// Takes a message that nobody has matched out of the store. False: there is none for which `wanted` is true.
template <typename Wanted>
bool discard(Vci& vci, match::Pattern key, Wanted&& wanted) noexcept {
  auto* message = static_cast<Unexpected*>(
      vci.matcher.find_arrival_if(key, [&](match::Arrival& arrival) { return wanted(static_cast<const Unexpected&>(arrival)); }));
  if (!message) return false;
  vci.matcher.remove_arrival(*message);
  proto::free_unexpected(vci, message);
  return true;
}

/// Of this process, never 0. Relaxed: numbers need only differ.
std::uint32_t next_question() noexcept {
  static std::atomic<std::uint32_t> last{0};
  std::uint32_t number;
  do number = last.fetch_add(1, std::memory_order_relaxed) + 1;
  while (!number);
  return number;
}

void cancel_in_vci(VciGuard& guard, Request& send) noexcept {
  if (send.is_done() || send.asked) return;
  Vci& vci = guard.vci();
  const Address to = send.to;
  if (to.process == runtime.self && &vci_of_lane(to.lane) == &vci) {
    // Not there: a matched probe has it, and its receive completes the send.
    if (discard(vci, send.pattern, [&](const Unexpected& m) { return m.form == Unexpected::Form::local && m.sender == &send; }))
      proto::end_cancelled(guard, send);
    return;
  }
  const Transfer* announced = proto::transfer_of(send);
  if (announced && announced->strategy != Strategy::undecided) return;  // the receiver has asked for the bytes
  const bool network = route(to) == Route::network;
  shm::Peer* peer = network ? nullptr : &proto::peer_of(to.process);
  if (peer && proto::withdraw(guard, *peer, to.lane, send)) return proto::end_cancelled(guard, send);
  if (!announced && static_cast<SendMode>(send.mode) != SendMode::synchronous) return;  // it completes by itself as soon as its bytes have left
  send.special = true;
  send.asked = next_question();
  const proto::Cancel what{reinterpret_cast<proto::RequestToken>(&send), runtime.name, send.asked, 0};
  const RecordHead head = proto::head_of(send, proto::PointToPoint::cancel);
  if (peer) return proto::push_cancel(guard, *peer, to.lane, head, what);
  if (proto::network::has_left(vci, to.process, to.lane)) return proto::end_cancelled(guard, send);
  proto::network::push(guard, to.process, to.lane, head, &what, sizeof what);
}

}  // namespace

void cancel_send(Request& send) noexcept {
  submit(*send.vci, [&](VciGuard& guard) { cancel_in_vci(guard, send); });
}

namespace proto {

void end_cancelled(VciGuard& guard, Request& send) noexcept {
  send.special = send.cancelled = true;
  if (Transfer* transfer = transfer_of(send)) finish_transfer(guard, *transfer);
  else complete(send, guard);
}

void handle_cancel(VciGuard& guard, const Record& record) noexcept {
  Cancel what;
  std::memcpy(&what, record.payload, sizeof what);
  // The question came behind the message. So if this is not kept, a receive or a matched probe has it, whose answer is the sender's as well.
  const bool was_kept = discard(guard.vci(), {record.context, record.source, record.tag}, [&](const Unexpected& m) {
    if (m.form != Unexpected::Form::sync && m.form != Unexpected::Form::rendezvous) return false;
    const AckTo sender = m.awaited_by();
    return sender.request == what.request && sender.process == what.process;
  });
  if (was_kept) reply(guard, what.process, record.lane, {0, 0, 0, PointToPoint::cancelled}, &what, sizeof what);
}

void handle_cancelled(VciGuard& guard, const Cancel& what) noexcept {
  auto& send = *reinterpret_cast<Request*>(what.request);  // whatever it is used for by now: the memory of requests stays
  if (send.asked == what.number) end_cancelled(guard, send);
}

namespace {
/// Whether a process of the node may still ask. One that is gone, and was never heard in person, cannot.
bool may_ask(ProcessIndex process) noexcept {
  std::string problem;
  const shm::Peer* peer = shm::find(process);
  if (!peer) peer = shm::attach(process, problem);
  return peer && peer->stage() == shm::Stage::running;
}
}  // namespace

bool is_awaited() noexcept {
  bool awaited = false;
  for_each_vci([&](Vci& vci) {
    if (awaited) return;
    submit(vci, [&](VciGuard&) {
      for (match::Arrival* at = vci.matcher.first_arrival(); at && !awaited; at = at->all.next) {
        const auto& message = *static_cast<const Unexpected*>(at);
        if (message.form != Unexpected::Form::sync && message.form != Unexpected::Form::rendezvous) continue;
        const ProcessIndex sender = index_of(message.awaited_by().process);
        if (sender == runtime.self) continue;
        awaited = processes.route(sender) == Route::network ? !proto::network::is_finishing(vci, sender, message.lane) : may_ask(sender);
      }
    });
  });
  return awaited;
}

}  // namespace proto
}  // namespace heddle
