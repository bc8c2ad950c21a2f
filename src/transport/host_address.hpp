// Addresses of this host, and which of them HEDDLE_NET lets a job use.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

namespace heddle {

/// An IP address as a person reads it; empty for others.
std::string text_of(const sockaddr& address);
/// The bytes of an address as a person reads it; empty when it is none.
std::string address_bytes(const std::string& text);
bool is_loopback(const std::string& bytes);
/// Bits that the addresses of a network share, from its mask.
unsigned prefix_of(const sockaddr& mask);
/// Megabits a second of an interface; 0 when it does not say.
std::uint32_t link_speed(const char* interface) noexcept;

/// What HEDDLE_NET asks for.
struct Wanted {
  const char* text = "";  ///< as the user wrote it
  bool any = true;
  std::string interface;  ///< by name
  std::string bytes;      ///< or by range: the first `bits` bits of these
  unsigned bits = 0;
};

/// Nothing, and `problem`, when what the user wrote cannot be understood.
std::optional<Wanted> wanted_network(std::string& problem);
/// Why a job must not use this address; null when it may. `bytes` is empty for networks with other addresses.
const char* refusal(const Wanted& wanted, bool one_host, const std::string& interface, const std::string& bytes);
/// Whether an interface bears the name of those that lead to no other host: bridges to containers and virtual machines of this one.
bool is_private_bridge(const std::string& interface);

}  // namespace heddle
