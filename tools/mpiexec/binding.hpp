#pragma once

#include <string>
#include <vector>

#include "job.hpp"
#include "sys/topology.hpp"

namespace heddle::mpiexec {

/// The cores of `mine` grouped by physical core, neighbours next to each other: package, then core. Read from `cpus`
/// (two small files per core; hwloc would take longer than the whole start of a job).
std::vector<sys::CoreSet> physical_cores(const sys::CoreSet& mine, const std::string& cpus = "/sys/devices/system/cpu");

/// Which cores each rank is bound to; empty: nobody is bound.
/// even: every rank gets as many cores as the others, or one more, and whole physical cores while there are enough.
/// automatic: even when each rank can have a core of its own (`usable`), else none.
std::vector<sys::CoreSet> assign_cores(Bind bind, int ranks, int usable, const std::vector<sys::CoreSet>& physical);

}  // namespace heddle::mpiexec
