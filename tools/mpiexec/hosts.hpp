// Hosts as command lines and host files name them.
#pragma once

#include <string>
#include <vector>

#include "job.hpp"

namespace heddle::mpiexec {

/// Of this machine, as the system says it.
std::string host_name();

/// A number of ranks. Throws Refusal, naming `option`.
int positive(const std::string& option, const std::string& text);

/// `name` or `name:slots`; an address of IPv6 has no slots, for nobody could say where it ends.
HostChoice parse_host(const std::string& text);

/// One host a line: `name`, `name:2` (Hydra), `name slots=2` (Open MPI); comments begin with #.
void read_host_file(const std::string& file, std::vector<HostChoice>& hosts);

}  // namespace heddle::mpiexec
