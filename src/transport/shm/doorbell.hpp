// Ringing a process's doorbell. Its threads sleep on a futex word or, where the network must be able to wake them too, in a system
// call on descriptors. One of these is a datagram socket, the bell, and ringing sends it a byte. Who sleeps where:
// vci/park/sleepers.hpp, vci/park/network_sleep.hpp; docs/design/core.md, Parking.
#pragma once

#include <string>

#include "transport/shm/layout.hpp"

namespace heddle::shm {

/// After publishing something for `vci`, so that one thread comes and serves it: wakes the thread that sleeps at the network for that
/// VCI, if there is one; else the sentinel, and at most `most` of those that listen to the VCI on the futex word; if there is nobody, the
/// server. Thread-safe, like all that ring.
void ring(Doorbell& doorbell, unsigned vci, int most) noexcept;
/// After serving something of `vci`: wakes all threads that may have waited for it.
void ring_sleepers(Doorbell& doorbell, unsigned vci) noexcept;
/// Wakes every thread; any one thread but the server; the sentinel, if it sleeps at the network, or the server.
void ring_all(Doorbell& doorbell) noexcept;
void ring_any(Doorbell& doorbell) noexcept;
void ring_sentinel(Doorbell& doorbell) noexcept;
/// Ends the server's sleep, or the next one that it begins with what it knew before.
void call_server(Doorbell& doorbell) noexcept;

/// Makes the socket that wakes the thread which sleeps for a VCI, or the sentinel (`sentinel_bell`), and publishes its name in `own`.
/// Call before anybody may sleep there. -1: `problem` is for the user.
int open_bell(Doorbell& own, unsigned bell, std::string& problem);
/// Removes the rings that are waiting in a socket.
void drain_bell(int fd) noexcept;

/// Says in which network namespace this process is. Call before neighbours may attach.
void publish_name_space(Doorbell& own) noexcept;
/// Tells a neighbour that has just been attached if this process cannot reach its sockets, because it is in another network namespace.
/// A ring before the neighbour knows is only seen when its sleep times out (after a second).
void check_reach(Doorbell& neighbour, const Doorbell& own) noexcept;

}  // namespace heddle::shm
