// From an arrived record to the step of the protocol that it asks for.
#include "proto/protocol_state.hpp"
#include "sys/log.hpp"
#include "vci/protocol.hpp"

namespace heddle::proto {
namespace {

template <typename T>
T read(const Record& record) noexcept {
  T value;
  std::memcpy(&value, record.payload, sizeof value);
  return value;
}

match::Pattern key_of(const Record& record) noexcept { return {record.context, record.source, record.tag}; }

Request* take_receive(Vci& vci, const Record& record) noexcept {
  return static_cast<Request*>(vci.matcher.take_posted(key_of(record)));
}

/// A message that no receive matched: into the store of unexpected ones.
[[gnu::noinline]] void keep_message(VciGuard& guard, const Record& record) noexcept {
  Vci& vci = guard.vci();
  const bool eager = record.kind == RecordKind::eager;
  const bool offer = record.kind == RecordKind::offer;
  const std::size_t skip = eager ? 0 : sizeof(AckTo);
  const std::size_t payload = offer ? 0 : record.bytes - skip;
  Unexpected* message = new_unexpected(vci, payload);
  message->key = key_of(record);
  message->lane = record.lane;
  message->bytes = payload;
  if (offer) {
    message->form = Unexpected::Form::offer;
    message->offer = read<Offer>(record);
    message->bytes = message->offer.bytes;
  } else {
    if (!eager) {
      const auto to = read<AckTo>(record);
      message->form = Unexpected::Form::sync;
      message->offer.request = to.request;
      message->offer.process = to.process;
    }
    std::memcpy(message->payload(), record.payload + skip, payload);
  }
  keep(vci, *message);
}

/// A message: to the earliest receive that matches, or into the store.
void handle_message(VciGuard& guard, const Record& record) noexcept {
  Request* receive = take_receive(guard.vci(), record);
  if (!receive) return keep_message(guard, record);
  if (record.kind == RecordKind::eager) return deliver(guard, *receive, record.payload, record.bytes, record.source, record.tag);
  if (record.kind == RecordKind::offer) return begin_transfer(guard, *receive, read<Offer>(record), record.lane, record.source, record.tag);
  const auto to = read<AckTo>(record);
  reply(guard, to.process, record.lane, {0, 0, 0, RecordKind::ack, 0}, &to.request, sizeof to.request);
  deliver(guard, *receive, record.payload + sizeof to, record.bytes - sizeof to, record.source, record.tag);
}

}  // namespace

bool take_records(VciGuard& guard, int most, const Request* awaited) noexcept {
  Vci& vci = guard.vci();
  for (int i = 0; i < most; ++i) {
    sync::RingLine* line = vci.ring.front();
    if (!line) return i;
    auto& record = *reinterpret_cast<Record*>(line);
    if (record.kind == RecordKind::eager) [[likely]] {  // as in handle_message, here without a call
      if (Request* receive = take_receive(vci, record)) [[likely]] deliver(guard, *receive, record.payload, record.bytes, record.source, record.tag);
      else keep_message(guard, record);
    } else {
      handle_record(guard, record);
    }
    vci.ring.pop();
    if (awaited && awaited->is_done()) return true;
  }
  return true;
}

void handle_record(VciGuard& guard, Record& record) noexcept {
  switch (record.kind) {
    case RecordKind::eager:
    case RecordKind::eager_sync:
    case RecordKind::offer: return handle_message(guard, record);
    case RecordKind::ack: return complete(*reinterpret_cast<Request*>(read<RequestToken>(record)), guard);
    case RecordKind::accept: return handle_accept(guard, read<Accept>(record));
    case RecordKind::pull: return handle_pull(guard, read<Accept>(record));
    case RecordKind::data: return handle_data(guard, record);
    case RecordKind::placed: return handle_placed(guard, read<DataFor>(record));
    case RecordKind::finished: return handle_finished(guard, read<RequestToken>(record));
    case RecordKind::cancel: return handle_cancel(guard, record);
    case RecordKind::cancelled: return handle_cancelled(guard, read<Cancel>(record));
    default: break;  // the network's own records do not come here
  }
  sys::fatal("a record of unknown kind %u arrived: the ranks of this job run different versions of the library",
             static_cast<unsigned>(record.kind));
}

}  // namespace heddle::proto
