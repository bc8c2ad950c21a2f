#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sys/bootstrap/bootstrap.hpp"

namespace heddle::sys::bootstrap {

/// One launch protocol. `bootstrap.cpp` chooses one from the environment and serializes all calls but `abort`,
/// `launcher_gone` and the destructor. Every call that returns bool: false fills `error` for the user.
/// A new protocol is a subclass, a `try_*` factory below, and a line in `choose_backend`.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Connects and fills `job` (all fields it knows).
  virtual bool start(Bootstrap& job, std::string& error) = 0;
  virtual bool put(std::string_view key, std::string_view value, std::string& error) = 0;
  virtual bool fence(std::string& error) = 0;
  /// Nothing to wait for where values live as long as the job.
  virtual bool await_fetches(std::string&) { return true; }
  virtual bool get(int rank, std::string_view key, std::optional<std::string>& value, std::string& error) = 0;
  virtual bool publish(std::string_view service, std::string_view port, std::string& error) = 0;
  virtual bool lookup(std::string_view service, std::optional<std::string>& port, std::string& error) = 0;
  virtual bool unpublish(std::string_view service, std::string& error) = 0;
  virtual bool finalize(Leaving leaving, std::string& error) = 0;
  /// Tells the launcher to end the job; returns when that has been said (or cannot be). Any thread, no lock.
  virtual void abort(int code, std::string_view message) noexcept = 0;
  virtual bool launcher_gone() noexcept = 0;
};

/// The exit code of an abort with `code`: exit codes have 8 bits, and truncation must not turn a failure into a success.
inline int exit_code_of(int code) noexcept { return (code & 0xff) != 0 ? code & 0xff : 1; }

/// Prints who aborts, and waits a moment: launchers kill a job at once and drop output that has not reached them by then.
void announce_abort(int rank, int code, std::string_view message) noexcept;

/// Environment `PMI_FD`, `PMI_RANK`, `PMI_SIZE`: a connection inherited from the launcher that speaks PMI-1
/// (Heddle's mpiexec, Hydra, Flux; Slurm's --mpi=pmi2 too).
std::unique_ptr<Backend> make_pmi1();

/// The same variables, a server that speaks PMI-2 (Slurm's --mpi=pmi2).
std::unique_ptr<Backend> make_pmi2();

/// Environment `PMIX_NAMESPACE`: a PMIx server (prterun, Open MPI's mpirun, Slurm's --mpi=pmix). nullptr: Heddle was built
/// without PMIx' header.
std::unique_ptr<Backend> make_pmix();

/// No launcher: one process, its own key-value store.
std::unique_ptr<Backend> make_singleton();

}  // namespace heddle::sys::bootstrap
