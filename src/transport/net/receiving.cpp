// What arrives: events of the network, frames in their turn, and the records that are for the network itself.
#include <cerrno>
#include <cstring>
#include <utility>

#include "sys/clock.hpp"
#include "sys/log.hpp"
#include "transport/module.hpp"
#include "transport/net/control.hpp"
#include "transport/net/engine.hpp"
#include "transport/net/frame.hpp"

namespace heddle::net {
namespace {

constexpr int events_per_step = 8;  ///< bounds a step: each is at most one frame

template <typename T>
T read_payload(const Record& record) noexcept {
  T value;
  std::memcpy(&value, record.payload, sizeof value);
  return value;
}

/// Messages that are not this job's: a port scanner, another job's process with an old address. Never acted on.
void refuse(Verdict verdict, std::size_t bytes) noexcept {
  HEDDLE_NOTICE_ONCE("a network message of %zu bytes, %s, was ignored: something that does not belong to this job reaches its ports "
                     "(further ones are ignored silently)", bytes, verdict_text(verdict));
}

}  // namespace

/// Tells the peer how much has arrived, which gives it credit for as much more.
void Engine::tell(Held& held, Connection& connection, RecordKind kind) noexcept {
  connection.told = connection.received;
  push(held, connection, {0, 0, 0, kind}, &connection.told, sizeof connection.told);
}

void Engine::handle_control(Held& held, Connection& connection, const Record& record) noexcept {
  switch (record.kind.operation) {
    case Control::hello.operation: return learn_address(held, connection, record);
    case Control::where.operation: {
      const auto index = read_payload<std::uint32_t>(record);
      append_name(held, connection, Control::here, vci_at(index), common_.host->engine_of(lane_at(index)).name());
      send_appended(held, connection);
      return;
    }
    case Control::here.operation: {
      if (Connection* wanted = find(connection.process, read_payload<NetworkName>(record).vci)) learn_address(held, *wanted, record);
      return;
    }
    case Control::credit.operation: connection.acked = read_payload<std::uint64_t>(record); return;
    case Control::closing.operation:
      connection.acked = read_payload<std::uint64_t>(record);
      connection.peer_closing = connection.peer_may_go = true;
      if (capabilities().tells_departures) return tell(held, connection, Control::credit);
      if (!connection.said_closing) tell(held, connection, Control::farewell);  // else the two have crossed, and each answers the other
      return;
    case Control::farewell.operation:
      connection.acked = read_payload<std::uint64_t>(record);
      connection.heard_farewell = true;
      return;
    case Control::probe.operation:
      connection.acked = read_payload<std::uint64_t>(record);
      if (!is_parting(connection)) tell(held, connection, Control::credit);
      return;
    default: return;
  }
}

/// The records of a frame whose turn it is.
void Engine::take_frame(Held& held, Connection& connection, std::byte* data, std::size_t bytes) noexcept {
  ++connection.expected;
  for (std::size_t at = sizeof(FrameHead); at < bytes;) {
    Record& record = *record_at(data + at);
    const std::size_t room = record_room(record.bytes);
    if (record.kind.module == Control::module) {
      handle_control(held, connection, record);
    } else {
      connection.received += room;
      connection.peer_closing = connection.said_closing = connection.heard_farewell = false;
      handle_record(held, record);
    }
    at += room;
  }
  if (connection.received - connection.told >= common_.window / 4) {
    if (common_.host->holds_back(held)) withheld_ = true;
    else tell(held, connection, Control::credit);
  }
}

void Engine::arrived(Held& held, const wire::Event& event) noexcept {
  if (event.error) {
    HEDDLE_NOTICE_ONCE("an incoming network message failed: %s", std::strerror(event.error));
    return;
  }
  if (!event.data) {
    if (common_.written) return common_.written(held, event.immediate);
    HEDDLE_NOTICE_ONCE("a write of a peer was announced that nobody here waits for");
    return;
  }
  const Verdict verdict = check_frame(event.data, event.bytes, common_.key, common_.ranks);
  if (verdict != Verdict::good) return refuse(verdict, event.bytes);
  FrameHead head;
  std::memcpy(&head, event.data, sizeof head);
  const ProcessIndex process = processes.find({common_.self.job, head.rank});
  Connection* found = find(process, head.vci);
  Connection& connection = found ? *found : new_connection(process, head.vci);
  if (head.sequence != connection.expected) {
    // Messages are matched in order, but some providers report a long one after the short one that follows it.
    const std::uint32_t ahead = head.sequence - connection.expected;
    if (ahead > most_early)
      sys::fatal("messages of rank %u were lost on the network (number %u came, %u was due): the connection to it broke meanwhile",
                 head.rank, head.sequence, connection.expected);
    connection.early[head.sequence].assign(event.data, event.data + event.bytes);
    return;
  }
  take_frame(held, connection, event.data, event.bytes);
  if (connection.early.empty()) return;
  // Looked up, because the lowest number need not be the next one: they begin again at 0.
  for (auto next = connection.early.find(connection.expected); next != connection.early.end(); next = connection.early.find(connection.expected)) {
    std::vector<std::byte> frame = std::move(next->second);
    connection.early.erase(next);
    take_frame(held, connection, frame.data(), frame.size());
  }
}

/// After too much was kept here unasked: all peers may send again.
void Engine::give_withheld_credit(Held& held) noexcept {
  withheld_ = false;
  // No connection is made meanwhile: whoever sent something said `hello` first, so its address need not be asked for.
  for (auto& entry : connections_)
    if (entry.second->received != entry.second->told) tell(held, *entry.second, Control::credit);
}

bool Engine::poll(Held& held, bool neighbours) noexcept {
  ++epoch_;
  in_step_ = true;
  bool worked = false;
  if (!dirty_.empty()) worked = flush(held);
  if (pace_.due(neighbours, sys::now_ns)) {
    wire::Event events[events_per_step];
    const int n = context_->poll(events, events_per_step);
    if (n < 0) sys::fatal("the network's completion queue failed: %s", std::strerror(-n));
    for (int i = 0; i < n; ++i) {
      wire::Operation* const operation = events[i].operation;
      if (operation) operation->done(*operation, events[i], held);
      else arrived(held, events[i]);
    }
    if (n > 0) {
      pace_.found();
      worked = true;
    } else {
      worked |= context_->has_moved();
    }
  }
  if (withheld_ && !common_.host->holds_back(held)) give_withheld_credit(held);
  if (reads_head_) worked |= issue_queued();
  context_->flush();  // the reads and writes of this step leave together
  if (waiting_) {
    waiting_ = false;
    if (dirty_.empty()) gathered_.store(false, std::memory_order_relaxed);
  }
  in_step_ = false;
  return worked;
}

}  // namespace heddle::net
