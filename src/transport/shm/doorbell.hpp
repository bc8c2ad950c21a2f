// Ringing a process's doorbell. Its threads sleep on a futex word, or, where the network is to wake them as well, in a
// system call on descriptors. Among these is a datagram socket, to which whoever rings sends a byte.
// docs/design/core.md, Parking
#pragma once

#include <string>

#include "transport/shm/layout.hpp"

namespace heddle::shm {

/// After something for `vci` was published, for somebody to serve it: wakes the thread that sleeps for that VCI at the
/// network, if there is one; else the sentinel, and of those who listen to the VCI on the futex word at most `most`.
void ring(Doorbell& doorbell, unsigned vci, int most) noexcept;
/// After something of `vci` was served: wakes all who may have waited for it.
void ring_sleepers(Doorbell& doorbell, unsigned vci) noexcept;
/// Wakes every thread; any one; the sentinel, if it sleeps at the network.
void ring_all(Doorbell& doorbell) noexcept;
void ring_any(Doorbell& doorbell) noexcept;
void ring_sentinel(Doorbell& doorbell) noexcept;

/// The socket of this process's thread that sleeps for a VCI, or of its sentinel (`sentinel_bell`). Its name is published in
/// `own`. Called before there is anybody to ring. -1: `problem` is for the user.
int open_bell(Doorbell& own, unsigned bell, std::string& problem);
/// Takes the rings that lie in a socket.
void drain_bell(int fd) noexcept;

/// Before neighbours may attach: says in which network namespace this process is.
void publish_name_space(Doorbell& own) noexcept;
/// When a neighbour is attached: tells it if this process cannot wake it at the network, being in another network
/// namespace. A ring that comes before it knows is seen when its sleep ends by itself (a second).
void check_reach(Doorbell& neighbour, const Doorbell& own) noexcept;

}  // namespace heddle::shm
