#include "transport/host_address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <set>

#include "sys/params.hpp"

namespace heddle {
namespace {

HEDDLE_PARAM_TEXT(network, "HEDDLE_NET", "",
                  "messages between nodes use this interface or network only: a name (eth0), an address, or a range of addresses (10.9.0.0/24)");

bool is_link_local(const std::string& bytes) {
  const auto at = [&](int i) { return static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]); };
  if (bytes.size() == 4) return at(0) == 169 && at(1) == 254;
  return bytes.size() == 16 && at(0) == 0xfe && (at(1) & 0xc0) == 0x80;
}

bool in_range(const Wanted& wanted, const std::string& bytes) {
  if (bytes.size() != wanted.bytes.size()) return false;
  for (unsigned bit = 0; bit < wanted.bits; ++bit)
    if (((bytes[bit / 8] ^ wanted.bytes[bit / 8]) >> (7 - bit % 8)) & 1) return false;
  return true;
}

/// The addresses that an interface of this host has, as bytes.
std::set<std::string> addresses_of(const std::string& interface) {
  std::set<std::string> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list)) return found;
  for (ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || interface != entry->ifa_name) continue;
    if (entry->ifa_addr->sa_family == AF_INET)
      found.emplace(reinterpret_cast<const char*>(&reinterpret_cast<sockaddr_in*>(entry->ifa_addr)->sin_addr), 4);
    else if (entry->ifa_addr->sa_family == AF_INET6)
      found.emplace(reinterpret_cast<const char*>(&reinterpret_cast<sockaddr_in6*>(entry->ifa_addr)->sin6_addr), 16);
  }
  freeifaddrs(list);
  return found;
}

}  // namespace

bool is_private_bridge(const std::string& interface) {
  for (const char* prefix : {"docker", "virbr", "lxcbr", "lxdbr", "incusbr", "br-", "cni", "podman"})
    if (interface.rfind(prefix, 0) == 0) return true;
  return false;
}

unsigned prefix_of(const sockaddr& mask) {
  unsigned char bytes[16] = {};
  if (mask.sa_family == AF_INET) std::memcpy(bytes, &reinterpret_cast<const sockaddr_in&>(mask).sin_addr, 4);
  else if (mask.sa_family == AF_INET6) std::memcpy(bytes, &reinterpret_cast<const sockaddr_in6&>(mask).sin6_addr, 16);
  unsigned bits = 0;
  for (const unsigned char byte : bytes) bits += static_cast<unsigned>(std::popcount(byte));
  return bits;
}

std::uint32_t link_speed(const char* interface) noexcept {
  // The kernel wants to be told how many words its masks have, which it tells who asks with another number. Not from /sys, which may be that of
  // another network namespace.
  alignas(ethtool_link_settings) unsigned char room[sizeof(ethtool_link_settings) + 3 * 127 * sizeof(std::uint32_t)] = {};
  auto& settings = *reinterpret_cast<ethtool_link_settings*>(room);
  ifreq request{};
  std::strncpy(request.ifr_name, interface, sizeof request.ifr_name - 1);
  request.ifr_data = reinterpret_cast<char*>(room);
  settings.cmd = ETHTOOL_GLINKSETTINGS;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;
  bool known = ioctl(fd, SIOCETHTOOL, &request) == 0;
  if (known && settings.link_mode_masks_nwords < 0) {
    const auto words = static_cast<__s8>(-settings.link_mode_masks_nwords);
    std::memset(room, 0, sizeof room);
    settings.cmd = ETHTOOL_GLINKSETTINGS;
    settings.link_mode_masks_nwords = words;
    known = ioctl(fd, SIOCETHTOOL, &request) == 0;
  }
  close(fd);
  constexpr std::uint32_t unknown = 0xffffffff;
  return known && settings.speed != unknown ? settings.speed : 0;
}

std::string text_of(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.sa_family == AF_INET) inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
  else if (address.sa_family == AF_INET6) inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text, sizeof text);
  return text;
}

std::string address_bytes(const std::string& text) {
  unsigned char bytes[16];
  if (inet_pton(AF_INET, text.c_str(), bytes) == 1) return {reinterpret_cast<char*>(bytes), 4};
  if (inet_pton(AF_INET6, text.c_str(), bytes) == 1) return {reinterpret_cast<char*>(bytes), 16};
  return {};
}

bool is_loopback(const std::string& bytes) {
  if (bytes.size() == 4) return static_cast<unsigned char>(bytes[0]) == 127;
  return bytes == std::string(15, '\0') + '\1';
}

std::optional<Wanted> wanted_network(std::string& problem) {
  const char* const text = network.text();
  Wanted wanted;
  wanted.text = text;
  if (!*text) return wanted;
  wanted.any = false;
  std::string address = text;
  const std::size_t slash = address.find('/');
  if (slash != std::string::npos) address.resize(slash);
  wanted.bytes = address_bytes(address);
  if (wanted.bytes.empty()) {
    if (slash != std::string::npos) {
      problem = std::string("HEDDLE_NET=") + text + " is not a range of addresses; write it as 10.9.0.0/24 or as an interface's name";
      return std::nullopt;
    }
    wanted.interface = text;
    return wanted;
  }
  wanted.bits = static_cast<unsigned>(wanted.bytes.size()) * 8;
  if (slash != std::string::npos) {
    char* end = nullptr;
    const unsigned long bits = std::strtoul(text + slash + 1, &end, 10);
    if (end == text + slash + 1 || *end || bits > wanted.bits) {
      problem = std::string("HEDDLE_NET=") + text + ": the number after the slash is the length of the prefix, at most " +
                std::to_string(wanted.bits);
      return std::nullopt;
    }
    wanted.bits = static_cast<unsigned>(bits);
  }
  return wanted;
}

const char* refusal(const Wanted& wanted, bool one_host, const std::string& interface, const std::string& bytes) {
  if (!wanted.interface.empty() && interface != wanted.interface && !addresses_of(wanted.interface).count(bytes)) return "not on HEDDLE_NET";
  if (!wanted.bytes.empty() && !in_range(wanted, bytes)) return "not on HEDDLE_NET";
  // Such an address of IPv6 means nothing without the interface, which has another number on another host.
  if (!wanted.interface.empty() && bytes.size() == 16 && is_link_local(bytes)) return "link-local address";
  if (!wanted.any) return nullptr;
  if (!one_host && is_loopback(bytes)) return "the loopback interface reaches this host only";
  if (is_link_local(bytes)) return "link-local address";
  return nullptr;
}

}  // namespace heddle
