// Where a context can be reached: the addresses of its host, how a peer learns of them, and in which order it tries them.
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

/// An IP address and a port. IPv4 as the IPv6 address that stands for it (::ffff:10.9.0.1), so that both compare as bytes.
struct Endpoint {
  std::array<unsigned char, 16> bytes{};
  std::uint16_t port = 0;  ///< in the host's byte order

  /// Of what the kernel gives; all zeros for another family.
  static Endpoint of(const sockaddr_storage& address) noexcept;
  [[nodiscard]] bool is_v4() const noexcept;
  /// As the kernel wants it. The number of its bytes.
  socklen_t fill(sockaddr_storage& address) const noexcept;
  [[nodiscard]] bool same_address(const Endpoint& other) const noexcept { return bytes == other.bytes; }
  /// The address as a person reads it, without the port.
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

/// Which of a host's addresses this is, whatever the port; -1: none.
int index_of(const std::vector<HostAddress>& host, const Endpoint& address) noexcept;

/// What a peer tells of one address.
struct OfferedAddress {
  Endpoint address;           ///< with the port
  std::uint32_t megabits = 0;
  bool linked = true;
};

/// A context as its peers know it: who it is, and where. What `Context::name` holds, as bytes.
struct Name {
  std::uint64_t identity = 0;  ///< random: an address may exist on many hosts, as those of bridges for containers do
  std::vector<OfferedAddress> addresses;
};

inline constexpr std::size_t largest_name = 800;  ///< bytes: two dozen addresses, which fit the smallest frame (HEDDLE_NET_FRAME)

/// The bytes of a name: all addresses, or the first ones that fit.
std::string encode(const Name& name);
/// False when these bytes are no name: they come from the network.
bool decode(std::string_view bytes, Name& name);
/// How many of `host`'s addresses `encode` takes.
std::size_t most_offered(const std::vector<HostAddress>& host) noexcept;

/// What is known of a way to a peer before it is tried, best first.
enum class Standing : std::uint8_t {
  good,
  elsewhere,  ///< leaves over an address that is not offered: not on HEDDLE_NET
  failed,     ///< it has led nowhere before (Experience)
  no_link,    ///< at one of the ends
  own,        ///< the address is one of this host, so the peer is here, or the address is that of a bridge on both hosts
  no_route,
};

/// A way to a peer.
struct Path {
  Endpoint to;
  int own = -1;                ///< index of the HostAddress that it leaves from; -1: none of these
  std::uint32_t megabits = 0;  ///< of the slower end; 0: not known
  bool direct = false;         ///< the two share a network
  Standing standing = Standing::good;
};

/// The address from which a packet to `to` would leave. False: there is no route.
using Route = bool (*)(const Endpoint& to, Endpoint& from) noexcept;
/// The kernel's answer.
bool route_of_kernel(const Endpoint& to, Endpoint& from) noexcept;

/// The ways to a peer in the order in which they are tried: by standing, then the fastest, those without a router, IPv4, as the peer names them.
/// \param route may be null where there is no choice
std::vector<Path> paths_to(const Name& peer, const std::vector<HostAddress>& host, Route route);

/// What the searches of this process have shown, so that not each of them waits for the same dead network again: an address of a peer's host
/// that was passed over in favour of another one comes last from then on; and so do all that are reached from an address of this host which has
/// led nowhere, to two hosts at least. One that was reached once counts as alive. Thread-safe.
class Experience {
 public:
  /// Puts the ways that have failed behind the others.
  void sort(std::vector<Path>& paths);
  /// A search has ended with `found`, and the ones before it have led nowhere.
  void learn(const std::vector<Path>& failed, const Path& found);

 private:
  struct Own {  ///< of an address of this host
    bool alive = false;
    std::vector<Endpoint> failed;  ///< addresses of others, without the port. No more of them than hosts that are reached otherwise
  };
  Own& of(int own);
  std::mutex mutex_;
  std::vector<Own> own_;  ///< by index of the HostAddress
};

/// "eth1 10.44.0.1 to 10.44.0.2".
std::string text_of(const Endpoint& to, int own, const std::vector<HostAddress>& host);
/// "10000 Mb/s, the same network": why a way stands where it does.
std::string reason_of(const Path& path);

}  // namespace heddle::tcp
