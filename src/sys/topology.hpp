#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Which cores this process may use, and whether its job has more processes than cores. A handful of system calls, no
/// hwloc and no walk through /sys: that would cost every rank of a node milliseconds at start.
namespace heddle::sys {

/// A set of core numbers as the kernel counts them. Value type.
class CoreSet {
 public:
  void add(int core);
  void remove(int core);
  bool contains(int core) const;
  int count() const;
  bool empty() const { return count() == 0; }
  std::vector<int> list() const;  ///< ascending

  /// As in /proc: `0-3,8`. Empty set: empty text.
  std::string text() const;

  friend CoreSet operator&(const CoreSet& a, const CoreSet& b);
  friend CoreSet operator|(const CoreSet& a, const CoreSet& b);
  friend bool operator==(const CoreSet& a, const CoreSet& b) { return a.list() == b.list(); }

 private:
  std::vector<std::uint64_t> words_;  ///< bit b of word w: core 64 w + b
};

/// Cores that the calling thread may be scheduled on (sched_getaffinity: cpusets are part of it). Of any size.
CoreSet affinity();

/// The cores' worth of CPU time that the control group allows (2.5: two and a half cores), the least of all enclosing groups;
/// 0: no limit. cgroup v2 `cpu.max` and v1 `cpu.cfs_quota_us`.
/// `groups` and `root` are for tests: normally /proc/self/cgroup and /sys/fs/cgroup.
double cpu_quota(const std::string& groups = "/proc/self/cgroup", const std::string& root = "/sys/fs/cgroup");

/// min(cores in `cores`, quota rounded up), at least 1.
int usable_cores(const CoreSet& cores, double quota);

/// The cores of this process, as they were at the first call. Thread-safe.
struct Topology {
  CoreSet cores;  ///< `affinity()` of the process' main thread at that time
  double quota;   ///< `cpu_quota()`
  int usable;     ///< `usable_cores`: how many threads can run at the same time
};
const Topology& topology();

/// How the processes of a job share this node's cores.
struct NodeShare {
  int node_cores;       ///< cores that all local processes have together
  int cores_per_rank;   ///< of those, what one process can count on, at least 1
  bool oversubscribed;  ///< more local processes than cores: waiting must give up the core early
};

/// `told` is Bootstrap::node_cores, as the launcher counted; 0: it did not. Then the share is estimated: a process whose mask is
/// smaller than the machine has been bound, and so have its peers, each to as many cores.
NodeShare share_of_node(const Topology& mine, int online_cores, int local_size, int told);

/// Cores of the machine that are switched on (sysconf), regardless of masks.
int online_cores();

}  // namespace heddle::sys
