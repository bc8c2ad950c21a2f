// What arrives from the network: completions, frames, and the records that are for the network part itself.
#include <bit>
#include <cerrno>

#include "proto/net_state.hpp"
#include "sys/clock.hpp"
#include "sys/log.hpp"
#include "sys/params.hpp"
#include "transport/ofi/tcp_watch.hpp"
#include "vci/protocol.hpp"

namespace heddle::net {
namespace {

HEDDLE_PARAM_INT(timeout_seconds, "HEDDLE_NET_TIMEOUT", 60, 0, 1'000'000,
                 "seconds after which a peer that confirms nothing of what it was sent is given up, which ends the job; 0: never");

/// Frames ahead of their turn; more mean that some were lost. When both ends have connected at once, all that the kernel holds of the one
/// connection may come before what it holds of the other: megabytes of small frames.
constexpr std::uint32_t most_early = 1 << 18;
constexpr int events_per_step = 8;  ///< bounds a step: each is at most one frame

template <typename T>
T read(const Record& record) noexcept {
  T value;
  std::memcpy(&value, record.payload, sizeof value);
  return value;
}

Link* find_link(Net& net, ProcessIndex process, unsigned vci) noexcept {
  const auto found = net.links.find(key_of(process, vci));
  return found == net.links.end() ? nullptr : found->second.get();
}

/// Gives the link its address from a `hello` or `here`, and sends what waited for it.
void learn_address(VciGuard& guard, Link& link, const Record& record) noexcept {
  if (link.address != wire::no_address) return;
  if (!link.net->context.tells_departures()) ofi::watch_peer(record.payload + sizeof(NetworkName), link.process);
  link.address = link.net->context.insert({reinterpret_cast<const char*>(record.payload + sizeof(NetworkName)), read<NetworkName>(record).length});
  if (link.address == wire::no_address) lost(link, "looking up its address", EADDRNOTAVAIL);
  flush_link(guard, link);
}

/// Tells the peer how much has arrived.
void tell(VciGuard& guard, Link& link, RecordKind kind) noexcept {
  link.told = link.received;
  std::memcpy(append(guard, link, {0, 0, 0, kind, 0}, sizeof link.told), &link.told, sizeof link.told);
  send_appended(guard, link);
}

/// The peer wants to know where our VCI `index` is.
void answer_where(VciGuard& guard, Link& link, std::uint32_t index) noexcept {
  Net& asked = net_of(vci_of_lane(index));
  const std::string_view name = asked.context.name();
  const NetworkName head{static_cast<std::uint16_t>(index), static_cast<std::uint16_t>(name.size()), 0};
  std::byte* to = append(guard, link, {0, 0, 0, Control::here, 0}, sizeof head + name.size());
  std::memcpy(to, &head, sizeof head);
  std::memcpy(to + sizeof head, name.data(), name.size());
  send_appended(guard, link);
}

std::atomic<bool> finishing{false};  ///< in MPI_Finalize or the end of the last session. Relaxed: the helper may see it a tick later

/// Whether a send that failed does no harm: the peer is where it may leave, or both are, though its word of that is not read yet. (Its
/// confirmation may be unread, too, and then this process asks it for one, in vain.)
bool may_fail(const Link& link, int error) noexcept {
  if (link.peer_may_go) return true;
  const bool closed = error == ECONNRESET || error == EPIPE;
  return closed && finishing.load(std::memory_order_relaxed) && link.net->context.tells_departures();
}

/// Between two that part nothing is said that is not needed: what comes to a process that has left makes its system forget what the peer has
/// not read yet.
bool is_parting(const Link& link) noexcept { return !link.net->context.tells_departures() && (link.said_closing || link.peer_closing); }

void handle_control(VciGuard& guard, Link& link, const Record& record) noexcept {
  switch (record.kind.operation) {
    case Control::hello.operation: return learn_address(guard, link, record);
    case Control::where.operation: return answer_where(guard, link, read<std::uint32_t>(record));
    case Control::here.operation: {
      const auto name = read<NetworkName>(record);
      if (Link* wanted = find_link(*link.net, link.process, name.vci)) learn_address(guard, *wanted, record);
      return;
    }
    case Control::credit.operation: link.acked = read<std::uint64_t>(record); return;
    case Control::closing.operation:
      link.acked = read<std::uint64_t>(record);
      link.peer_closing = link.peer_may_go = true;
      if (link.net->context.tells_departures()) return tell(guard, link, Control::credit);
      if (!link.said_closing) tell(guard, link, Control::farewell);  // else the two have crossed, and each answers the other
      return;
    case Control::farewell.operation:
      link.acked = read<std::uint64_t>(record);
      link.heard_farewell = true;
      return;
    case Control::probe.operation:
      link.acked = read<std::uint64_t>(record);
      if (!is_parting(link)) tell(guard, link, Control::credit);
      return;
    default: return;
  }
}

/// Messages that are not this job's: a port scanner, another job's process with an old address. Never acted on.
void refuse(Verdict verdict, std::size_t bytes) noexcept {
  HEDDLE_NOTICE_ONCE("a network message of %zu bytes, %s, was ignored: something that does not belong to this job reaches its ports "
                     "(further ones are ignored silently)", bytes, verdict_text(verdict));
}

/// The records of a frame whose turn it is.
void take_frame(VciGuard& guard, Link& link, std::byte* data, std::size_t bytes) noexcept {
  Net& net = *link.net;
  ++link.expected;
  for (std::size_t at = sizeof(FrameHead); at < bytes;) {
    Record& record = *record_at(data + at);
    const std::size_t room = record_room(record.bytes);
    if (record.kind.module == Control::module) {
      handle_control(guard, link, record);
    } else {
      link.received += room;
      link.peer_closing = link.said_closing = link.heard_farewell = false;
      heddle::handle_record(guard, record);
    }
    at += room;
  }
  if (link.received - link.told >= window / 4) {
    if (guard.vci().holding) net.withheld = true;
    else tell(guard, link, Control::credit);
  }
}

void handle_frame(VciGuard& guard, Net& net, std::byte* data, std::size_t bytes) noexcept {
  const Verdict verdict = check_frame(data, bytes, job_key, static_cast<std::uint32_t>(runtime.size));
  if (verdict != Verdict::good) return refuse(verdict, bytes);
  FrameHead head;
  std::memcpy(&head, data, sizeof head);
  Link* link = find_link(net, head.process, head.vci);
  if (!link) link = &new_link(net, head.process, head.vci);
  if (head.sequence != link->expected) {
    // Messages are matched in order, but some providers report a long one after the short one that follows it.
    const std::uint32_t ahead = head.sequence - link->expected;
    if (ahead > most_early)
      sys::fatal("messages of rank %u were lost on the network (number %u came, %u was due): the connection to it broke meanwhile",
                 head.process, head.sequence, link->expected);
    link->early[head.sequence].assign(data, data + bytes);
    return;
  }
  take_frame(guard, *link, data, bytes);
  if (link->early.empty()) return;
  // Looked up, because the lowest number need not be the next one: they begin again at 0.
  for (auto next = link->early.find(link->expected); next != link->early.end(); next = link->early.find(link->expected)) {
    const std::vector<std::byte> frame = std::move(next->second);
    link->early.erase(next);
    take_frame(guard, *link, const_cast<std::byte*>(frame.data()), frame.size());
  }
}

void handle_event(VciGuard& guard, Net& net, const wire::Event& event) noexcept {
  if (!event.operation) return;
  switch (event.operation->kind) {
    case wire::Operation::Kind::receive:
      if (event.error) {
        HEDDLE_NOTICE_ONCE("an incoming network message failed: %s", strerror(event.error));
        return;
      }
      return handle_frame(guard, net, event.data, event.bytes);
    case wire::Operation::Kind::send: {
      auto& frame = *static_cast<Frame*>(event.operation);
      Link& link = *frame.link;
      --link.posted;
      --net.under_way;
      if (event.error && !may_fail(link, event.error)) lost(link, "sending", event.error);
      if (frame.direct && frame.completes) complete(*frame.direct, guard);
      frame.next = net.free_frames;
      net.free_frames = &frame;
      return;
    }
    case wire::Operation::Kind::read: {
      auto& piece = *static_cast<ReadPiece*>(event.operation);
      if (event.error) lost(*piece.transfer->net->link, "reading a large message", event.error);
      return handle_read(guard, net, piece);
    }
  }
}

/// After too much was kept unasked: tell everybody that they may send again.
void give_withheld_credit(VciGuard& guard, Net& net) noexcept {
  net.withheld = false;
  for (auto& entry : net.links)
    if (entry.second->received != entry.second->told) tell(guard, *entry.second, Control::credit);
}

}  // namespace

bool poll(VciGuard& guard, bool neighbours) noexcept {
  Net& net = *guard.vci().net.load(std::memory_order_acquire);  // pairs with open_net, which needs not hold the VCI
  ++net.epoch;
  net.in_step = true;
  bool worked = net.dirty.empty() ? false : flush(guard);
  if (net.pace.due(neighbours, sys::now_ns)) {
    wire::Event events[events_per_step];
    const int n = net.context.poll(events, events_per_step);
    if (n < 0) sys::fatal("the network's completion queue failed: %s", strerror(-n));
    for (int i = 0; i < n; ++i) handle_event(guard, net, events[i]);
    if (n > 0) {
      net.pace.found();
      worked = true;
    } else {
      worked |= net.context.has_moved();
    }
  }
  if (net.withheld && !guard.vci().holding) give_withheld_credit(guard, net);
  if (net.reads_head) worked |= issue_reads(guard, net);
  net.context.flush();  // the reads of this step leave together
  net.in_step = false;
  return worked;
}

std::int64_t patience() noexcept { return timeout_seconds.value(); }

namespace {
std::uint32_t finish_began = 0;      // as `ticks`
constexpr std::uint32_t finish_patience = 20;  ///< seconds, at the least, for what has not left this process
constexpr std::uint32_t notice_after = 5;      ///< seconds without a word of a peer that MPI_Finalize waits for

/// Whether this process may leave as far as the peer is concerned: it has confirmed what it was sent, or does not want it; and it has read
/// our last word, where nobody would tell it that we have left.
bool has_parted(const Link& link) noexcept {
  if (link.gone || link.peer_closing) return true;
  const wire::Context& context = link.net->context;
  if (!context.tells_departures()) return link.said_closing && link.heard_farewell;
  return link.sent == link.acked || (link.address != wire::no_address && context.has_left(link.address));
}

/// Where the network tells who has left; elsewhere only who has said a last word is known to be about to go.
bool is_known_to_have_left(const Link& link) noexcept {
  const wire::Context& context = link.net->context;
  return link.gone || (context.tells_departures() && link.address != wire::no_address && context.has_left(link.address));
}
}  // namespace

bool has_left(Vci& vci, ProcessIndex process, unsigned lane) noexcept { return is_known_to_have_left(link_to(net_of(vci), process, lane)); }

bool is_finishing(Vci& vci, ProcessIndex process, unsigned index) noexcept {
  Net* net = vci.net.load(std::memory_order_acquire);
  const Link* link = net ? find_link(*net, process, index) : nullptr;
  return !link || link->peer_closing || is_known_to_have_left(*link);
}

void tick(VciGuard& guard, Net& net) noexcept {
  const bool idle = net.epoch == net.epoch_before;
  if (idle) {
    // Not the whole progress step: what runs at the end of one may be the program's own functions, which belong to its threads.
    for (int i = 0; i < 64 && poll(guard, false); ++i) {}
    flush(guard);
  }
  net.epoch_before = net.epoch;
  const bool parts = finishing.load(std::memory_order_relaxed);
  std::vector<Link*> silent;
  for (auto& entry : net.links) {
    Link& link = *entry.second;
    const bool waits = parts ? !has_parted(link) : link.sent != link.acked && !link.peer_closing;
    if (!waits || link.acked != link.acked_before) link.silent = 0;
    else ++link.silent;
    link.acked_before = link.acked;
    if (!link.silent) continue;
    // Less and less often: a peer that is stopped finds every question as a connection to be accepted.
    if (parts && std::has_single_bit(link.silent) && link.address != wire::no_address && net.context.has_left(link.address)) {
      if (!link.expected) lost(link, "sending", ECONNREFUSED);  // it has never said a word: it may be there, and not to be reached
      link.gone = true;
      flush_link(guard, link);
      wake_sleepers(guard.vci());
      continue;
    }
    if (timeout_seconds.value() > 0 && link.silent > timeout_seconds.value()) {
      await_the_launcher();
      sys::fatal("rank %u has not confirmed for %lld s what was sent to it (%s): its host is down, its process is stopped, or the network "
                 "between is cut (HEDDLE_NET_TIMEOUT sets the time; 0: wait for ever)%s", link.process,
                 static_cast<long long>(timeout_seconds.value()), way_to(link).c_str(), advice_for(link));
    }
    if (parts && link.silent == notice_after)
      HEDDLE_NOTICE_ONCE("MPI_Finalize waits for rank %u, which has not confirmed for %u s what was sent to it: it is stopped, or its host is busy "
                         "or cut off (HEDDLE_NET_TIMEOUT, %lld s, ends the wait and the job; 0: never)", link.process, notice_after,
                         static_cast<long long>(timeout_seconds.value()));
    if (!is_parting(link)) silent.push_back(&link);
  }
  for (Link* link : silent) {
    tell(guard, *link, Control::probe);
    flush_link(guard, *link);
  }
}

namespace {

template <typename Action>
void for_each_net(Action&& action) noexcept {
  for_each_vci([&](Vci& vci) {
    if (!vci.net.load(std::memory_order_acquire)) return;
    VciGuard guard(vci);
    action(guard, *vci.net.load(std::memory_order_acquire));
  });
}

}  // namespace

namespace {
/// Tells the peer that this process is about to leave; where it would learn of that by itself, only if something is to be confirmed.
void say_closing(VciGuard& guard, Link& link) noexcept {
  const bool tells = link.net->context.tells_departures();
  if (tells ? link.sent == link.acked && link.received == link.told : has_parted(link)) return;
  tell(guard, link, Control::closing);
  link.said_closing = true;
}
}  // namespace

void begin_finish() noexcept {
  if (!active()) return;
  finish_began = ticks.load(std::memory_order_relaxed);
  finishing.store(true, std::memory_order_relaxed);
  for_each_net([](VciGuard& guard, Net& net) {
    net.context.report_all_sends(true);
    std::vector<Link*> links;
    for (auto& entry : net.links) links.push_back(entry.second.get());
    for (Link* link : links) say_closing(guard, *link);
    flush(guard);
  });
}

bool finished() noexcept {
  if (!active()) return true;
  // Until then: when this process goes, what it has sent can be lost though it is in the peer's kernel, if the peer says something first.
  // Seconds of this process, not of the clock: after a stop of the whole job a peer that would answer at once must not count as silent.
  const std::uint32_t waited = ticks.load(std::memory_order_relaxed) - finish_began;
  bool all = true;
  for_each_net([&](VciGuard& guard, Net& net) {
    if (!net.dirty.empty() || net.under_way) all = false;
    std::vector<Link*> unsaid;
    for (const auto& entry : net.links) {
      Link& link = *entry.second;
      if (link.head || link.open || !has_parted(link)) all = false;
      // A message was exchanged since, or this is a newcomer: begin again.
      if (!net.context.tells_departures() && !link.said_closing && !has_parted(link)) unsaid.push_back(&link);
    }
    for (Link* link : unsaid) say_closing(guard, *link);
    if (!unsaid.empty()) flush(guard);
  });
  if (!all && patience() > 0 && waited > finish_patience && waited > patience()) all = true;  // what does not leave, and whom nobody waits for
  if (!all) return false;
  finishing.store(false, std::memory_order_relaxed);
  for_each_net([](VciGuard&, Net& net) { net.context.report_all_sends(false); });
  return true;
}

}  // namespace heddle::net
