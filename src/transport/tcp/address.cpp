#include "transport/tcp/address.hpp"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <tuple>

namespace heddle::tcp {
namespace {

constexpr std::size_t v4_at = 12;  ///< where the bytes of an IPv4 address stand

struct NameHead {
  std::uint64_t identity;
  std::uint16_t port;
  std::uint16_t count;  ///< of entries, which follow
  std::uint32_t reserved;
};
static_assert(sizeof(NameHead) == 16);

/// Four or sixteen bytes of address follow.
struct EntryHead {
  std::uint8_t bytes;
  std::uint8_t linked;
  std::uint16_t reserved;
  std::uint32_t megabits;
};
static_assert(sizeof(EntryHead) == 8);

std::size_t address_bytes(const Endpoint& address) noexcept { return address.is_v4() ? 4 : 16; }

bool share_a_network(const Endpoint& a, const Endpoint& b, unsigned prefix) noexcept {
  for (unsigned bit = 0; bit < prefix && bit < 128; ++bit)
    if (((a.bytes[bit / 8] ^ b.bytes[bit / 8]) >> (7 - bit % 8)) & 1) return false;
  return true;
}

void best_first(std::vector<Path>& paths) {
  std::stable_sort(paths.begin(), paths.end(), [](const Path& a, const Path& b) {
    const auto key = [](const Path& path) { return std::tuple(path.standing, ~path.megabits, !path.direct, !path.to.is_v4()); };
    return key(a) < key(b);
  });
}

}  // namespace

Endpoint Endpoint::of(const sockaddr_storage& address) noexcept {
  Endpoint endpoint;
  if (address.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(address);
    endpoint.bytes[10] = endpoint.bytes[11] = 0xff;
    std::memcpy(&endpoint.bytes[v4_at], &in.sin_addr, 4);
    endpoint.port = ntohs(in.sin_port);
  } else if (address.ss_family == AF_INET6) {
    const auto& in = reinterpret_cast<const sockaddr_in6&>(address);
    std::memcpy(endpoint.bytes.data(), &in.sin6_addr, 16);
    endpoint.port = ntohs(in.sin6_port);
  }
  return endpoint;
}

bool Endpoint::is_v4() const noexcept {
  static constexpr unsigned char mapped[v4_at] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(bytes.data(), mapped, sizeof mapped) == 0;
}

socklen_t Endpoint::fill(sockaddr_storage& address) const noexcept {
  address = {};
  if (is_v4()) {
    auto& in = reinterpret_cast<sockaddr_in&>(address);
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    std::memcpy(&in.sin_addr, &bytes[v4_at], 4);
    return sizeof in;
  }
  auto& in = reinterpret_cast<sockaddr_in6&>(address);
  in.sin6_family = AF_INET6;
  in.sin6_port = htons(port);
  std::memcpy(&in.sin6_addr, bytes.data(), 16);
  return sizeof in;
}

std::string Endpoint::text() const {
  char text[INET6_ADDRSTRLEN] = "?";
  inet_ntop(is_v4() ? AF_INET : AF_INET6, bytes.data() + (is_v4() ? v4_at : 0), text, sizeof text);
  return text;
}

std::string encode(const Name& name) {
  NameHead head{name.identity, name.addresses.empty() ? std::uint16_t{0} : name.addresses.front().address.port, 0, 0};
  std::string entries;
  for (const OfferedAddress& one : name.addresses) {
    const EntryHead entry{static_cast<std::uint8_t>(address_bytes(one.address)), one.linked, 0, one.megabits};
    if (sizeof head + entries.size() + sizeof entry + entry.bytes > largest_name) break;
    entries.append(reinterpret_cast<const char*>(&entry), sizeof entry);
    entries.append(reinterpret_cast<const char*>(one.address.bytes.data()) + 16 - entry.bytes, entry.bytes);
    ++head.count;
  }
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + entries;
}

bool decode(std::string_view bytes, Name& name) {
  NameHead head;
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes.remove_prefix(sizeof head);
  name.identity = head.identity;
  name.addresses.clear();
  for (unsigned i = 0; i < head.count; ++i) {
    EntryHead entry;
    if (bytes.size() < sizeof entry) return false;
    std::memcpy(&entry, bytes.data(), sizeof entry);
    bytes.remove_prefix(sizeof entry);
    if ((entry.bytes != 4 && entry.bytes != 16) || bytes.size() < entry.bytes) return false;
    OfferedAddress one;
    if (entry.bytes == 4) one.address.bytes[10] = one.address.bytes[11] = 0xff;
    std::memcpy(one.address.bytes.data() + 16 - entry.bytes, bytes.data(), entry.bytes);
    bytes.remove_prefix(entry.bytes);
    one.address.port = head.port;
    one.megabits = entry.megabits;
    one.linked = entry.linked != 0;
    name.addresses.push_back(one);
  }
  return true;
}

std::size_t most_offered(const std::vector<HostAddress>& host) noexcept {
  std::size_t bytes = sizeof(NameHead), count = 0;
  for (const HostAddress& one : host) {
    if (!one.offered) continue;
    bytes += sizeof(EntryHead) + address_bytes(one.address);
    if (bytes > largest_name) break;
    ++count;
  }
  return count;
}

bool route_of_kernel(const Endpoint& to, Endpoint& from) noexcept {
  sockaddr_storage address{};
  const socklen_t bytes = to.fill(address);
  const int fd = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  socklen_t own = sizeof address;  // connecting a datagram socket sends nothing: the kernel only looks up the route
  const bool found = connect(fd, reinterpret_cast<const sockaddr*>(&address), bytes) == 0 && getsockname(fd, reinterpret_cast<sockaddr*>(&address), &own) == 0;
  close(fd);
  if (found) from = Endpoint::of(address);
  return found;
}

int index_of(const std::vector<HostAddress>& host, const Endpoint& address) noexcept {
  for (std::size_t i = 0; i < host.size(); ++i)
    if (host[i].address.same_address(address)) return static_cast<int>(i);
  return -1;
}

std::vector<Path> paths_to(const Name& peer, const std::vector<HostAddress>& host, Route route) {
  std::vector<Path> paths;
  for (const OfferedAddress& offered : peer.addresses) {
    Path path;
    path.to = offered.address;
    path.own = index_of(host, offered.address);
    Endpoint from;
    if (path.own >= 0) {
      path.standing = Standing::own;
    } else if (route && !route(offered.address, from)) {
      path.standing = Standing::no_route;
    } else if (route) {
      path.own = index_of(host, from);
      const HostAddress* const leaves = path.own < 0 ? nullptr : &host[static_cast<std::size_t>(path.own)];
      if (!offered.linked || (leaves && !leaves->linked)) path.standing = Standing::no_link;
      else if (!leaves || !leaves->offered) path.standing = Standing::elsewhere;
      if (leaves) {
        path.megabits = std::min(leaves->megabits, offered.megabits);
        path.direct = share_a_network(leaves->address, offered.address, leaves->prefix);
      }
    }
    paths.push_back(path);
  }
  best_first(paths);
  return paths;
}

Experience::Own& Experience::of(int own) {
  const auto index = static_cast<std::size_t>(own);
  if (own_.size() <= index) own_.resize(index + 1);
  return own_[index];
}

void Experience::sort(std::vector<Path>& paths) {
  constexpr std::size_t hosts_that_tell = 2;
  const std::lock_guard hold(mutex_);
  for (Path& path : paths) {
    if (path.own < 0 || path.standing > Standing::failed) continue;
    const Own& own = of(path.own);
    const bool seen = std::any_of(own.failed.begin(), own.failed.end(), [&](const Endpoint& one) { return one.same_address(path.to); });
    if (seen || (!own.alive && own.failed.size() >= hosts_that_tell)) path.standing = Standing::failed;
  }
  best_first(paths);
}

void Experience::learn(const std::vector<Path>& failed, const Path& found) {
  const std::lock_guard hold(mutex_);
  if (found.own >= 0) {
    Own& own = of(found.own);
    own.alive = true;
    std::erase_if(own.failed, [&](const Endpoint& one) { return one.same_address(found.to); });
  }
  for (const Path& path : failed) {
    if (path.own < 0 || path.standing == Standing::own) continue;
    Own& own = of(path.own);
    if (std::any_of(own.failed.begin(), own.failed.end(), [&](const Endpoint& one) { return one.same_address(path.to); })) continue;
    own.failed.push_back(path.to);
  }
}

std::string text_of(const Endpoint& to, int own, const std::vector<HostAddress>& host) {
  if (own < 0 || static_cast<std::size_t>(own) >= host.size()) return "to " + to.text();
  const HostAddress& from = host[static_cast<std::size_t>(own)];
  return from.interface + " " + from.address.text() + " to " + to.text();
}

std::string reason_of(const Path& path) {
  switch (path.standing) {
    case Standing::own: return "an address of this host too";
    case Standing::no_route: return "no route";
    case Standing::no_link: return "no link";
    case Standing::elsewhere: return "leaves over an address that this job does not use";
    case Standing::failed: return "has led nowhere before";
    case Standing::good: break;
  }
  return (path.megabits ? std::to_string(path.megabits) + " Mb/s" : std::string("speed not known")) + (path.direct ? ", the same network" : ", through a router");
}

}  // namespace heddle::tcp
