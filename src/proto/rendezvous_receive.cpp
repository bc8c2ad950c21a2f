// Rendezvous at the receiver: choosing how the bytes of a large message move, and copying them where that is the receiver's part.
#include <time.h>

#include <cerrno>
#include <cstring>

#include "proto/network.hpp"
#include "proto/rendezvous_steps.hpp"
#include "sys/log.hpp"

namespace heddle::proto {
namespace {

constexpr std::int64_t patience = 4'000;  ///< nanoseconds without a piece of the sender before the receiver copies one by itself

Receiving& receiving_of(RequestToken token) noexcept { return *static_cast<Receiving*>(transfer_of(*reinterpret_cast<Request*>(token))); }

void say_finished(VciGuard& guard, const Receiving& t) noexcept {
  push_or_queue(guard, *t.peer, t.lane, {0, 0, 0, PointToPoint::finished}, &t.sender, sizeof t.sender);
}

/// Counts bytes that are in place; ends the message with the last.
void count_arrived(VciGuard& guard, Receiving& t, std::uint64_t n) noexcept {
  t.arrived += n;
  if (t.arrived < t.bytes) return;
  if (t.copied_here && !t.said_finished) say_finished(guard, t);
  finish_transfer(guard, t);
}

/// Copies `n` bytes at packed offset `at` from the sender's memory.
void fetch(Receiving& t, std::uint64_t at, std::uint64_t n) noexcept {
  const Buffer buffer = t.request->buffer;
  if (t.mapped) return buffer.unpack(at, t.mapped + at, n);
  if (buffer.contiguous()) {
    if (!shm::cma_read(t.peer->pid, buffer.data() + at, t.source + at, n)) copying_failed(t, n);
    return;
  }
  std::byte part[16 << 10];
  for (std::uint64_t done = 0; done < n;) {
    const std::uint64_t some = n - done < sizeof part ? n - done : sizeof part;
    if (!shm::cma_read(t.peer->pid, part, t.source + at + done, some)) copying_failed(t, some);
    buffer.unpack(at + done, part, some);
    done += some;
  }
}

/// Which strategy there is between this process and a neighbour.
Strategy choose(const RendezvousRequest& request, const Receiving& t) noexcept {
  if (t.mapped) return Strategy::mapped;
  if (!request.address || !t.peer->cma_works()) return Strategy::stream;
  return request.claims && t.request->buffer.contiguous() ? Strategy::both_copy : Strategy::single_copy;
}

}  // namespace

void copying_failed(const Transfer& t, std::uint64_t bytes) noexcept {
  const int cause = errno;
  if (cause == ESRCH) {
    // The launcher knows of what that process died, says so and ends this one with the job; it should not take our death for the first.
    const timespec pause{0, 400'000'000};
    nanosleep(&pause, nullptr);
  }
  sys::fatal("copying %llu bytes %s rank %u failed: %s", static_cast<unsigned long long>(bytes), t.sends ? "to" : "from", t.peer->process,
             cause == ESRCH ? "its process is gone" : "the buffer is not accessible memory");
}

void begin_transfer(VciGuard& guard, Request& receive, const RendezvousRequest& request, Lane lane, int source, int tag) noexcept {
  set_received(receive, request.bytes, source, tag);
  const ProcessIndex from = index_of(request.process);
  if (processes.route(from) == Route::network) return network::begin_transfer(guard, receive, request, lane);
  Receiving& t = new_receiving(receive);
  t.peer = &peer_of(from);
  t.lane = lane;
  t.sender = request.sender;
  t.source = request.address;
  if (!t.bytes) {
    say_finished(guard, t);
    return finish_transfer(guard, t);
  }
  if (from == runtime.self) t.mapped = reinterpret_cast<const std::byte*>(request.address);  // another endpoint
  else if (request.heap_offset) t.mapped = t.peer->heap_address(request.heap_offset);
  t.strategy = choose(request, t);
  const auto receiver = reinterpret_cast<RequestToken>(&receive);
  if (t.strategy == Strategy::stream) {
    const DataRequest wanted{t.sender, receiver, t.bytes, lane_of(receive), {}};
    return push_or_queue(guard, *t.peer, lane, {0, 0, 0, PointToPoint::data_request}, &wanted, sizeof wanted);
  }
  if (t.strategy == Strategy::both_copy) {
    t.claims = {shm::shared_copies(t.peer->region.base, request.claims_vci) + (request.claims - 1), request.claims_stamp, piece_bytes};
    const auto address = reinterpret_cast<std::uint64_t>(receive.buffer.data());
    const ClearToSend clear{t.sender, receiver, address, t.bytes, piece_bytes, lane_of(receive), 0};
    push_or_queue(guard, *t.peer, lane, {0, 0, 0, PointToPoint::clear_to_send}, &clear, sizeof clear);
  }
  start_moving(guard.vci(), t);
}

bool copy_step(VciGuard& guard, Receiving& t) noexcept {
  const std::uint64_t n = t.bytes - t.arrived < step_bytes ? t.bytes - t.arrived : step_bytes;
  fetch(t, t.arrived, n);
  t.copied_here += n;
  count_arrived(guard, t, n);
  return true;
}

bool claim_step(VciGuard& guard, Receiving& t) noexcept {
  // Relaxed: see claim in rendezvous_send.cpp.
  std::uint64_t claimed = t.claims.copy->claimed.load(std::memory_order_relaxed);
  const std::uint64_t at = claimed & shm::SharedCopy::bytes_mask;
  if (claimed >> shm::SharedCopy::stamp_at != t.claims.stamp || at >= t.bytes) {
    // The sender has the rest. What this end copied is in place, and the sender waits to hear that.
    stop_moving(guard.vci(), t);
    if (t.copied_here && !t.said_finished) say_finished(guard, t);
    t.said_finished = true;
    return false;
  }
  if (!t.sender_absence.lasts(patience)) return false;
  if (!t.claims.copy->claimed.compare_exchange_strong(claimed, claimed + t.claims.piece, std::memory_order_relaxed)) return true;
  const std::uint64_t n = t.bytes - at < t.claims.piece ? t.bytes - at : t.claims.piece;
  fetch(t, at, n);
  t.copied_here += n;
  count_arrived(guard, t, n);
  return true;
}

void handle_data(VciGuard& guard, const Record& record) noexcept {
  StreamData head;
  std::memcpy(&head, record.payload, sizeof head);
  Receiving& t = receiving_of(head.receiver);
  const std::uint64_t n = record.bytes - sizeof head;
  t.request->buffer.unpack(t.arrived, record.payload + sizeof head, n);
  count_arrived(guard, t, n);
}

void handle_piece(VciGuard& guard, const Record& record) noexcept {
  PieceData head;
  std::memcpy(&head, record.payload, sizeof head);
  Receiving& t = receiving_of(head.receiver);
  const std::uint64_t n = record.bytes - sizeof head;
  std::memcpy(t.request->buffer.data() + head.at, record.payload + sizeof head, n);
  t.sender_absence.end();
  count_arrived(guard, t, n);
}

void handle_placed(VciGuard& guard, const Placed& placed) noexcept { count_arrived(guard, receiving_of(placed.receiver), placed.bytes); }

}  // namespace heddle::proto
