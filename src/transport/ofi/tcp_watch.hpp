// Detects silent peer hosts on networks that run over TCP. A peer whose cable is cut or whose host has lost power sends nothing that
// would end a connection: a receiver would wait for ever, and a sender for the kernel's quarter of an hour.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::ofi {

/// Registers an endpoint of this process (libfabric's name of it). Ignored unless it is an IP address. Thread-safe.
void watch_own(std::string_view name) noexcept;

/// Registers an endpoint that this process exchanges messages with. Thread-safe.
void watch_peer(const void* name, std::uint32_t rank) noexcept;

/// Whether the host of an endpoint answers that nobody listens there. False if there is no answer within a tenth of a second. A stopped
/// process still listens: its kernel answers. Any thread.
bool refuses_connections(const void* name, std::size_t bytes) noexcept;

/// Checks the TCP connections between registered endpoints and turns on their keepalives. To be called every `seconds / 4`. True
/// when a peer's kernel has not answered for `seconds`; `host` is its address, with the lowest rank known there. A busy or
/// stopped process is not silent: its kernel answers. One thread at a time.
bool find_silent_peer(int seconds, std::uint32_t& rank, std::string& host) noexcept;

}  // namespace heddle::ofi
