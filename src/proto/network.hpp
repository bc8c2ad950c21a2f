// Point-to-point messages to processes that shared memory does not reach: what they make of the network (transport/net).
#pragma once

#include <cstddef>
#include <cstdint>

#include "proto/records.hpp"
#include "transport/net/network.hpp"
#include "vci/network.hpp"

namespace heddle {
struct Transfer;
}

namespace heddle::proto {
struct Sending;
}

namespace heddle::proto::network {

/// Sends a small message at once and without a request. False where it would wait for others to leave with, or is none to be copied.
bool try_send(VciGuard& guard, Address to, const RecordHead& head, const std::byte* bytes, std::size_t n) noexcept;
/// Starts a send whose fields are filled in. Completes it when its bytes are copied and on their way.
void send(VciGuard& guard, Request& send, Address to) noexcept;
/// Sends a record with a small payload, in order behind what was sent before.
void push(VciGuard& guard, ProcessIndex process, Lane lane, const RecordHead& head, const void* payload, std::uint32_t bytes) noexcept;

/// Announces a message that waits for its receive.
void send_request(VciGuard& guard, net::Connection& connection, Request& send) noexcept;
/// Fetches a matched large message. `receive`'s status is set.
void begin_transfer(VciGuard& guard, Request& receive, const RendezvousRequest& request, Lane lane) noexcept;
/// Pushes the next `data` records of a message that the receiver asked for, and ends it with the last. True if anything moved.
bool stream_step(VciGuard& guard, proto::Sending& sending) noexcept;
/// Frees what a transfer that ends keeps for the network.
void release(Transfer& transfer) noexcept;

/// Whether the peer that `lane` leads to is known to have left. \pre the VCI is held
bool has_left(Vci& vci, ProcessIndex process, Lane lane) noexcept;
/// Whether a peer to which replies take `lane` is in MPI_Finalize, or has left. \pre the VCI is held
bool is_finishing(Vci& vci, ProcessIndex process, Lane lane) noexcept;

/// Bytes that an eager message has beside its own, at most.
inline constexpr std::size_t eager_overhead = sizeof(AckTo);

}  // namespace heddle::proto::network
