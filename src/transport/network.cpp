#include "transport/network.hpp"

#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

#include <cstring>
#include <new>

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

bool choose_own(bool one_host, Network& network, std::vector<ofi::Offered>* offered, std::string& problem) {
  const auto wanted = wanted_network(problem);
  if (!wanted) return false;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list)) {
    problem = std::string("asking for this host's addresses: ") + std::strerror(errno);
    return false;
  }
  int best = -1;
  std::size_t place = 0;
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || (entry->ifa_addr->sa_family != AF_INET && entry->ifa_addr->sa_family != AF_INET6)) continue;
    const bool v4 = entry->ifa_addr->sa_family == AF_INET;
    ofi::Offered seen{own_tcp, entry->ifa_name, text_of(*entry->ifa_addr), "works"};
    const std::string bytes = address_bytes(seen.address);
    const char* reason = entry->ifa_flags & IFF_UP ? refusal(*wanted, one_host, seen.interface, bytes) : "the interface is down";
    const bool linked = entry->ifa_flags & IFF_RUNNING;
    if (reason) seen.verdict = reason;
    else if (!linked) seen.verdict = "no link: is the cable out?";
    // The first one wins, IPv4 before IPv6; on one host the loopback first. One without a link comes last, but not to nothing: it may be back
    // in a moment.
    const int score = reason ? -1 : 1 + (v4 ? 1 : 0) + (wanted->any && one_host && is_loopback(bytes) ? 2 : 0) + (linked ? 4 : 0);
    if (score > best) {
      best = score;
      place = offered ? offered->size() : 0;
      network.own = {};
      std::memcpy(&network.own, entry->ifa_addr, v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
      network.choice.interface = seen.interface;
      network.choice.address = seen.address;
    }
    if (offered) offered->push_back(seen);
  }
  freeifaddrs(list);
  if (best < 0) {
    problem = wanted->any ? "this host has no address that leads to another host; `heddle info network` lists what was looked at"
                          : std::string("HEDDLE_NET=") + wanted->text + " fits no address of this host; `heddle info network` lists them";
    return false;
  }
  if (offered) (*offered)[place].verdict = "chosen";
  if (network.own.ss_family == AF_INET) reinterpret_cast<sockaddr_in&>(network.own).sin_port = 0;
  else reinterpret_cast<sockaddr_in6&>(network.own).sin6_port = 0;
  network.choice.info = nullptr;
  network.choice.provider = own_tcp;
  network.choice.why = "no adapter here offers more than TCP";
  if (!wanted->any) network.choice.why += std::string("; on HEDDLE_NET=") + wanted->text;
  else if (is_loopback(address_bytes(network.choice.address))) network.choice.why += "; all ranks are on this host, so the loopback interface will do";
  else network.choice.why += "; the first address that leads to other hosts";
  if (best < 4) network.choice.why += ", though its interface has no link";
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
  tcp::set_address(network.own);
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
