// What the library would use between nodes.
#pragma once

namespace heddle::tool {

/// `heddle info network`: the providers and addresses that libfabric offers, which the library takes, and why. Exit status.
/// \param one_host as for a job whose ranks are all on this host (HEDDLE_SHM=0)
int print_network(bool one_host, bool json);

}  // namespace heddle::tool
