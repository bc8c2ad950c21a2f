// Which kinds of hardware the node has and which of them this process is confined to.
#pragma once

#include <string>
#include <vector>

namespace heddle::mpi {

/// A kind of hardware under hwloc's name ("Package", "NUMANode", "L3Cache", "Core", "PU", …).
struct HardwareType {
  std::string name;
  bool restricted;  ///< every CPU that this process may run on belongs to one and the same item of the kind
  int item;         ///< the item that holds this process's first CPU: a number of its own on the node, for each kind
};

/// The kinds that the kernel reports for the CPUs of this process, largest first. Reads the affinity mask and /sys at each call.
std::vector<HardwareType> hardware_types();

}  // namespace heddle::mpi
