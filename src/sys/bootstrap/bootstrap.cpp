#include "sys/bootstrap/bootstrap.hpp"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>

#include "sys/bootstrap/backend.hpp"
#include "sys/bootstrap/pmi1_wire.hpp"
#include "sys/params.hpp"

namespace heddle::sys {

std::vector<int> Bootstrap::local_ranks() const {
  if (!mapping.empty()) return mapping.ranks_on(node, size);
  return listed_local_ranks.empty() ? std::vector<int>(1, rank) : listed_local_ranks;
}

bool Bootstrap::is_local(int other) const {
  if (other == rank || size == local_size) return true;
  if (!mapping.empty()) return mapping.node_of(other) == node;
  return std::binary_search(listed_local_ranks.begin(), listed_local_ranks.end(), other);
}

namespace bootstrap {
namespace {

HEDDLE_PARAM_BOOL(alone, "HEDDLE_SINGLETON", 0,
                  "run as a single process even where a launcher seems to have started several");

enum Protocol { automatic, pmix, pmi2, pmi1 };
HEDDLE_PARAM_CHOICE(protocol, "HEDDLE_PMI",
                    "the protocol to speak with the launcher: pmix, pmi2, pmi1; auto: what its variables say",
                    "auto", "pmix", "pmi2", "pmi1");

std::mutex calls;  // one call at a time talks to the launcher

// Set by the first init and never freed: abort and launcher_gone use it without a lock until the process ends.
// Released by init, acquired by abort and launcher_gone.
std::atomic<Backend*> backend{nullptr};

bool is_set(const char* name) {
  const char* text = getenv(name);
  return text != nullptr && *text != '\0';
}

int number(const char* name, int otherwise) {
  const char* text = getenv(name);
  return text != nullptr ? parse_number(text).value_or(otherwise) : otherwise;
}

/// A launcher's traces without a server that we can talk to: N processes would each believe to be alone.
bool find_unreachable_launcher(std::string& error) {
  const auto lonely = [&](const std::string& who, const std::string& remedy) {
    error = who +
            " started this process as one of several, but offers no process-management interface that Heddle "
            "can use: " +
            remedy + ". To run it on its own on purpose, set HEDDLE_SINGLETON=1";
    return true;
  };
  // The script of an sbatch job sees SLURM_NTASKS and SLURM_PROCID=0 without being a task of a step.
  const int tasks = number("SLURM_STEP_NUM_TASKS", number("SLURM_NTASKS", 1));
  const bool in_step = is_set("SLURM_STEP_ID") || is_set("SLURM_STEPID") || number("SLURM_PROCID", 0) > 0;
  if (is_set("SLURM_PROCID") && tasks > 1 && in_step) return lonely("Slurm", "use `srun --mpi=pmi2`");
  if (is_set("PMIX_NAMESPACE") || is_set("PMIX_RANK"))
    return lonely("A PMIx launcher (prterun, srun --mpi=pmix, Open MPI's mpirun)",
                  "this Heddle was built without PMIx; use Heddle's `mpiexec` or `srun --mpi=pmi2`");
  if (number("OMPI_COMM_WORLD_SIZE", 1) > 1) return lonely("Open MPI's mpirun", "use Heddle's `mpiexec`");
  if (is_set("PALS_RANKID") && number("PALS_SPOOL_SIZE", 2) > 1) return lonely("PALS", "use `mpiexec --pmi=pmi1`");
  if (is_set("PMI_PORT")) return lonely("Hydra with -pmi-port", "start without that option");
  if (number("PMI_SIZE", 1) > 1) return lonely("A PMI launcher", "it must leave its connection open in PMI_FD");
  return false;
}

/// Whether the PMI connection really exists: programs that a rank starts inherit the variable, but not the socket.
bool has_pmi_connection() {
  struct stat info;
  const int fd = number("PMI_FD", -1);
  return fd >= 0 && fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode);
}

/// The innermost launcher, when one was started inside another: an open PMI connection is the nearest there can be, for
/// PMIx launchers close descriptors they do not know; otherwise PMIx; and a PMI_FD without its connection comes last,
/// for make_pmi1 to explain.
std::unique_ptr<Backend> choose_backend(std::string& error) {
  if (alone.value() != 0) return make_singleton();
  if (protocol.value() == Protocol::pmi1) return make_pmi1();
  if (protocol.value() == Protocol::pmi2) return make_pmi2();
  if (protocol.value() == Protocol::pmix) {
    if (auto backend = make_pmix()) return backend;
    error = "HEDDLE_PMI=pmix, but this Heddle was built without PMIx (pmix.h; Debian: libpmix-dev)";
    return nullptr;
  }
  // Slurm serves both, PMI-2 with more checks of its own. Another launcher inside a step inherits the variables, but
  // sets MPI_LOCALRANKID, which Slurm does not.
  if (has_pmi_connection())
    return is_set("PMI_JOBID") && is_set("SLURM_STEP_ID") && !is_set("MPI_LOCALRANKID") ? make_pmi2() : make_pmi1();
  if (is_set("PMIX_NAMESPACE") && is_set("PMIX_RANK"))
    if (auto backend = make_pmix()) return backend;
  if (is_set("PMI_FD")) return make_pmi1();
  if (find_unreachable_launcher(error)) return nullptr;
  return make_singleton();
}

bool not_started(std::string& error) {
  error = "bootstrap was not initialized";
  return false;
}

}  // namespace

bool has_launcher() noexcept {
  for (const char* name : {"PMI_RANK", "PMI_FD", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PALS_RANKID"})
    if (is_set(name)) return true;
  return false;
}

void announce_abort(int rank, int code, std::string_view message) noexcept {
  constexpr useconds_t time_for_the_launcher_to_read = 100'000;
  if (message != said_already)
    std::fprintf(stderr, "heddle: rank %d calls MPI_Abort with code %d%s%.*s\n", rank, code, message.empty() ? "" : ": ",
                 static_cast<int>(message.size()), message.data());
  std::fflush(stderr);
  usleep(time_for_the_launcher_to_read);
}

bool init(Bootstrap& job, std::string& error) {
  const std::lock_guard hold(calls);
  Backend* current = backend.load(std::memory_order_relaxed);  // written under the lock only
  if (current == nullptr) {
    std::unique_ptr<Backend> chosen = choose_backend(error);
    if (chosen == nullptr || !chosen->start(job, error)) return false;
    backend.store(chosen.release(), std::memory_order_release);
    return true;
  }
  return current->start(job, error);
}

bool put(std::string_view key, std::string_view value, std::string& error) {
  const std::lock_guard hold(calls);
  Backend* current = backend.load(std::memory_order_relaxed);
  return current != nullptr ? current->put(key, value, error) : not_started(error);
}

bool fence(std::string& error) {
  const std::lock_guard hold(calls);
  Backend* current = backend.load(std::memory_order_relaxed);
  return current != nullptr ? current->fence(error) : not_started(error);
}

bool await_fetches(std::string& error) {
  const std::lock_guard hold(calls);
  Backend* current = backend.load(std::memory_order_relaxed);
  return current != nullptr ? current->await_fetches(error) : not_started(error);
}

bool get(int rank, std::string_view key, std::optional<std::string>& value, std::string& error) {
  const std::lock_guard hold(calls);
  Backend* current = backend.load(std::memory_order_relaxed);
  value.reset();
  return current != nullptr ? current->get(rank, key, value, error) : not_started(error);
}

bool publish(std::string_view service, std::string_view port, std::string& error) {
  const std::lock_guard hold(calls);
  Backend* current = backend.load(std::memory_order_relaxed);
  return current != nullptr ? current->publish(service, port, error) : not_started(error);
}

bool lookup(std::string_view service, std::optional<std::string>& port, std::string& error) {
  const std::lock_guard hold(calls);
  Backend* current = backend.load(std::memory_order_relaxed);
  port.reset();
  return current != nullptr ? current->lookup(service, port, error) : not_started(error);
}

bool unpublish(std::string_view service, std::string& error) {
  const std::lock_guard hold(calls);
  Backend* current = backend.load(std::memory_order_relaxed);
  return current != nullptr ? current->unpublish(service, error) : not_started(error);
}

bool finalize(Leaving leaving, std::string& error) {
  const std::lock_guard hold(calls);
  Backend* current = backend.load(std::memory_order_relaxed);
  return current != nullptr ? current->finalize(leaving, error) : not_started(error);
}

void abort(int code, std::string_view message) {
  Backend* current = backend.load(std::memory_order_acquire);
  if (current == nullptr) current = make_singleton().release();
  // The user needs the program's last output now. Not fflush(nullptr): a thread that waits for input holds stdin's lock.
  std::fflush(stdout);
  current->abort(code, message);
  _exit(exit_code_of(code));
}

bool launcher_gone() noexcept {
  Backend* current = backend.load(std::memory_order_acquire);
  return current != nullptr && current->launcher_gone();
}

}  // namespace bootstrap
}  // namespace heddle::sys
