// Chooses the libfabric provider, and the address of this host, that carry the job's messages.
#pragma once

#include <rdma/fabric.h>

#include <string>
#include <vector>

#include "transport/wire.hpp"

namespace heddle::ofi {

/// HEDDLE_OFI_PROVIDER; empty when the user asks for none.
const char* asked_provider() noexcept;
/// Whether a provider sends through the kernel's TCP or UDP.
bool is_over_sockets(const std::string& provider) noexcept;

/// Chooses among what libfabric lists. \param one_host all ranks are on this host, so that the loopback interface will do.
/// \param info what was chosen; lives until the process ends
/// Parameters: HEDDLE_OFI_PROVIDER, HEDDLE_NET. False: `problem` says the cause and the remedy. `offered` (may be null) receives the
/// whole list, also on failure.
bool choose(bool one_host, wire::Choice& choice, fi_info*& info, std::vector<wire::Offered>* offered, std::string& problem);

struct Library;

/// The same provider, interface and address with atomics, for `fi_freeinfo`; null where there are none, or asking for them changes anything else.
fi_info* with_atomics(const Library& library, const fi_info& chosen);

}  // namespace heddle::ofi
