#include "network.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sys/mistakes.hpp"
#include "transport/network.hpp"
#include "transport/ofi/library.hpp"

namespace heddle::tool {

int print_network(bool one_host, bool json) {
  sys::report_mistakes(false);
  wire::Network network;
  std::vector<ofi::Offered> offered;
  std::string problem;
  const bool found = wire::choose(one_host, network, &offered, problem);
  const ofi::Choice& choice = network.choice;
  std::string ignored;
  const ofi::Library* library = ofi::load(ignored);
  const std::string version = library ? fmt::format("{}.{}", FI_MAJOR(library->version()), FI_MINOR(library->version())) : "";
  if (json) {
    nlohmann::ordered_json out;
    out["libfabric"] = {{"path", library ? library->path : ""}, {"version", version}};
    out["offered"] = nlohmann::ordered_json::array();
    for (const ofi::Offered& one : offered)
      out["offered"].push_back({{"provider", one.provider}, {"interface", one.interface}, {"address", one.address}, {"megabits", one.megabits},
                                {"verdict", one.verdict}});
    if (found) out["chosen"] = {{"provider", choice.provider}, {"interface", choice.interface}, {"address", choice.address}, {"why", choice.why}};
    else out["problem"] = problem;
    fmt::print("{}\n", out.dump(2));
    return found ? 0 : 1;
  }
  if (library) fmt::print("libfabric           {} ({})\n", version, library->path);
  if (found)
    fmt::print("chosen              {} on {} {}\nwhy                 {}\n", choice.provider, choice.interface, choice.address, choice.why);
  else
    fmt::print(stderr, "heddle info network: {}\n", problem);
  if (!offered.empty()) {
    fmt::print("\n{:<20}{:<14}{:<28}{:<12}\n", "provider", "interface", "address", "Mb/s");
    for (const ofi::Offered& one : offered)
      fmt::print("{:<20}{:<14}{:<28}{:<12}{}\n", one.provider, one.interface, one.address, one.megabits ? fmt::to_string(one.megabits) : "", one.verdict);
  }
  fmt::print(
      "\nThis is for a job {}. HEDDLE_OFI_PROVIDER and HEDDLE_NET choose others; HEDDLE_OFI_LIBRARY another libfabric.\n",
      one_host ? "on this host alone (HEDDLE_SHM=0)" : "on several hosts; --one-host shows it for one");
  return found ? 0 : 1;
}

}  // namespace heddle::tool
