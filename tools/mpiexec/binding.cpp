#include "binding.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <tuple>

namespace heddle::mpiexec {
namespace {

int number_in(const std::string& file, int otherwise) {
  std::ifstream stream(file);
  int number = otherwise;
  return stream >> number ? number : otherwise;
}

/// Element `index` of `count` nearly equal consecutive shares of `units`.
sys::CoreSet share(const std::vector<sys::CoreSet>& units, int index, int count) {
  const auto all = static_cast<long long>(units.size());
  sys::CoreSet cores;
  for (long long unit = all * index / count; unit < all * (index + 1) / count; ++unit)
    cores = cores | units[static_cast<std::size_t>(unit)];
  return cores;
}

std::vector<sys::CoreSet> single_threads(const std::vector<sys::CoreSet>& physical) {
  std::vector<sys::CoreSet> threads;
  for (const sys::CoreSet& core : physical)
    for (const int thread : core.list()) threads.emplace_back().add(thread);
  return threads;
}

}  // namespace

std::vector<sys::CoreSet> physical_cores(const sys::CoreSet& mine, const std::string& cpus) {
  std::map<std::tuple<int, int>, sys::CoreSet> found;
  for (const int cpu : mine.list()) {
    const std::string folder = cpus + "/cpu" + std::to_string(cpu) + "/topology/";
    // Where the kernel does not say (some containers), every hardware thread counts as a core of its own.
    const int core = number_in(folder + "core_id", cpu);
    const int package = number_in(folder + "physical_package_id", 0);
    found[{package, core}].add(cpu);
  }
  std::vector<sys::CoreSet> cores;
  for (auto& [place, threads] : found) cores.push_back(std::move(threads));
  return cores;
}

std::vector<sys::CoreSet> assign_cores(Bind bind, int ranks, int usable, const std::vector<sys::CoreSet>& physical) {
  const std::vector<sys::CoreSet> threads = single_threads(physical);
  const bool enough = ranks <= usable && ranks <= static_cast<int>(threads.size());
  if (bind == Bind::none || !enough) return {};
  const bool whole_cores = ranks <= static_cast<int>(physical.size());
  const std::vector<sys::CoreSet>& units = whole_cores ? physical : threads;
  std::vector<sys::CoreSet> assigned;
  for (int rank = 0; rank < ranks; ++rank)
    assigned.push_back(bind == Bind::core ? units[static_cast<std::size_t>(rank)] : share(units, rank, ranks));
  return assigned;
}

}  // namespace heddle::mpiexec
