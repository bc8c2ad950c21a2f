#include "transport/ofi/provider.hpp"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstdlib>
#include <cstring>

#include "sys/params.hpp"
#include "transport/host_address.hpp"
#include "transport/ofi/library.hpp"

namespace heddle::ofi {
namespace {

HEDDLE_PARAM_TEXT(provider_name, "HEDDLE_OFI_PROVIDER", "",
                  "the libfabric provider for messages between nodes (tcp;ofi_rxm, verbs;ofi_rxm, udp;ofi_rxd, sockets, …); "
                  "empty: the best one found, and sockets of the library's own where that would be one over TCP or UDP");

/// Best first: dedicated fabrics, then TCP. `shm` and what builds on it are never taken: the library has its own.
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
  const auto* address = static_cast<const sockaddr*>(info.src_addr);
  const bool socket = info.addr_format == FI_SOCKADDR_IN || info.addr_format == FI_SOCKADDR_IN6 || info.addr_format == FI_SOCKADDR;
  return address && socket ? text_of(*address) : std::string();
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

fi_info* with_atomics(const Library& library, const fi_info& chosen) {
  // Layered providers carry them out at the target by its processor, where active messages do as well, and give up rules of order for it.
  if (!(chosen.caps & FI_RMA) || std::strstr(chosen.fabric_attr->prov_name, "ofi_rx")) return nullptr;
  fi_info* hints = make_hints(library, chosen.fabric_attr->prov_name);
  if (!hints) return nullptr;
  hints->caps = FI_MSG | FI_RMA | FI_ATOMIC | (chosen.caps & FI_MULTI_RECV);
  fi_info* list = nullptr;
  {
    const KeptSignals kept;
    if (library.getinfo(FI_VERSION(1, 15), nullptr, nullptr, 0, hints, &list)) list = nullptr;
  }
  library.freeinfo(hints);
  const auto same_text = [](const char* a, const char* b) { return !std::strcmp(a ? a : "", b ? b : ""); };
  fi_info* found = nullptr;
  for (fi_info* info = list; info && !found; info = info->next) {
    const bool same_place = same_text(info->fabric_attr->prov_name, chosen.fabric_attr->prov_name) &&
                            same_text(info->fabric_attr->name, chosen.fabric_attr->name) &&
                            same_text(info->domain_attr->name, chosen.domain_attr->name) && info->src_addrlen == chosen.src_addrlen &&
                            (!info->src_addrlen || !std::memcmp(info->src_addr, chosen.src_addr, info->src_addrlen));
    const bool same = same_place && (info->caps & chosen.caps) == chosen.caps && info->mode == chosen.mode &&
                      info->ep_attr->max_msg_size == chosen.ep_attr->max_msg_size && info->tx_attr->msg_order == chosen.tx_attr->msg_order &&
                      info->rx_attr->msg_order == chosen.rx_attr->msg_order && info->tx_attr->inject_size == chosen.tx_attr->inject_size &&
                      info->domain_attr->mr_mode == chosen.domain_attr->mr_mode;
    if (same) found = library.dupinfo(info);
  }
  library.freeinfo(list);
  return found;
}

const char* asked_provider() noexcept { return provider_name.text(); }

bool is_over_sockets(const std::string& provider) noexcept { return rank_of(provider.c_str()) >= rank_of("tcp;ofi_rxm"); }

bool choose(bool one_host, wire::Choice& choice, fi_info*& taken, std::vector<wire::Offered>* offered, std::string& problem) {
  const auto wanted = wanted_network(problem);
  if (!wanted) return false;
  const Library* library = load(problem);
  if (!library) return false;

  fi_info* list = nullptr;
  int code = -FI_ENODATA;
  // A provider without remote reads still carries messages; large ones are then sent in pieces.
  for (const std::uint64_t caps : {FI_MSG | FI_RMA | FI_MULTI_RECV, FI_MSG | FI_RMA, FI_MSG | FI_MULTI_RECV, FI_MSG}) {
    fi_info* hints = make_hints(*library, provider_name.text());
    if (!hints) return problem = "no memory", false;
    hints->caps = caps;
    const KeptSignals kept;
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

  fi_info* best = nullptr;
  std::string best_why;
  long best_score = -1;
  std::size_t best_place = 0;
  for (fi_info* info = list; info; info = info->next) {
    wire::Offered seen{info->fabric_attr->prov_name ? info->fabric_attr->prov_name : "", info->domain_attr->name ? info->domain_attr->name : "",
                 address_text(*info), {}, 0};
    const std::string bytes = address_bytes(seen.address);
    long score = -1;
    if (is_memory_only(seen.provider)) seen.verdict = "reaches this node only";
    else if (rank_of(seen.provider.c_str()) == unknown_rank && !*provider_name.text()) seen.verdict = "not one of the providers that are taken unasked";
    else if (const char* reason = refusal(*wanted, one_host, seen.interface, bytes)) seen.verdict = reason;
    else if (wanted->any && is_private_bridge(seen.interface)) seen.verdict = "a bridge inside this host";
    else {
      // Compares providers before addresses: of the best provider the first address wins, IPv4 before IPv6; on one host the loopback first.
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
    for (const wire::Offered& known : *offered)
      repeated |= known.provider == seen.provider && known.interface == seen.interface && known.address == seen.address;
    if (!repeated) offered->push_back(seen);
  }
  if (!best) {
    library->freeinfo(list);
    problem = wanted->any ? std::string("libfabric (") + library->path +
                                ") offers nothing that leads to another host; `heddle info network` lists what was looked at"
                          : std::string("HEDDLE_NET=") + wanted->text +
                                " fits no address of this host that libfabric can use; `heddle info network` lists them";
    return false;
  }
  if (offered && best_place < offered->size()) (*offered)[best_place].verdict = "chosen";
  taken = with_atomics(*library, *best);
  if (!taken) taken = library->dupinfo(best);
  library->freeinfo(list);
  if (!taken) return problem = "no memory", false;
  choice.why = *provider_name.text() ? "HEDDLE_OFI_PROVIDER asks for it" : "the first of the providers found, in the order of preference";
  if (!wanted->any) choice.why += std::string(", on HEDDLE_NET=") + wanted->text;
  else if (one_host && is_loopback(address_bytes(choice.address))) choice.why += "; all ranks are on this host, so the loopback interface will do";
  else if (!choice.address.empty()) choice.why += "; the first address that leads to other hosts";
  return true;
}

}  // namespace heddle::ofi
