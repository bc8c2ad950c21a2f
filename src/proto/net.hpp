// Messages to processes that shared memory does not reach: what the rest of the library sees of them.
//
// A process that needs the network (another node, or HEDDLE_SHM=0) has a Net for each VCI that uses it; see net_state.hpp.
// net_start: starting and stopping; net_peers: who is where; net_send, net_receive, net_transfer: messages; net_helper: its thread.
#pragma once

#include <atomic>
#include <string>

#include "core/runtime.hpp"
#include "proto/p2p.hpp"
#include "proto/records.hpp"
#include "transport/record.hpp"
#include "transport/shm/node.hpp"
#include "vci/protocol.hpp"

namespace heddle {
struct Transfer;
}
namespace heddle::sys {
struct Bootstrap;
}

namespace heddle::net {

/// Opens the network if the job needs it, and puts this process's card into the bootstrap; `meet` comes after a fence. `vcis` is how
/// many VCIs the process will have; made smaller when the network has no room for so many. False: `problem` is for the user.
bool start(const sys::Bootstrap& job, unsigned& vcis, std::string& problem);
/// Whether `start` put a card, so that a fence is needed.
bool needs_fence() noexcept;
/// After the fence and after the VCIs exist.
bool meet(const sys::Bootstrap& job, std::string& problem);
/// Asks all peers to say that what was sent to them has arrived. Then `finished` becomes true in time.
void begin_finish() noexcept;
bool finished() noexcept;
/// Before the VCIs go, and after.
void stop() noexcept;
void close() noexcept;

namespace detail {
[[gnu::visibility("hidden")]] extern bool active;
}
/// True when this process has a network open.
inline bool active() noexcept { return detail::active; }
/// True when messages to `process` go through the network.
inline bool reaches(ProcessIndex process) noexcept {
  return detail::active && process != runtime.self && !(shm::enabled() && is_local(process));
}

/// Sends a small message at once and without a request; false, where it waits for others to leave with, or is none to be copied.
bool try_send(VciGuard& guard, Address to, const RecordHead& head, const std::byte* bytes, std::size_t n) noexcept;
/// Starts a send whose fields are filled in. Completes it when its bytes are copied and on their way.
void send(VciGuard& guard, Request& send, Address to) noexcept;
/// Sends a record with a small payload, in order behind what was sent before.
void push(VciGuard& guard, ProcessIndex process, unsigned lane, const RecordHead& head, const void* payload,
          std::uint32_t bytes) noexcept;
/// Fetches a matched large message. `receive`'s status is set.
void begin_transfer(VciGuard& guard, Request& receive, const proto::Offer& offer, std::uint16_t lane) noexcept;
/// Pushes the next `data` records of a message that the receiver asked for. True if anything moved; `finished` when all are out.
bool stream_step(VciGuard& guard, Transfer& transfer, bool& finished) noexcept;
/// Frees what the network part keeps for a transfer that ends.
void release(Transfer& transfer) noexcept;

/// Whether the peer behind the VCI's link to `lane` is known to have left. \pre the VCI is held
bool has_left(Vci& vci, ProcessIndex process, unsigned lane) noexcept;
/// Whether a peer from whose VCI `index` messages came is in MPI_Finalize, or has left. \pre the VCI is held
bool is_finishing(Vci& vci, ProcessIndex process, unsigned index) noexcept;

/// Takes what has arrived; called by the progress engine, each step. True if there was anything.
/// \param neighbours this step has had something from the node: then the network is looked at now and then only (net_pace.hpp)
bool poll(VciGuard& guard, bool neighbours) noexcept;
/// Sends what was gathered. True if anything left.
bool flush(VciGuard& guard) noexcept;
void destroy(Vci& vci) noexcept;

/// See proto::NetworkPlace.
proto::NetworkPlace place(Vci& vci) noexcept;

}  // namespace heddle::net
