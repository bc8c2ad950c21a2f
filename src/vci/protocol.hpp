// What the progress engine calls and the protocols implement. The VCI knows that records arrive; the protocols know what they mean.
// (Declared apart so that vci/ includes nothing else of proto/.)
#pragma once

#include <cstdint>

#include "transport/record.hpp"

namespace heddle {
class Vci;
class VciGuard;
struct Comm;
struct Request;

/// What a thread waits for, as far as it knows: for the hang report. Pointers are valid during the wait.
struct WaitSubject {
  const Request* request = nullptr;
  const Comm* comm = nullptr;  ///< without a request: a message on it, or with `rank_is_late` its rank `rank` in a collective
  int rank = 0, tag = 0;
  bool rank_is_late = false;
  const char* function = nullptr;  ///< the MPI function, where its own frame is gone from the stack (a call at its end)
};
}

namespace heddle::proto {

struct Backlog;

/// Takes records from the ring and acts on them: at most `most`, and none after the one that completes `awaited`. True if there was any.
bool take_records(VciGuard& guard, int most, const Request* awaited) noexcept;

/// Completes a request of this VCI.
void end_request(VciGuard& guard, Request& request) noexcept;

/// Pushes records that found a full ring, in order per destination. True if any went.
bool drain_backlog(VciGuard& guard) noexcept;

/// Moves a piece of the next large message. True if anything moved.
bool advance_transfers(VciGuard& guard) noexcept;

/// Takes what has arrived from the network; sends what is gathered for it. True if there was anything. \pre the VCI has a network
/// \param neighbours the node had something in this step
bool poll_network(VciGuard& guard, bool neighbours) noexcept;
bool flush_network(VciGuard& guard) noexcept;
void destroy_network(Vci& vci) noexcept;
enum class Slept : std::uint8_t { not_here, in_vain, woken };
/// For a thread that is about to sleep, in a process with a network: until the network or the doorbell has something for VCI `only`, or for
/// any if there is none given and this thread is the sentinel; not at all if the bell's count is not `ticket` any more. `not_here`: the
/// thread is to sleep on the bell, no longer than `limit_ns`, which is lowered to `nap_ns` where the network wakes nobody; 0: to look again at once.
Slept sleep_on_network(bool sentinel, Vci* only, std::uint32_t ticket, long nap_ns, long& limit_ns) noexcept;

/// Says in one line what the calling thread has been waiting for, for `seconds`. \param vci that it waits on; nullptr: all
void report_wait(Vci* vci, const WaitSubject& subject, std::int64_t seconds) noexcept;

Backlog* make_backlog() noexcept;
void destroy_backlog(Backlog* backlog) noexcept;
void free_spares(Vci& vci) noexcept;

}  // namespace heddle::proto
