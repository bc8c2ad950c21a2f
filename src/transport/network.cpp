#include "transport/network.hpp"

#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <tuple>

#include "sys/log.hpp"
#include "transport/host_address.hpp"
#include "transport/ofi/context.hpp"
#include "transport/ofi/library.hpp"
#include "transport/tcp/context.hpp"

namespace heddle::wire {
namespace {

constexpr std::size_t largest_packet = 64 << 20;

bool has_entries(const char* folder) noexcept {
  DIR* open = opendir(folder);
  if (!open) return false;
  int entries = 0;
  while (const dirent* entry = readdir(open)) entries += entry->d_name[0] != '.';
  closedir(open);
  return entries > 0;
}

/// Whether the kernel knows of an adapter that libfabric could reach past it. Asking libfabric itself takes a tenth of a second.
bool has_fabric_adapter() noexcept {
  return has_entries("/sys/class/infiniband") || has_entries("/sys/class/cxi") || has_entries("/sys/class/cxi_user") ||
         access("/dev/hfi1_0", F_OK) == 0;
}

/// How much an address of this host is worth before any peer is known: greater is better. One without a link is not worth nothing: it may be
/// back in a moment. On one host the loopback interface comes first.
std::tuple<bool, bool, bool, std::uint32_t, bool> worth(const tcp::HostAddress& one, bool bridge, bool loopback_first) {
  return {!bridge, one.linked, loopback_first && is_loopback(address_bytes(one.address.text())), one.megabits, one.address.is_v4()};
}

struct Found {
  tcp::HostAddress address;
  bool bridge = false;
  std::size_t place = 0;  ///< among what was looked at
};

bool choose_own(bool one_host, Network& network, std::vector<ofi::Offered>* offered, std::string& problem) {
  const auto wanted = wanted_network(problem);
  if (!wanted) return false;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list)) {
    problem = std::string("asking for this host's addresses: ") + std::strerror(errno);
    return false;
  }
  std::vector<Found> usable;
  std::vector<tcp::HostAddress> others;
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || (entry->ifa_addr->sa_family != AF_INET && entry->ifa_addr->sa_family != AF_INET6)) continue;
    const bool v4 = entry->ifa_addr->sa_family == AF_INET;
    ofi::Offered seen{own_tcp, entry->ifa_name, text_of(*entry->ifa_addr), {}, 0};
    const char* const reason = entry->ifa_flags & IFF_UP ? refusal(*wanted, one_host, seen.interface, address_bytes(seen.address)) : "the interface is down";
    if (reason) seen.verdict = reason;
    tcp::HostAddress one;
    sockaddr_storage address{};
    std::memcpy(&address, entry->ifa_addr, v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    one.address = tcp::Endpoint::of(address);
    one.address.port = 0;
    if (entry->ifa_netmask) one.prefix = prefix_of(*entry->ifa_netmask) + (v4 ? 96 : 0);
    one.interface = seen.interface;
    one.linked = entry->ifa_flags & IFF_RUNNING;
    one.offered = !reason;
    if (reason) others.push_back(one);
    else usable.push_back({one, wanted->any && is_private_bridge(one.interface), offered ? offered->size() : 0});
    if (offered) offered->push_back(seen);
  }
  freeifaddrs(list);
  if (usable.empty()) {
    problem = wanted->any ? "this host has no address that leads to another host; `heddle info network` lists what was looked at"
                          : std::string("HEDDLE_NET=") + wanted->text + " fits no address of this host; `heddle info network` lists them";
    return false;
  }
  for (std::size_t i = 0; i < usable.size(); ++i) {  // addresses of an interface follow each other
    const bool same = i && usable[i].address.interface == usable[i - 1].address.interface;
    usable[i].address.megabits = same ? usable[i - 1].address.megabits : link_speed(usable[i].address.interface.c_str());
  }
  std::stable_sort(usable.begin(), usable.end(), [&](const Found& a, const Found& b) {
    return worth(a.address, a.bridge, one_host && wanted->any) > worth(b.address, b.bridge, one_host && wanted->any);
  });
  const Found& best = usable.front();
  // Peers are told of all of them, but of bridges only where there is nothing else; and of one where all are on this host.
  network.host.clear();
  for (Found& one : usable) network.host.push_back(one.address);
  for (std::size_t i = 1; i < usable.size(); ++i) network.host[i].offered = !one_host && usable[i].bridge == best.bridge;
  const std::size_t count = tcp::most_offered(network.host);
  for (std::size_t i = 0, told = 0; i < usable.size(); ++i) {
    tcp::HostAddress& one = network.host[i];
    const char* verdict = i == 0 ? "chosen" : one.linked ? "for peers that are reached better here" : "no link: is the cable out?";
    if (!one.offered) verdict = one_host ? "works" : "a bridge inside this host";
    else if (++told > count) one.offered = false, verdict = "one too many: HEDDLE_NET says which ones to use";
    if (!offered) continue;
    (*offered)[usable[i].place].verdict = verdict;
    (*offered)[usable[i].place].megabits = one.megabits;
  }
  network.host.insert(network.host.end(), others.begin(), others.end());
  network.choice.interface = best.address.interface;
  network.choice.address = best.address.address.text();
  network.choice.info = nullptr;
  network.choice.provider = own_tcp;
  network.choice.why = "no adapter here offers more than TCP";
  if (!wanted->any) network.choice.why += std::string("; on HEDDLE_NET=") + wanted->text;
  else if (is_loopback(address_bytes(network.choice.address))) network.choice.why += "; all ranks are on this host, so the loopback interface will do";
  else if (count == 1) network.choice.why += "; the only address that leads to other hosts";
  if (count > 1) network.choice.why += "; the best of " + std::to_string(count) + " that lead to other hosts, and each peer is reached at the one that is best for both ends";
  if (!best.address.linked) network.choice.why += ", though its interface has no link";
  network.contexts = 0;
  network.largest_message = largest_packet;
  return true;
}

}  // namespace

