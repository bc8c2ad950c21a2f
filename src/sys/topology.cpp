#include "sys/topology.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace heddle::sys {
namespace {

constexpr std::size_t longest_proc_text = 1 << 16;  // these files are a few hundred bytes; a limit all the same

/// The beginning of a small file, empty when it cannot be read.
std::string read_text(const std::string& path) {
  std::string text;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char chunk[4096];
  for (;;) {
    const ssize_t got = read(fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || text.size() > longest_proc_text) break;
    text.append(chunk, static_cast<std::size_t>(got));
  }
  close(fd);
  return text;
}

double least(double a, double b) {
  if (a <= 0) return b;
  if (b <= 0) return a;
  return std::min(a, b);
}

/// `cpu.max`: "200000 100000" or "max 100000".
double quota_v2(const std::string& group) {
  long long quota = 0, period = 0;
  if (std::sscanf(read_text(group + "/cpu.max").c_str(), "%lld %lld", &quota, &period) != 2) return 0;
  return quota > 0 && period > 0 ? static_cast<double>(quota) / static_cast<double>(period) : 0;
}

double quota_v1(const std::string& group) {
  const long long quota = std::atoll(read_text(group + "/cpu.cfs_quota_us").c_str());
  if (quota <= 0) return 0;
  const long long period = std::atoll(read_text(group + "/cpu.cfs_period_us").c_str());
  return period > 0 ? static_cast<double>(quota) / static_cast<double>(period) : 0;
}

/// The least quota of `path` and all groups above it, up to the mount point itself. Inside a container the path may be
/// the host's and not exist here: then only those parts of it that do exist count, and the mount point always does.
template <typename Quota>
double least_upwards(const std::string& mount, std::string path, Quota quota) {
  if (path.find("..") != std::string::npos) path.clear();
  double result = 0;
  for (;;) {
    while (!path.empty() && path.back() == '/') path.pop_back();
    result = least(result, quota(mount + path));
    if (path.empty()) return result;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

bool lists_cpu(std::string_view controllers) {
  while (!controllers.empty()) {
    const std::size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == "cpu") return true;
    if (comma == std::string_view::npos) return false;
    controllers.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace

void CoreSet::add(int core) {
  if (core < 0) return;
  const auto word = static_cast<std::size_t>(core) / 64;
  if (word >= words_.size()) words_.resize(word + 1);
  words_[word] |= std::uint64_t{1} << (core % 64);
}

void CoreSet::remove(int core) {
  if (contains(core)) words_[static_cast<std::size_t>(core) / 64] &= ~(std::uint64_t{1} << (core % 64));
}

bool CoreSet::contains(int core) const {
  const auto word = static_cast<std::size_t>(core) / 64;
  return core >= 0 && word < words_.size() && (words_[word] >> (core % 64) & 1) != 0;
}

int CoreSet::count() const {
  int total = 0;
  for (const std::uint64_t word : words_) total += std::popcount(word);
  return total;
}

std::vector<int> CoreSet::list() const {
  std::vector<int> cores;
  for (std::size_t word = 0; word < words_.size(); ++word)
    for (std::uint64_t bits = words_[word]; bits != 0; bits &= bits - 1)
      cores.push_back(static_cast<int>(word * 64) + std::countr_zero(bits));
  return cores;
}

std::string CoreSet::text() const {
  const std::vector<int> cores = list();
  std::string text;
  for (std::size_t first = 0; first < cores.size();) {
    std::size_t last = first;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(cores[first]);
    if (last > first) text += '-' + std::to_string(cores[last]);
    first = last + 1;
  }
  return text;
}

CoreSet operator&(const CoreSet& a, const CoreSet& b) {
  CoreSet both;
  both.words_.resize(std::min(a.words_.size(), b.words_.size()));
  for (std::size_t word = 0; word < both.words_.size(); ++word) both.words_[word] = a.words_[word] & b.words_[word];
  return both;
}

CoreSet operator|(const CoreSet& a, const CoreSet& b) {
  CoreSet either = a;
  either.words_.resize(std::max(a.words_.size(), b.words_.size()));
  for (std::size_t word = 0; word < b.words_.size(); ++word) either.words_[word] |= b.words_[word];
  return either;
}

CoreSet affinity() {
  // cpu_set_t ends at 1024 cores; the kernel refuses a buffer smaller than its own mask with EINVAL.
  CoreSet cores;
  for (int capacity = 1024; capacity <= 1 << 20; capacity *= 2) {
    cpu_set_t* mask = CPU_ALLOC(static_cast<std::size_t>(capacity));
    if (mask == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(capacity));
    CPU_ZERO_S(bytes, mask);
    const bool known = sched_getaffinity(0, bytes, mask) == 0;
    const bool too_small = !known && errno == EINVAL;
    for (int core = 0; known && core < capacity; ++core)
      if (CPU_ISSET_S(static_cast<std::size_t>(core), bytes, mask)) cores.add(core);
    CPU_FREE(mask);
    if (!too_small) break;
  }
  return cores;
}

double cpu_quota(const std::string& groups, const std::string& root) {
  double quota = 0;
  const std::string text = read_text(groups);
  std::string_view rest = text;
  while (!rest.empty()) {  // lines `id:controllers:path`; id 0 without controllers is cgroup v2
    const std::size_t newline = rest.find('\n');
    const std::string_view line = rest.substr(0, newline);
    rest.remove_prefix(newline == std::string_view::npos ? rest.size() : newline + 1);
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (controllers.empty()) {
      quota = least(quota, least_upwards(root, path, quota_v2));
    } else if (lists_cpu(controllers)) {
      std::string mount = root + "/" + std::string(controllers);
      if (access(mount.c_str(), F_OK) != 0) mount = root + "/cpu";
      quota = least(quota, least_upwards(mount, path, quota_v1));
    }
  }
  return quota;
}

int usable_cores(const CoreSet& cores, double quota) {
  int usable = std::max(cores.count(), 1);
  if (quota > 0) usable = std::clamp(static_cast<int>(std::ceil(quota)), 1, usable);
  return usable;
}

const Topology& topology() {
  static const Topology instance = [] {
    Topology found{affinity(), cpu_quota(), 1};
    found.usable = usable_cores(found.cores, found.quota);
    return found;
  }();
  return instance;
}

NodeShare share_of_node(const Topology& mine, int online, int local_size, int told) {
  NodeShare share{};
  if (told > 0) {
    share.node_cores = told;
  } else if (mine.cores.count() < online && local_size > 1) {
    // Bound ranks: never more cores than the machine (or the group's quota) has.
    const long long all = static_cast<long long>(mine.cores.count()) * local_size;
    share.node_cores = static_cast<int>(std::min<long long>(all, online));
    if (mine.quota > 0) share.node_cores = std::min(share.node_cores, static_cast<int>(std::ceil(mine.quota)));
  } else {
    share.node_cores = mine.usable;
  }
  share.node_cores = std::max(share.node_cores, 1);
  share.cores_per_rank = std::clamp(share.node_cores / std::max(local_size, 1), 1, mine.usable);
  share.oversubscribed = local_size > share.node_cores;
  return share;
}

int online_cores() { return static_cast<int>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L)); }

}  // namespace heddle::sys
