// From an arrived record to the step of the protocol that it asks for.
#include <iterator>
#include <new>

#include "proto/protocol_state.hpp"
#include "proto/rendezvous.hpp"

namespace heddle::proto {
namespace {

template <typename T>
T read(const Record& record) noexcept {
  T value;
  std::memcpy(&value, record.payload, sizeof value);
  return value;
}

match::Pattern key_of(const Record& record) noexcept { return {record.context, record.source, record.tag}; }

/// Inlined where records are taken one after the other.
[[gnu::always_inline]] inline Request* take_receive(Vci& vci, const Record& record) noexcept {
  return static_cast<Request*>(vci.matcher.take_posted(key_of(record)));
}

/// A message that no receive matched: into the store of unexpected ones.
[[gnu::noinline]] void keep_message(VciGuard& guard, const Record& record) noexcept {
  Vci& vci = guard.vci();
  const bool eager = record.kind == PointToPoint::eager;
  const bool rendezvous = record.kind == PointToPoint::request;
  const std::size_t skip = eager ? 0 : sizeof(AckTo);
  const std::size_t payload = rendezvous ? 0 : record.bytes - skip;
  Unexpected* message = new_unexpected(vci, payload);
  message->key = key_of(record);
  message->lane = record.lane;
  message->bytes = payload;
  if (rendezvous) {
    message->form = Unexpected::Form::rendezvous;
    message->request = read<RendezvousRequest>(record);
    message->bytes = message->request.bytes;
  } else {
    if (!eager) {
      message->form = Unexpected::Form::sync;
      message->ack = read<AckTo>(record);
    }
    std::memcpy(message->payload(), record.payload + skip, payload);
  }
  keep(vci, *message);
}

/// A message: to the earliest receive that matches, or into the store.
void handle_message(VciGuard& guard, const Record& record) noexcept {
  Request* receive = take_receive(guard.vci(), record);
  if (!receive) return keep_message(guard, record);
  if (record.kind == PointToPoint::eager) return deliver(guard, *receive, record.payload, record.bytes, record.source, record.tag);
  if (record.kind == PointToPoint::request)
    return begin_transfer(guard, *receive, read<RendezvousRequest>(record), record.lane, record.source, record.tag);
  const auto to = read<AckTo>(record);
  reply(guard, to.process, record.lane, {0, 0, 0, PointToPoint::ack}, &to.request, sizeof to.request);
  deliver(guard, *receive, record.payload + sizeof to, record.bytes - sizeof to, record.source, record.tag);
}

}  // namespace

namespace {

bool take_records(VciGuard& guard, int most, const Request* awaited) noexcept {
  Vci& vci = guard.vci();
  for (int i = 0; i < most; ++i) {
    sync::RingLine* line = vci.ring.front();
    if (!line) return i;
    auto& record = *reinterpret_cast<Record*>(line);
    if (record.kind == PointToPoint::eager) [[likely]] {  // as in handle_message, here without a call
      if (Request* receive = take_receive(vci, record)) [[likely]] deliver(guard, *receive, record.payload, record.bytes, record.source, record.tag);
      else keep_message(guard, record);
    } else {
      handle_record(guard, record);
    }
    vci.ring.pop(line);
    if (awaited && awaited->is_done()) return true;
  }
  return true;
}

VciState* open_state(Vci&) noexcept {
  auto* state = new (std::nothrow) State;
  if (state && (state->backlog = make_backlog())) return state;
  delete state;
  return nullptr;
}

void close_state(VciState& base) noexcept {
  auto& state = static_cast<State&>(base);
  destroy_backlog(state.backlog);
  free_spares(state);
  delete &state;
}

bool advance(VciGuard& guard) noexcept {
  bool worked = false;
  if (guard.vci().backlogged.load(std::memory_order_relaxed)) worked = drain_backlog(guard);
  if (state_of(guard.vci()).transfers) worked |= advance_transfers(guard);
  return worked;
}

constexpr RecordOperation operations[] = {
    {"eager", 0, true, [](Held& held, Record& record) noexcept { handle_message(VciGuard::of(held), record); }},
    {"eager_sync", sizeof(AckTo), true, [](Held& held, Record& record) noexcept { handle_message(VciGuard::of(held), record); }},
    {"ack", sizeof(RequestToken), true,
     [](Held& held, Record& record) noexcept { complete(*reinterpret_cast<Request*>(read<RequestToken>(record)), VciGuard::of(held)); }},
    {"request", sizeof(RendezvousRequest), true, [](Held& held, Record& record) noexcept { handle_message(VciGuard::of(held), record); }},
    {"clear_to_send", sizeof(ClearToSend), false,
     [](Held& held, Record& record) noexcept { handle_clear_to_send(VciGuard::of(held), read<ClearToSend>(record)); }},
    {"data_request", sizeof(DataRequest), true,
     [](Held& held, Record& record) noexcept { handle_data_request(VciGuard::of(held), read<DataRequest>(record)); }},
    {"data", sizeof(StreamData), true, [](Held& held, Record& record) noexcept { handle_data(VciGuard::of(held), record); }},
    {"piece", sizeof(PieceData), false, [](Held& held, Record& record) noexcept { handle_piece(VciGuard::of(held), record); }},
    {"placed", sizeof(Placed), false, [](Held& held, Record& record) noexcept { handle_placed(VciGuard::of(held), read<Placed>(record)); }},
    {"finished", sizeof(RequestToken), true,
     [](Held& held, Record& record) noexcept { handle_finished(VciGuard::of(held), read<RequestToken>(record)); }},
    {"cancel", sizeof(Cancel), true, [](Held& held, Record& record) noexcept { handle_cancel(VciGuard::of(held), record); }},
    {"cancelled", sizeof(Cancel), true, [](Held& held, Record& record) noexcept { handle_cancelled(VciGuard::of(held), read<Cancel>(record)); }},
};
static_assert(std::size(operations) == PointToPoint::cancelled.operation + 1);

}  // namespace

void register_point_to_point() noexcept {
  static constexpr Module records{PointToPoint::module, "point-to-point", operations};
  static constexpr VciModule in_vci{PointToPoint::module, open_state, close_state, advance, take_records};
  register_module(records);
  register_vci_module(in_vci);
}

}  // namespace heddle::proto
