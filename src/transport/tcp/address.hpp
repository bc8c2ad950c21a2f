// Where a context can be reached: its host's addresses, how peers learn them, and in which order they try them.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::tcp {

/// An IP address and a port. IPv4 is stored as a mapped IPv6 address (::ffff:10.9.0.1), so that both compare as bytes.
struct Endpoint {
  std::array<unsigned char, 16> bytes{};
  std::uint16_t port = 0;  ///< in the host's byte order

  /// From the kernel's form; all zeros for another address family.
  static Endpoint of(const sockaddr_storage& address) noexcept;
  [[nodiscard]] bool is_v4() const noexcept;
  /// Into the kernel's form. Returns its length.
  socklen_t fill(sockaddr_storage& address) const noexcept;
  [[nodiscard]] bool same_address(const Endpoint& other) const noexcept { return bytes == other.bytes; }
  /// The address as text, without the port.
  [[nodiscard]] std::string text() const;
};

/// An address of this host.
struct HostAddress {
  Endpoint address;           ///< its port is 0
  unsigned prefix = 0;        ///< bits of the 128 that its network shares
  std::string interface;
  std::uint32_t megabits = 0; ///< of the interface, a second; 0: not known
  bool linked = true;         ///< the interface has a link
  bool offered = true;        ///< peers are told of it; others serve to recognise this host
};

/// Index of an address in a host's list, ignoring the port; -1: not there.
int index_of(const std::vector<HostAddress>& host, const Endpoint& address) noexcept;

/// One address as a peer publishes it.
struct OfferedAddress {
  Endpoint address;           ///< with the port
  std::uint32_t megabits = 0;
  bool linked = true;
};

/// A context's published name: its identity and addresses. `Context::name` is its encoded form.
struct Name {
  std::uint64_t identity = 0;  ///< random: an address may exist on many hosts, as those of bridges for containers do
  std::vector<OfferedAddress> addresses;
};

inline constexpr std::size_t largest_name = 800;  ///< bytes: two dozen addresses, which fit the smallest frame (HEDDLE_NET_FRAME)

/// Encodes a name, with as many addresses as fit.
std::string encode(const Name& name);
/// Decodes a name received from the network. False if it is malformed.
bool decode(std::string_view bytes, Name& name);
/// How many of `host`'s addresses `encode` includes.
std::size_t most_offered(const std::vector<HostAddress>& host) noexcept;

/// What is known about a path before it is tried, best first.
enum class Standing : std::uint8_t {
  good,
  elsewhere,  ///< leaves over an address that is not offered: not on HEDDLE_NET
  failed,     ///< it has led nowhere before (Experience)
  no_link,    ///< at one of the ends
  own,        ///< the address is one of this host, so the peer is here, or the address is that of a bridge on both hosts
  no_route,
};

/// One possible path to a peer.
struct Path {
  Endpoint to;
  int own = -1;                ///< index of the HostAddress that it leaves from; -1: none of these
  std::uint32_t megabits = 0;  ///< of the slower end; 0: not known
  bool direct = false;         ///< the two share a network
  Standing standing = Standing::good;
};

/// Finds the local address from which a packet to `to` would leave. False: no route.
using Route = bool (*)(const Endpoint& to, Endpoint& from) noexcept;
/// Asks the kernel.
bool route_of_kernel(const Endpoint& to, Endpoint& from) noexcept;

/// The paths to a peer in the order to try them: by standing, then speed, without a router, IPv4, the peer's own order.
/// \param route may be null if there is only one address
std::vector<Path> paths_to(const Name& peer, const std::vector<HostAddress>& host, Route route);

/// What this process has learnt from its connect attempts, so that they do not each wait for the same dead network. A remote address that failed
/// where another one worked is tried last from then on; so is every path from a local address that has never worked and failed for two or more
/// hosts. An address that worked once counts as alive. Thread-safe.
class Experience {
 public:
  /// Moves paths known to fail behind the others.
  void sort(std::vector<Path>& paths);
  /// Records that `found` worked and the `failed` paths before it did not.
  void learn(const std::vector<Path>& failed, const Path& found);

 private:
  struct Own {  ///< what is known of one address of this host
    bool alive = false;
    std::vector<Endpoint> failed;  ///< remote addresses, without the port; at most one for each host reached another way
  };
  Own& of(int own);
  std::mutex mutex_;
  std::vector<Own> own_;  ///< by index of the HostAddress
};

/// "eth1 10.44.0.1 to 10.44.0.2".
std::string text_of(const Endpoint& to, int own, const std::vector<HostAddress>& host);
/// "10000 Mb/s, the same network": why a path has its place in the order.
std::string reason_of(const Path& path);

}  // namespace heddle::tcp
