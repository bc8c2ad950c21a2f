// What the library would use between nodes.
#pragma once

#include <string>
#include <vector>

namespace heddle::tool {

/// `heddle info network`: the providers and addresses that libfabric offers, which the library takes, and why. Exit status.
/// \param one_host as for a job whose ranks are all on this host (HEDDLE_SHM=0)
/// \param to addresses of another host: shows in which order they would be tried, and why
int print_network(bool one_host, bool json, const std::vector<std::string>& to);

}  // namespace heddle::tool
