#include "transport/ofi/provider.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>

#include "sys/params.hpp"
#include "transport/ofi/library.hpp"

namespace heddle::ofi {
namespace {

HEDDLE_PARAM_TEXT(provider_name, "HEDDLE_OFI_PROVIDER", "",
                  "the libfabric provider for messages between nodes (tcp;ofi_rxm, verbs;ofi_rxm, udp;ofi_rxd, sockets, …); "
                  "empty: the best one found");
HEDDLE_PARAM_TEXT(network, "HEDDLE_NET", "",
                  "the interface or network between the nodes: a name (eth0), an address, or a range of addresses (10.9.0.0/24)");

/// Best first: fabrics of their own, then TCP. `shm` and what is built on it are never taken: the library has its own.
constexpr const char* preferred[] = {"cxi", "opx", "psm3", "psm2", "efa", "verbs;ofi_rxm", "tcp;ofi_rxm", "tcp",
                                     "net;ofi_rxm", "udp;ofi_rxd", "sockets"};
constexpr int unknown_rank = 100;

int rank_of(const char* provider) noexcept {
  int rank = 0;
  for (const char* name : preferred) {
    if (!std::strcmp(provider, name)) return rank;
    ++rank;
  }
  return unknown_rank;
}

bool is_memory_only(const std::string& provider) {
  return provider == "shm" || provider.find("shm") != std::string::npos || provider == "sm2" || provider == "lnx" ||
         provider.find("ofi_hook") != std::string::npos || provider.find("off_coll") != std::string::npos;
}

std::string address_text(const fi_info& info) {
  char text[INET6_ADDRSTRLEN] = "";
  if (!info.src_addr) return {};
  const auto* address = static_cast<const sockaddr*>(info.src_addr);
  if (info.addr_format == FI_SOCKADDR_IN || (info.addr_format == FI_SOCKADDR && address->sa_family == AF_INET))
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  else if (info.addr_format == FI_SOCKADDR_IN6 || (info.addr_format == FI_SOCKADDR && address->sa_family == AF_INET6))
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text, sizeof text);
  return text;
}

/// The address bytes of `info`, for comparing; empty for providers with other addresses.
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
bool is_link_local(const std::string& bytes) {
  const auto at = [&](int i) { return static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]); };
  if (bytes.size() == 4) return at(0) == 169 && at(1) == 254;
  return bytes.size() == 16 && at(0) == 0xfe && (at(1) & 0xc0) == 0x80;
}

/// What HEDDLE_NET asks for.
struct Wanted {
  bool any = true;
  std::string interface;  ///< by name
  std::string bytes;      ///< or by range: the first `bits` bits of these
  unsigned bits = 0;
};

std::optional<Wanted> parse_wanted(const char* text, std::string& problem) {
  Wanted wanted;
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

bool in_range(const Wanted& wanted, const std::string& bytes) {
  if (bytes.size() != wanted.bytes.size()) return false;
  for (unsigned bit = 0; bit < wanted.bits; ++bit)
    if (((bytes[bit / 8] ^ wanted.bytes[bit / 8]) >> (7 - bit % 8)) & 1) return false;
  return true;
}

/// The interfaces of this host that have an address, as "name bytes".
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

/// Names of interfaces that lead to no other host: bridges to containers and virtual machines of this one.
bool is_private_bridge(const std::string& interface) {
  for (const char* prefix : {"docker", "virbr", "lxcbr", "br-", "cni", "podman"})
    if (interface.rfind(prefix, 0) == 0) return true;
  return false;
}

fi_info* make_hints(const Library& library, const char* provider) {
  fi_info* hints = library.dupinfo(nullptr);
  if (!hints) return nullptr;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  if (provider && *provider) hints->fabric_attr->prov_name = strdup(provider);  // freed with the hints
  return hints;
}

}  // namespace