bool Network::over_tcp() const noexcept {
  return !choice.info || choice.provider == "tcp" || choice.provider == "net" || choice.provider == "net;ofi_rxm" ||
         choice.provider == "tcp;ofi_rxm";
}

bool choose(bool one_host, Network& network, std::vector<ofi::Offered>* offered, std::string& problem) {
  const bool asked = *ofi::asked_provider();
  if (asked || has_fabric_adapter()) {
    const bool found = ofi::choose(one_host, network.choice, offered, problem);
    if (found && (asked || !ofi::is_over_sockets(network.choice.provider))) {
      network.contexts = network.choice.info->domain_attr->ep_cnt;
      network.largest_message = network.choice.info->ep_attr->max_msg_size;
      return true;
    }
    if (asked) return false;
    if (!found) HEDDLE_NOTICE_ONCE("this node has a network adapter that libfabric cannot be used with, so messages go over TCP: %s", problem.c_str());
    if (offered)
      for (ofi::Offered& one : *offered)
        if (one.verdict == "chosen") one.verdict = "slower than sockets of the library's own";
  }
  return choose_own(one_host, network, offered, problem);
}

bool open(const Network& network, std::string& problem) {
  if (network.choice.info) return ofi::open_fabric(network.choice.info, problem);
  tcp::set_host(network.host);
  return true;
}

std::unique_ptr<Context> new_context(const Network& network) {
  if (network.choice.info) return std::unique_ptr<Context>(new (std::nothrow) ofi::Context);
  return std::unique_ptr<Context>(new (std::nothrow) tcp::Context);
}

void close() noexcept { ofi::close_fabric(); }

std::string error_text(const Network& network, int code) {
  return network.choice.info ? ofi::error_text(code) : std::strerror(code < 0 ? -code : code);
}

}  // namespace heddle::wire
