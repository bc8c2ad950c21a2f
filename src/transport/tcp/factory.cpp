// Which addresses of this host the job's messages use.
#include "transport/tcp/factory.hpp"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <tuple>
#include <utility>

#include "transport/host_address.hpp"
#include "transport/tcp/context.hpp"

namespace heddle::tcp {
namespace {

constexpr const char* provider = "sockets of its own";
constexpr std::size_t largest_packet = 64 << 20;

/// How much an address of this host is worth before any peer is known: greater is better. One without a link is not worth nothing: it may be
/// back in a moment. On one host the loopback interface comes first.
std::tuple<bool, bool, bool, std::uint32_t, bool> worth(const HostAddress& one, bool bridge, bool loopback_first) {
  return {!bridge, one.linked, loopback_first && is_loopback(address_bytes(one.address.text())), one.megabits, one.address.is_v4()};
}

struct Found {
  HostAddress address;
  bool bridge = false;
  std::size_t place = 0;  ///< among what was looked at
};

wire::Look look(const wire::Need& need, wire::Choice& choice, std::vector<wire::Offered>* offered, std::string& problem) {
  const bool one_host = need.one_host;
  const auto wanted = wanted_network(problem);
  if (!wanted) return wire::Look::refused;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list)) {
    problem = std::string("asking for this host's addresses: ") + std::strerror(errno);
    return wire::Look::refused;
  }
  std::vector<Found> usable;
  std::vector<HostAddress> others;
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || (entry->ifa_addr->sa_family != AF_INET && entry->ifa_addr->sa_family != AF_INET6)) continue;
    const bool v4 = entry->ifa_addr->sa_family == AF_INET;
    wire::Offered seen{provider, entry->ifa_name, heddle::text_of(*entry->ifa_addr), {}, 0};
    const char* const reason = entry->ifa_flags & IFF_UP ? refusal(*wanted, one_host, seen.interface, address_bytes(seen.address)) : "the interface is down";
    if (reason) seen.verdict = reason;
    HostAddress one;
    sockaddr_storage address{};
    std::memcpy(&address, entry->ifa_addr, v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    one.address = Endpoint::of(address);
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
    return wire::Look::refused;
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
  std::vector<HostAddress> host;
  for (Found& one : usable) host.push_back(one.address);
  for (std::size_t i = 1; i < usable.size(); ++i) host[i].offered = !one_host && usable[i].bridge == best.bridge;
  const std::size_t count = most_offered(host);
  for (std::size_t i = 0, told = 0; i < usable.size(); ++i) {
    HostAddress& one = host[i];
    const char* verdict = i == 0 ? "chosen" : one.linked ? "for peers that are reached better here" : "no link: is the cable out?";
    if (!one.offered) verdict = one_host ? "works" : "a bridge inside this host";
    else if (++told > count) one.offered = false, verdict = "one too many: HEDDLE_NET says which ones to use";
    if (!offered) continue;
    (*offered)[usable[i].place].verdict = verdict;
    (*offered)[usable[i].place].megabits = one.megabits;
  }
  host.insert(host.end(), others.begin(), others.end());
  choice.interface = best.address.interface;
  choice.address = best.address.address.text();
  choice.provider = provider;
  choice.why = "no adapter here offers more than TCP";
  if (!wanted->any) choice.why += std::string("; on HEDDLE_NET=") + wanted->text;
  else if (is_loopback(address_bytes(choice.address))) choice.why += "; all ranks are on this host, so the loopback interface will do";
  else if (count == 1) choice.why += "; the only address that leads to other hosts";
  if (count > 1) choice.why += "; the best of " + std::to_string(count) + " that lead to other hosts, and each peer is reached at the one that is best for both ends";
  if (!best.address.linked) choice.why += ", though its interface has no link";
  choice.agreement = provider;
  choice.contexts = 0;
  choice.largest_message = largest_packet;
  choice.largest_name = 64 + largest_name;
  choice.sends_whole = true;
  set_host(std::move(host));
  return wire::Look::taken;
}


}  // namespace

constinit const wire::Factory factory{
    .name = "tcp",
    .look = look,
    .open = [](std::string&) { return true; },
    .close = []() noexcept {},
    .new_context = [] { return std::unique_ptr<wire::Context>(new (std::nothrow) Context); },
    .error_text = [](int code) { return std::string(std::strerror(code < 0 ? -code : code)); },
    .set_key = set_key,
    .find_silent = nullptr,
};

}  // namespace heddle::tcp
