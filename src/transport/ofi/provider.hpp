// Chooses the libfabric provider, and the address of this host, that carry the job's messages.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::ofi {

/// What was chosen. `info` is owned and lives until the process ends.
struct Choice {
  fi_info* info = nullptr;
  std::string provider;   ///< "tcp;ofi_rxm"
  std::string interface;  ///< the provider's name for it: "eth0", "mlx5_0"
  std::string address;    ///< in readable form; empty if the provider has none
  std::string why;        ///< one sentence
};

/// One entry that libfabric listed, and whether it was chosen.
struct Offered {
  std::string provider, interface, address;
  std::string verdict;  ///< "chosen", or why not
  std::uint32_t megabits = 0;  ///< a second; 0: not known, or not asked
};

/// HEDDLE_OFI_PROVIDER; empty when the user asks for none.
const char* asked_provider() noexcept;
/// Whether a provider sends through the kernel's TCP or UDP.
bool is_over_sockets(const std::string& provider) noexcept;

/// Chooses among what libfabric lists. \param one_host all ranks are on this host, so that the loopback interface will do.
/// Parameters: HEDDLE_OFI_PROVIDER, HEDDLE_NET. False: `problem` says the cause and the remedy. `offered` (may be null) receives the
/// whole list, also on failure.
bool choose(bool one_host, Choice& choice, std::vector<Offered>* offered, std::string& problem);

}  // namespace heddle::ofi
