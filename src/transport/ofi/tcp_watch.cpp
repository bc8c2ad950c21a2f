#include "transport/ofi/tcp_watch.hpp"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "transport/socket_silence.hpp"

namespace heddle::ofi {
namespace {

/// An address and a port; IPv4 as a mapped IPv6 address.
struct Place {
  std::array<unsigned char, 16> address{};
  std::uint16_t port = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

std::mutex places_mutex;
// Guarded by places_mutex; never destroyed, because the helper thread may outlive static destructors.
std::set<Place>& own = *new std::set<Place>;
std::map<Place, std::uint32_t>& peers = *new std::map<Place, std::uint32_t>;

bool place_of(const void* name, std::size_t bytes, Place& place) noexcept {
  sockaddr_storage any{};
  std::memcpy(&any, name, std::min(bytes, sizeof any));
  if (any.ss_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, &any, sizeof in);
    place.address.fill(0);
    place.address[10] = place.address[11] = 0xff;
    std::memcpy(&place.address[12], &in.sin_addr, 4);
    place.port = in.sin_port;
    return true;
  }
  if (any.ss_family != AF_INET6) return false;
  sockaddr_in6 in;
  std::memcpy(&in, &any, sizeof in);
  std::memcpy(place.address.data(), &in.sin6_addr, 16);
  place.port = in.sin6_port;
  return true;
}

std::string text_of(const Place& place) {
  char text[INET6_ADDRSTRLEN] = "?";
  const bool v4 = place.address[10] == 0xff && place.address[11] == 0xff;
  inet_ntop(v4 ? AF_INET : AF_INET6, place.address.data() + (v4 ? 12 : 0), text, sizeof text);
  return text;
}

/// The lowest rank at an address; nothing when none is known there.
bool rank_at(const Place& remote, std::uint32_t& rank) noexcept {
  bool found = false;
  for (auto at = peers.lower_bound(Place{remote.address, 0}); at != peers.end() && at->first.address == remote.address;
       ++at) {
    if (!found || at->second < rank) rank = at->second;
    found = true;
  }
  return found;
}

/// Whether `fd` connects an endpoint of ours with one of a peer: the accepting end has the endpoint's own port.
bool is_watched(int fd, Place& remote, std::uint32_t& rank) noexcept {
  sockaddr_storage here{}, there{};
  socklen_t here_size = sizeof here, there_size = sizeof there;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&there), &there_size) || !place_of(&there, there_size, remote))
    return false;
  Place local;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&here), &here_size) || !place_of(&here, here_size, local))
    return false;
  return (peers.count(remote) || own.count(local)) && rank_at(remote, rank);
}

}  // namespace

void watch_own(std::string_view name) noexcept {
  Place place;
  if (!place_of(name.data(), name.size(), place)) return;
  const std::lock_guard hold(places_mutex);
  own.insert(place);
}

void watch_peer(const void* name, std::uint32_t rank) noexcept {
  Place place;
  // Of a name only its family and the length that belongs to it are looked at.
  sa_family_t family;
  std::memcpy(&family, name, sizeof family);
  const std::size_t bytes = family == AF_INET ? sizeof(sockaddr_in) : family == AF_INET6 ? sizeof(sockaddr_in6) : 0;
  if (!bytes || !place_of(name, bytes, place)) return;
  const std::lock_guard hold(places_mutex);
  if (!own.empty()) peers.emplace(place, rank);
}

bool refuses_connections(const void* name, std::size_t bytes) noexcept {
  constexpr int patience_ms = 100;
  sockaddr_storage there{};
  Place place;
  if (!place_of(name, bytes, place)) return false;
  std::memcpy(&there, name, std::min(bytes, sizeof there));
  const int fd = socket(there.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  int error = 0;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&there), there.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6))) {
    error = errno;
    pollfd answer{fd, POLLOUT, 0};
    socklen_t size = sizeof error;
    if (error == EINPROGRESS && (::poll(&answer, 1, patience_ms) <= 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size))) error = 0;
  }
  close(fd);
  return error == ECONNREFUSED;
}

bool find_silent_peer(int seconds, std::uint32_t& rank, std::string& host) noexcept {
  const std::lock_guard hold(places_mutex);
  if (peers.empty()) return false;
  DIR* folder = opendir("/proc/self/fd");
  if (!folder) return false;
  bool found = false;
  while (const dirent* entry = found ? nullptr : readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    Place remote;
    if (entry->d_name[0] == '.' || fd == dirfd(folder) || !is_watched(fd, remote, rank)) continue;
    ask_when_silent(fd, seconds);
    found = is_silent(fd, seconds);
    if (found) host = text_of(remote);
  }
  closedir(folder);
  return found;
}

}  // namespace heddle::ofi
