#include "mpi/hardware.hpp"

#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>

namespace heddle::mpi {
namespace {

using Cpus = std::set<int>;

/// Reads a kernel list such as "0-3,8". Empty when the file is not there.
Cpus read_list(const std::string& path) {
  Cpus cpus;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  if (!file) return cpus;
  int first = 0;
  while (std::fscanf(file.get(), "%d", &first) == 1) {
    int last = first;
    int separator = std::fgetc(file.get());
    if (separator == '-') {
      if (std::fscanf(file.get(), "%d", &last) != 1) break;
      separator = std::fgetc(file.get());
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.insert(cpu);
    if (separator != ',') break;
  }
  return cpus;
}

/// The CPUs that this process may run on, on machines of any size.
Cpus allowed_cpus() {
  Cpus cpus;
  for (int size = 1024; size <= 1 << 20; size *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(static_cast<std::size_t>(size)),
                                                              [](cpu_set_t* s) { CPU_FREE(s); });
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(size));
    if (!set || sched_getaffinity(0, bytes, set.get()) != 0) continue;
    for (int cpu = 0; cpu < size; ++cpu)
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set.get())) cpus.insert(cpu);
    break;
  }
  return cpus;
}

bool contains(const Cpus& all, const Cpus& some) {
  for (int cpu : some)
    if (!all.count(cpu)) return false;
  return !some.empty();
}

}  // namespace

std::vector<HardwareType> hardware_types() {
  std::vector<HardwareType> types;
  const Cpus mine = allowed_cpus();
  if (mine.empty()) return types;
  const std::string cpu = "/sys/devices/system/cpu/cpu" + std::to_string(*mine.begin());

  types.push_back({"Machine", true, 0});
  auto add = [&](const std::string& name, const Cpus& item) {
    if (!item.empty()) types.push_back({name, contains(item, mine), *item.begin()});
  };
  add("Package", read_list(cpu + "/topology/package_cpus_list"));
  for (const int online : read_list("/sys/devices/system/node/online")) {
    const Cpus node = read_list("/sys/devices/system/node/node" + std::to_string(online) + "/cpulist");
    if (!node.count(*mine.begin())) continue;
    add("NUMANode", node);
    break;
  }
  for (int level = 3; level >= 1; --level)
    for (int index = 0; index < 8; ++index) {  // cache/index*: a handful on every machine
      const std::string cache = cpu + "/cache/index" + std::to_string(index);
      const Cpus number = read_list(cache + "/level");
      if (number.empty()) break;
      const Cpus shared = read_list(cache + "/shared_cpu_list");
      if (*number.begin() != level || shared.empty()) continue;
      add("L" + std::to_string(level) + "Cache", shared);
      break;
    }
  add("Core", read_list(cpu + "/topology/core_cpus_list"));
  add("PU", {*mine.begin()});
  return types;
}

}  // namespace heddle::mpi
