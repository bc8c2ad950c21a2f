#include "network.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "sys/mistakes.hpp"
#include "transport/host_address.hpp"
#include "transport/net/wires.hpp"
#include "transport/ofi/library.hpp"
#include "transport/tcp/address.hpp"
#include "transport/tcp/context.hpp"
#include "transport/tcp/factory.hpp"

namespace heddle::tool {
namespace {

/// The paths to a host with these addresses, whose interfaces are assumed to be as fast as ours. False: not an address.
bool find_paths(const std::vector<std::string>& to, std::vector<tcp::Path>& paths) {
  tcp::Name name;
  for (const std::string& text : to) {
    const std::string bytes = address_bytes(text);
    if (bytes.empty()) {
      fmt::print(stderr, "heddle info network: \"{}\" is no address; names are not resolved here\n", text);
      return false;
    }
    tcp::OfferedAddress one;
    if (bytes.size() == 4) one.address.bytes[10] = one.address.bytes[11] = 0xff;
    std::copy(bytes.begin(), bytes.end(), one.address.bytes.end() - static_cast<std::ptrdiff_t>(bytes.size()));
    one.megabits = std::numeric_limits<std::uint32_t>::max();
    name.addresses.push_back(one);
  }
  paths = tcp::paths_to(name, tcp::own_host(), tcp::route_of_kernel);
  return true;
}

}  // namespace

int print_network(bool one_host, bool json, const std::vector<std::string>& to) {
  sys::report_mistakes(false);
  net::Network network;
  std::vector<wire::Offered> offered;
  std::string problem;
  const bool found = net::choose({one_host}, network, &offered, problem);
  const wire::Choice& choice = network.choice;
  const bool own_sockets = network.factory == &tcp::factory;
  std::vector<tcp::Path> paths;
  if (found && !to.empty() && !find_paths(to, paths)) return 1;
  std::string ignored;
  const ofi::Library* library = ofi::load(ignored);
  const std::string version = library ? fmt::format("{}.{}", FI_MAJOR(library->version()), FI_MINOR(library->version())) : "";
  if (json) {
    nlohmann::ordered_json out;
    out["libfabric"] = {{"path", library ? library->path : ""}, {"version", version}};
    out["offered"] = nlohmann::ordered_json::array();
    for (const wire::Offered& one : offered)
      out["offered"].push_back({{"provider", one.provider}, {"interface", one.interface}, {"address", one.address}, {"megabits", one.megabits},
                                {"verdict", one.verdict}});
    if (found) out["chosen"] = {{"provider", choice.provider}, {"interface", choice.interface}, {"address", choice.address}, {"why", choice.why}};
    else out["problem"] = problem;
    for (const tcp::Path& path : paths)
      out["tried"].push_back({{"way", tcp::text_of(path.to, path.own, tcp::own_host())}, {"to", path.to.text()}, {"why", tcp::reason_of(path)}});
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
    for (const wire::Offered& one : offered)
      fmt::print("{:<20}{:<14}{:<28}{:<12}{}\n", one.provider, one.interface, one.address, one.megabits ? fmt::to_string(one.megabits) : "", one.verdict);
  }
  if (found && !own_sockets && !to.empty()) fmt::print("\n{} finds the way to other hosts by itself.\n", choice.provider);
  if (!paths.empty()) fmt::print("\nA rank of a host with these addresses is looked for in this order, until it answers:\n");
  for (const tcp::Path& path : paths)
    fmt::print("  {:<56}{}\n", tcp::text_of(path.to, path.own, tcp::own_host()), tcp::reason_of(path));
  fmt::print(
      "\nThis is for a job {}. HEDDLE_OFI_PROVIDER and HEDDLE_NET choose others; HEDDLE_OFI_LIBRARY another libfabric.\n",
      one_host ? "on this host alone (HEDDLE_SHM=0)" : "on several hosts; --one-host shows it for one");
  return found ? 0 : 1;
}

}  // namespace heddle::tool
