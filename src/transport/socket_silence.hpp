// Whether the other end of a TCP connection still answers, as this host's kernel knows it.
#pragma once

namespace heddle {

/// Turns on keepalives: the kernel probes the peer after every `seconds / 4` of silence. Any thread.
void ask_when_silent(int fd, int seconds) noexcept;
/// Whether the peer has been silent for `seconds` and missed more than one keepalive. Any thread.
bool is_silent(int fd, int seconds) noexcept;

}  // namespace heddle
