#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sys/bootstrap/process_mapping.hpp"

/// How a process learns who it is in its job and exchanges a few bytes with the others before any
/// transport exists. One interface, several launch protocols behind it (`backend.hpp`); which one is in
/// force is found in the environment by `bootstrap::init`.
///
/// Nothing here is fast and nothing here is needed after start but `abort`, `finalize` and `launcher_gone`.
namespace heddle::sys {

enum class BootstrapKind { none, singleton, pmi1, pmi2, pmix };

/// What `bootstrap::init` found out. Plain data; unchanged after init.
struct Bootstrap {
  int rank = 0;            ///< this process' rank in the job, 0 … size-1
  int size = 1;            ///< processes of the job
  int appnum = -1;         ///< which part of `mpiexec … : …` this is; -1: not known (no attribute then)
  int universe_size = -1;  ///< MPI_UNIVERSE_SIZE; -1: the launcher does not say
  int local_rank = 0;      ///< rank among the job's processes on this node
  int local_size = 1;      ///< the job's processes on this node
  int node = 0;            ///< index of this node in `mapping`
  bool singleton = true;   ///< started without a launcher
  bool spawned = false;    ///< started by MPI_Comm_spawn
  BootstrapKind kind = BootstrapKind::none;

  /// Names the job: equal in all its processes, different from every other job's on this machine. Letters,
  /// digits, '-' and '_' only (it may be part of a file name), at most 64 characters. Random under Heddle's own
  /// mpiexec and for singletons, derived from the launcher's name for the job elsewhere.
  std::string job_id;

  /// An empty memfd shared by all local processes of the job, inherited from Heddle's mpiexec; -1 elsewhere.
  /// It has no name and vanishes with the last process, so nothing is left whoever dies when, and no exchange is
  /// needed to find it: whoever comes first grows it (`posix_fallocate` grows, never shrinks) and peers meet in it
  /// through atomics. Freshly grown bytes read as zero. Close-on-exec. Only set when *all* processes of the job
  /// are on this node.
  int job_fd = -1;

  /// Cores that the job as a whole may use on this node, as the launcher counted them (affinity and cgroup quota);
  /// 0: not told, see topology.hpp.
  int node_cores = 0;

  /// Which node each rank is on, compressed; empty where launchers do not tell it cheaply (PMIx). `is_local` always knows.
  ProcessMapping mapping;
  std::vector<int> listed_local_ranks;  ///< ranks on this node, ascending, where `mapping` is empty; empty: this one alone

  /// Whether `other` is a rank on this node. O(blocks of the mapping) or O(log local_size).
  bool is_local(int other) const;

  /// Ranks on this node in ascending order; element `local_rank` is `rank`.
  std::vector<int> local_ranks() const;
};

namespace bootstrap {

/// Whether the environment has traces of a launcher that started this process. Any time, without a lock.
bool has_launcher() noexcept;

/// Finds the launcher in the environment, talks to it and fills `job`. May be called again after `finalize` in the
/// same process (sessions). False: `error` says the cause and the remedy in one or two lines, ready for the user.
/// A job environment whose server cannot be reached is such an error, never a singleton.
/// Calls of this namespace are thread-safe among each other unless noted; all may block on the launcher.
[[nodiscard]] bool init(Bootstrap& job, std::string& error);

/// Publishes `value` (any bytes, any length) under `key` for this process. Others see it after a `fence` that both
/// took part in. Keys: 1–40 characters, letters, digits, '-', '_', '.'.
[[nodiscard]] bool put(std::string_view key, std::string_view value, std::string& error);

/// A barrier over all processes of the job; makes every earlier `put` visible.
[[nodiscard]] bool fence(std::string& error);

/// Where a leaving process takes the values it put with it (PMIx): waits until all processes have called this, which they do once
/// they have fetched what they need. Elsewhere it does nothing. Nothing may have been put since the last fence.
[[nodiscard]] bool await_fetches(std::string& error);

/// What process `rank` has put under `key`; empty when it has put nothing. False only when the launcher failed.
[[nodiscard]] bool get(int rank, std::string_view key, std::optional<std::string>& value, std::string& error);

/// MPI_Publish_name and relatives; names live as long as the launcher's name server (Heddle's: the job).
[[nodiscard]] bool publish(std::string_view service, std::string_view port, std::string& error);
[[nodiscard]] bool lookup(std::string_view service, std::optional<std::string>& port, std::string& error);
[[nodiscard]] bool unpublish(std::string_view service, std::string& error);

/// Whether `init` may be called again before the process ends. `for_good` allows it too, but then no fence may follow, because a
/// launcher's server may count the fence before it has noticed that the others left and came back.
enum class Leaving { for_now, for_good };

/// Tells the launcher that this process leaves in order; from then on its exit is no error. Not collective. `for_now` postpones
/// that to the process's exit under launchers that cannot readmit a process; there `_exit` is an error meanwhile.
[[nodiscard]] bool finalize(Leaving leaving, std::string& error);

/// Passed to `abort` when this process has already printed the reason.
inline constexpr std::string_view said_already = "because of the fatal error above";

/// Ends the whole job with exit code `code`; `message` (may be empty, one line) is shown with the rank. Never returns.
/// Takes no lock: it may be called from any thread while another is inside one of the calls above.
[[noreturn]] void abort(int code, std::string_view message);

/// True once the launcher is gone, which means that the job is over: the caller should exit. One `poll` system call,
/// no lock, no blocking; always false for a singleton. For waiters that have been idle for a while.
bool launcher_gone() noexcept;

}  // namespace bootstrap
}  // namespace heddle::sys