bool choose(bool one_host, Choice& choice, std::vector<Offered>* offered, std::string& problem) {
  const auto wanted = parse_wanted(network.text(), problem);
  if (!wanted) return false;
  const Library* library = load(problem);
  if (!library) return false;

  fi_info* list = nullptr;
  int code = -FI_ENODATA;
  // Without remote reads a provider still carries messages; large ones are then sent in pieces.
  for (const std::uint64_t caps : {FI_MSG | FI_RMA | FI_MULTI_RECV, FI_MSG | FI_RMA, FI_MSG | FI_MULTI_RECV, FI_MSG}) {
    fi_info* hints = make_hints(*library, provider_name.text());
    if (!hints) return problem = "no memory", false;
    hints->caps = caps;
    code = library->getinfo(FI_VERSION(1, 15), nullptr, nullptr, 0, hints, &list);
    library->freeinfo(hints);
    if (!code) break;
  }
  if (code) {
    problem = *provider_name.text()
                  ? std::string("libfabric (") + library->path + ") has no provider \"" + provider_name.text() +
                        "\" that works here (" + error_text(code) + "); `fi_info -l` lists what there is, HEDDLE_OFI_PROVIDER chooses"
                  : std::string("libfabric (") + library->path + ") found no network that works here: " + error_text(code);
    return false;
  }

  const std::set<std::string> of_interface = wanted->interface.empty() ? std::set<std::string>{} : addresses_of(wanted->interface);
  fi_info* best = nullptr;
  std::string best_why;
  long best_score = -1;
  std::size_t best_place = 0;
  for (fi_info* info = list; info; info = info->next) {
    Offered seen{info->fabric_attr->prov_name ? info->fabric_attr->prov_name : "", info->domain_attr->name ? info->domain_attr->name : "",
                 address_text(*info), {}};
    const std::string bytes = address_bytes(seen.address);
    long score = -1;
    if (is_memory_only(seen.provider)) seen.verdict = "reaches this node only";
    else if (rank_of(seen.provider.c_str()) == unknown_rank && !*provider_name.text()) seen.verdict = "not one of the providers that are taken unasked";
    else if (!wanted->interface.empty() && seen.interface != wanted->interface && !of_interface.count(bytes)) seen.verdict = "not on HEDDLE_NET";
    else if (!wanted->bytes.empty() && !in_range(*wanted, bytes)) seen.verdict = "not on HEDDLE_NET";
    else if (wanted->any && !one_host && is_loopback(bytes)) seen.verdict = "the loopback interface reaches this host only";
    else if (wanted->any && is_link_local(bytes)) seen.verdict = "link-local address";
    else if (wanted->any && is_private_bridge(seen.interface)) seen.verdict = "a bridge inside this host";
    else {
      // Provider before address: the first of the best provider wins, IPv4 before IPv6; on one host the loopback first.
      score = (unknown_rank - rank_of(seen.provider.c_str())) * 10L + (bytes.size() == 4 ? 1 : 0) +
              (wanted->any && one_host && is_loopback(bytes) ? 2 : 0) + 1;
      seen.verdict = "works";
    }
    if (score > best_score) {
      best_score = score;
      best = info;
      best_place = offered ? offered->size() : 0;
      choice.provider = seen.provider;
      choice.interface = seen.interface;
      choice.address = seen.address;
    }
    if (!offered) continue;
    bool repeated = false;  // providers list the same thing once for each of their protocols
    for (const Offered& known : *offered)
      repeated |= known.provider == seen.provider && known.interface == seen.interface && known.address == seen.address;
    if (!repeated) offered->push_back(seen);
  }
  if (!best) {
    library->freeinfo(list);
    problem = wanted->any ? std::string("libfabric (") + library->path +
                                ") offers nothing that leads to another host; `heddle info network` lists what was looked at"
                          : std::string("HEDDLE_NET=") + network.text() +
                                " fits no address of this host that libfabric can use; `heddle info network` lists them";
    return false;
  }
  if (offered && best_place < offered->size()) (*offered)[best_place].verdict = "chosen";
  choice.info = library->dupinfo(best);
  library->freeinfo(list);
  if (!choice.info) return problem = "no memory", false;
  choice.why = *provider_name.text() ? "HEDDLE_OFI_PROVIDER asks for it" : "the first of the providers found, in the order of preference";
  if (!wanted->any) choice.why += std::string(", on HEDDLE_NET=") + network.text();
  else if (one_host && is_loopback(address_bytes(choice.address))) choice.why += "; all ranks are on this host, so the loopback interface will do";
  else if (!choice.address.empty()) choice.why += "; the first address that leads to other hosts";
  return true;
}

}  // namespace heddle::ofi
