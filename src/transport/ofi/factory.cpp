// Whether libfabric carries the job's messages, and how.
#include "transport/ofi/factory.hpp"

#include <dirent.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

#include "sys/log.hpp"
#include "transport/ofi/context.hpp"
#include "transport/ofi/library.hpp"
#include "transport/ofi/provider.hpp"
#include "transport/ofi/tcp_watch.hpp"

namespace heddle::ofi {
namespace {

constexpr std::size_t rxm_head = 512;  ///< bytes, of what ofi_rxm puts before a message

fi_info* taken = nullptr;

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

/// What both ends of a connection must agree on.
std::string agreement_of(const std::string& provider) {
  const char* size = std::getenv("FI_OFI_RXM_BUFFER_SIZE");
  return size && provider.find("rxm") != std::string::npos ? provider + " with buffers of " + size : provider;
}

/// Whether the provider goes over TCP and sends `bytes` in one piece: ofi_rxm's own protocols for more are slower than asking first.
bool sends_whole(const std::string& provider, std::size_t bytes) noexcept {
  if (provider == "tcp" || provider == "net") return true;
  if (provider != "tcp;ofi_rxm" && provider != "net;ofi_rxm") return false;
  const char* text = std::getenv("FI_OFI_RXM_BUFFER_SIZE");
  return text && std::strtoull(text, nullptr, 0) >= bytes + rxm_head;
}

wire::Look look(const wire::Need& need, wire::Choice& choice, std::vector<wire::Offered>* offered, std::string& problem) {
  const bool asked = *asked_provider();
  if (!asked && !has_fabric_adapter()) return wire::Look::passed;
  // Larger buffers inside libfabric cost 100 MiB more for each VCI.
  if (need.may_use_more) prefer_rxm_buffer(need.whole + rxm_head);
  const bool found = choose(need.one_host, choice, taken, offered, problem);
  if (found && (asked || !is_over_sockets(choice.provider))) {
    choice.agreement = agreement_of(choice.provider);
    choice.contexts = taken->domain_attr->ep_cnt;
    choice.largest_message = taken->ep_attr->max_msg_size;
    choice.largest_name = 256;
    choice.sends_whole = sends_whole(choice.provider, need.whole);
    set_own_place(choice.interface, choice.address);
    return wire::Look::taken;
  }
  if (asked) return wire::Look::refused;
  if (!found) HEDDLE_NOTICE_ONCE("this node has a network adapter that libfabric cannot be used with, so messages go over TCP: %s", problem.c_str());
  if (offered)
    for (wire::Offered& one : *offered)
      if (one.verdict == "chosen") one.verdict = "slower than sockets of the library's own";
  return wire::Look::passed;
}

}  // namespace

constinit const wire::Factory factory{
    .name = "ofi",
    .look = look,
    .open = [](std::string& problem) { return open_fabric(taken, problem); },
    .close = close_fabric,
    .new_context = [] { return std::unique_ptr<wire::Context>(new (std::nothrow) Context); },
    .error_text = [](int code) { return std::string(error_text(code)); },
    .set_key = nullptr,
    .find_silent = find_silent_peer,
};

}  // namespace heddle::ofi
