// Messages that no receive has matched yet: kept, taken by a receive, given back.
#include <cstdlib>

#include "proto/protocol_state.hpp"
#include "proto/rendezvous.hpp"
#include "sys/log.hpp"
#include "vci/wait.hpp"

namespace heddle {
namespace proto {

namespace {

constexpr std::size_t small_payload = 64;  ///< bytes that every node has room for: such nodes are used again
constexpr unsigned most_spares = 1024;     ///< of a VCI; a few hundred kilobytes

Unexpected* take_spare(State& state) noexcept {
  Unexpected* spare = state.spare;
  if (spare) {
    state.spare = static_cast<Unexpected*>(spare->all.next);
    --state.spares;
  }
  return spare;
}

}  // namespace

Unexpected* new_unexpected(Vci& vci, std::size_t payload) noexcept {
  State& state = state_of(vci);
  const std::size_t room = sizeof(Unexpected) + (payload < small_payload ? small_payload : payload);
  void* memory = payload <= small_payload ? take_spare(state) : nullptr;
  if (!memory) memory = std::malloc(room);
  if (!memory)
    sys::fatal(
        "no memory for an unexpected message of %zu bytes; %zu messages that no receive asked for are kept already "
        "(HEDDLE_UNEXPECTED bounds them)",
        payload, vci.matcher.unexpected());
  auto* message = new (memory) Unexpected;
  message->room = room;  // the node itself counts too, or many small messages would not
  state.unexpected_bytes += message->room;
  if (!vci.holding && state.unexpected_bytes > limits.unexpected) {
    vci.holding = true;
    vci.ring.set_hold(true);
  }
  return message;
}

void keep(Vci& vci, Unexpected& message) noexcept {
  vci.matcher.keep(message);
  wake_sleepers(vci);
}

void free_unexpected(Vci& vci, Unexpected* message) noexcept {
  State& state = state_of(vci);
  state.unexpected_bytes -= message->room;
  // Half, so that the flag does not flutter at the limit.
  if (vci.holding && state.unexpected_bytes <= limits.unexpected / 2) {
    vci.holding = false;
    vci.ring.set_hold(false);
  }
  if (message->room > sizeof(Unexpected) + small_payload || state.spares == most_spares) return std::free(message);
  message->all.next = state.spare;
  state.spare = message;
  ++state.spares;
}

void discard_unexpected(Vci& vci) noexcept {
  while (match::Arrival* arrival = vci.matcher.first_arrival()) {
    vci.matcher.remove_arrival(*arrival);
    free_unexpected(vci, static_cast<Unexpected*>(arrival));
  }
}

void free_spares(State& state) noexcept {
  while (Unexpected* spare = take_spare(state)) std::free(spare);
}

void consume(VciGuard& guard, Request& receive, Unexpected& message) noexcept {
  Vci& vci = guard.vci();
  switch (message.form) {
    case Unexpected::Form::sync: {
      const RecordHead head{message.key.context, 0, 0, PointToPoint::ack};
      reply(guard, message.ack.process, message.lane, head, &message.ack.request, sizeof(RequestToken));
      [[fallthrough]];
    }
    case Unexpected::Form::eager:
      deliver(guard, receive, message.payload(), message.bytes, message.key.source, message.key.tag);
      break;
    case Unexpected::Form::rendezvous:
      begin_transfer(guard, receive, message.request, message.lane, message.key.source, message.key.tag);
      break;
    case Unexpected::Form::local: {
      Request& sender = *message.sender;
      copy(sender.buffer, receive.buffer);
      set_received(receive, message.bytes, message.key.source, message.key.tag);
      complete(receive, guard);
      complete(sender, guard);
      break;
    }
  }
  free_unexpected(vci, &message);
}

}  // namespace proto
}  // namespace heddle
