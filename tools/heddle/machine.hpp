// What the library finds on this machine: cores it may use, memory to share, ways to copy.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace heddle::tool {

/// Facts in the order they are shown: a name and what there is to say.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Packages, cores, caches, memory nodes; the cores this process may use (affinity mask, cgroup quota).
Facts describe_topology();

/// Each transport and whether its preconditions hold here (shared memory, single-copy access to other processes).
Facts describe_transports();

}  // namespace heddle::tool
