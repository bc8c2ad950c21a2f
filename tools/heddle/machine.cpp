#include "machine.hpp"

#include <fmt/format.h>
#include <hwloc.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>

namespace heddle::tool {
namespace {

std::string megabytes(unsigned long long bytes) { return fmt::format("{} MiB", bytes >> 20); }

std::string plural(int count, const char* noun) { return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s"); }

/// The CPU quota of this process's cgroup in cores, or 0 without one.
double cgroup_quota() {
  // cgroup 2: the limits of every level above this process hold.
  std::ifstream self("/proc/self/cgroup");
  double tightest = 0;
  for (std::string line; std::getline(self, line);) {
    if (line.rfind("0::", 0) != 0) continue;
    for (std::string path = line.substr(3);; path.resize(path.rfind('/'))) {
      std::ifstream file("/sys/fs/cgroup" + path + "/cpu.max");
      double quota = 0, period = 0;
      if (file >> quota >> period && period > 0 && (tightest == 0 || quota / period < tightest))
        tightest = quota / period;  // "max 100000" is no number: no limit
      if (path.rfind('/') == std::string::npos) break;
    }
  }
  return tightest;
}

/// Empty when this process may read another one's memory (process_vm_readv), else why not. Tried on a child, as the
/// library tries it on its peers.
std::string why_no_single_copy() {
  int go[2];
  if (pipe(go) != 0) return std::strerror(errno);
  // The child reads the parent: that is the direction that the Yama security module forbids.
  const std::uint64_t secret = 0x6865646c65ull;
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    close(go[1]);
    char byte;
    if (read(go[0], &byte, 1) != 1) _exit(255);
    std::uint64_t copy = 0;
    iovec local{&copy, sizeof copy}, remote{const_cast<std::uint64_t*>(&secret), sizeof secret};
    const ssize_t n = process_vm_readv(parent, &local, 1, &remote, 1, 0);
    _exit(n == sizeof copy && copy == secret ? 0 : n < 0 && errno < 255 ? errno : 255);
  }
  std::string why;
  if (child < 0) {
    why = std::strerror(errno);
  } else {
    prctl(PR_SET_PTRACER, static_cast<unsigned long>(child), 0, 0, 0);  // as the library does for its peers
    if (write(go[1], "g", 1) != 1) why = std::strerror(errno);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status)) {
      why = "the attempt was killed (a seccomp filter?)";
    } else if (WEXITSTATUS(status) != 0) {
      why = WEXITSTATUS(status) == 255 ? "wrong data" : std::strerror(WEXITSTATUS(status));
    }
  }
  close(go[0]);
  close(go[1]);
  return why;
}

}  // namespace

Facts describe_topology() {
  Facts facts;
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return {{"topology", "hwloc cannot be initialised"}};
  const std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)> topology(raw, hwloc_topology_destroy);
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (hwloc_topology_load(raw) != 0) return {{"topology", "hwloc cannot load the topology"}};

  const auto count = [&](hwloc_obj_type_t type) { return hwloc_get_nbobjs_by_type(raw, type); };
  facts.emplace_back(
      "machine", fmt::format("{}, {}, {}, {}", plural(count(HWLOC_OBJ_PACKAGE), "package"),
                             plural(count(HWLOC_OBJ_NUMANODE), "memory node"), plural(count(HWLOC_OBJ_CORE), "core"),
                             plural(count(HWLOC_OBJ_PU), "hardware thread")));
  if (const char* model = hwloc_obj_get_info_by_name(hwloc_get_obj_by_type(raw, HWLOC_OBJ_PACKAGE, 0), "CPUModel"))
    facts.emplace_back("processor", model);
  std::string caches;
  for (const auto type : {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE})
    if (hwloc_obj_t cache = count(type) > 0 ? hwloc_get_obj_by_type(raw, type, 0) : nullptr)
      caches += fmt::format("{}L{} {} KiB x {}", caches.empty() ? "" : ", ", cache->attr->cache.depth,
                            cache->attr->cache.size >> 10, count(type));
  if (!caches.empty()) facts.emplace_back("caches", caches);

  const std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)> allowed(hwloc_bitmap_alloc(), hwloc_bitmap_free);
  if (hwloc_get_cpubind(raw, allowed.get(), HWLOC_CPUBIND_PROCESS) == 0) {
    char list[1024];
    hwloc_bitmap_list_snprintf(list, sizeof list, allowed.get());
    facts.emplace_back("may use",
                       fmt::format("{} ({})", plural(hwloc_bitmap_weight(allowed.get()), "hardware thread"), list));
  }
  if (const double quota = cgroup_quota(); quota > 0)
    facts.emplace_back("cgroup quota", fmt::format("{:.1f} cores", quota));
  return facts;
}

Facts describe_transports() {
  Facts facts{{"self", "messages inside a process: always there"}};
  struct statvfs shared {};
  if (statvfs("/dev/shm", &shared) == 0) {
    const unsigned long long page = shared.f_frsize;
    std::string text = fmt::format("processes of one node: /dev/shm has {} of {} free",
                                   megabytes(page * shared.f_bavail), megabytes(page * shared.f_blocks));
    if (access("/dev/shm", W_OK) != 0) text += ", but is not writable";
    facts.emplace_back("shm", text);
  } else {
    facts.emplace_back("shm", fmt::format("/dev/shm: {}", std::strerror(errno)));
  }
  const std::string why = why_no_single_copy();
  facts.emplace_back("shm, single copy",
                     why.empty() ? std::string("process_vm_readv works (CMA)")
                                 : fmt::format("process_vm_readv: {}; large messages take two copies", why));
  facts.emplace_back("tcp, ofi", "other nodes, over sockets of its own or libfabric: see `heddle info network`");
  return facts;
}

}  // namespace heddle::tool
