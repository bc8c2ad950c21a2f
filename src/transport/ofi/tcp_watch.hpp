// Whether the hosts of our peers still answer, for networks that run over TCP. A peer whose cable is cut, or whose host
// has lost its power, sends nothing that would end a connection: a receiver would wait for ever, and a sender for the
// kernel's quarter of an hour.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::ofi {

/// An endpoint of this process (libfabric's name of it). What is no IP address is overlooked. Thread-safe.
void watch_own(std::string_view name) noexcept;

/// An endpoint that this process exchanges messages with. Thread-safe.
void watch_peer(const void* name, std::uint32_t rank) noexcept;

/// Whether the host of an endpoint says that nobody listens there. False when there is no answer in a tenth of a second. A stopped
/// process listens: its kernel answers. Any thread.
bool refuses_connections(const void* name, std::size_t bytes) noexcept;

/// Makes the kernel ask, every `seconds / 4` without a word of the other end, whether that is there. Any thread.
void ask_when_silent(int fd, int seconds) noexcept;
/// Whether nothing has come for so long although something was asked more than once. Any thread.
bool is_silent(int fd, int seconds) noexcept;

/// Looks at the TCP connections between watched endpoints, and makes the kernel ask silent peers whether they are
/// there. To be called every `seconds / 4`. True when a peer's kernel has not answered for `seconds`, with the lowest
/// rank known at that address, which is `host`. A busy or stopped process is no silent one: kernels answer for it. One
/// thread at a time.
bool find_silent_peer(int seconds, std::uint32_t& rank, std::string& host) noexcept;

}  // namespace heddle::ofi
