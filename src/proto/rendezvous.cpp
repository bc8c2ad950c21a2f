// Rendezvous, what both ends do: the state of a message, and its turn in the progress of its VCI.
#include "proto/rendezvous.hpp"

#include <new>

#include "proto/network.hpp"
#include "proto/rendezvous_steps.hpp"
#include "sys/clock.hpp"
#include "sys/log.hpp"

namespace heddle::proto {

bool Absence::lasts(std::int64_t nanoseconds) noexcept {
  const std::int64_t now = sys::now_ns();
  if (!since_) since_ = now;
  return now - since_ >= nanoseconds;
}

namespace {
template <typename State>
State& new_state(Request& request) noexcept {
  auto* state = new (std::nothrow) State(request);
  if (!state) sys::fatal("no memory for a large message");
  request.under_way = state;
  return *state;
}
}  // namespace

Sending& new_sending(Request& send) noexcept { return new_state<Sending>(send); }
Receiving& new_receiving(Request& receive) noexcept { return new_state<Receiving>(receive); }

void start_moving(Vci& vci, Transfer& t) noexcept {
  Transfer*& transfers = state_of(vci).transfers;
  if (!transfers) {
    t.link = {&t, &t};
    transfers = &t;
  } else {
    Transfer* first = transfers;
    t.link = {first->link.prev, first};
    first->link.prev->link.next = &t;
    first->link.prev = &t;
  }
  vci.moving.fetch_add(1, std::memory_order_relaxed);
  leave_work(vci);
}

void stop_moving(Vci& vci, Transfer& t) noexcept {
  Transfer*& transfers = state_of(vci).transfers;
  if (t.link.next == &t) transfers = nullptr;
  else {
    t.link.prev->link.next = t.link.next;
    t.link.next->link.prev = t.link.prev;
    if (transfers == &t) transfers = t.link.next;
  }
  t.link = {};
  vci.moving.fetch_sub(1, std::memory_order_relaxed);
}

void finish_transfer(VciGuard& guard, Transfer& t) noexcept {
  Request& request = *t.request;
  if (t.link.next) stop_moving(guard.vci(), t);
  if (t.move) network::release(t);
  request.under_way = nullptr;
  if (t.sends) {
    auto& sending = static_cast<Sending&>(t);
    if (sending.own_claims >= 0) state_of(guard.vci()).free_copies |= std::uint64_t{1} << sending.own_claims;
    delete &sending;
  } else {
    delete &static_cast<Receiving&>(t);
  }
  complete(request, guard);
}

bool advance_transfers(VciGuard& guard) noexcept {
  State& state = state_of(guard.vci());
  Transfer& t = *state.transfers;
  state.transfers = t.link.next;  // so that each gets its turn
  if (!t.sends) {
    auto& receiving = static_cast<Receiving&>(t);
    return t.strategy == Strategy::both_copy ? claim_step(guard, receiving) : copy_step(guard, receiving);
  }
  auto& sending = static_cast<Sending&>(t);
  if (t.strategy == Strategy::both_copy) return piece_step(guard, sending);
  return t.move ? network::stream_step(guard, sending) : stream_step(guard, sending);
}

}  // namespace heddle::proto
