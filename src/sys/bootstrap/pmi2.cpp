// The client side of PMI-2 as Slurm serves it (`srun --mpi=pmi2`), over the connection in PMI_FD: after one line that
// agrees on the version, commands `cmd=NAME;key=value;…` with their length in six characters before them.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "sys/bootstrap/encoding.hpp"
#include "sys/bootstrap/job_id.hpp"
#include "sys/bootstrap/kvs.hpp"
#include "sys/bootstrap/pmi1_wire.hpp"
#include "sys/bootstrap/pmi2_wire.hpp"

namespace heddle::sys::bootstrap {
namespace {

constexpr std::string_view fence_command = "kvs-fence";

class Pmi2 final : public KvsBackend {
 public:
  bool start(Bootstrap& job, std::string& error) override;
  bool fence(std::string& error) override;
  bool publish(std::string_view service, std::string_view port, std::string& error) override;
  bool lookup(std::string_view service, std::optional<std::string>& port, std::string& error) override;
  bool unpublish(std::string_view service, std::string& error) override;
  bool finalize(Leaving leaving, std::string& error) override;
  void abort(int code, std::string_view message) noexcept override;
  bool launcher_gone() noexcept override;

 private:
  bool agree_on_version(std::string& error);
  bool put_raw(std::string_view key, std::string_view value, std::string& error) override;
  bool get_raw(int rank, std::string_view key, std::optional<std::string>& value, std::string& error) override;
  /// The attribute `key` of the job; empty when the server does not have it.
  bool attribute(std::string_view key, std::optional<std::string>& value, std::string& error);

  /// Sends `cmd=NAME;` with `fields` and reads the answer, which must be `cmd=NAME-response;…`.
  bool ask(std::string_view name, std::string_view fields, std::string& reply, std::string& error);
  bool succeeded(const std::string& reply, const std::string& what, std::string& error) const;

  Pmi2Wire wire_;
  int fd_ = -1;
  pid_t process_ = getpid();  ///< a forked child inherits the connection, but is no rank
  bool started_ = false;
  Bootstrap known_;  ///< of the first start
  std::string job_;
  std::atomic<bool> finalized_{false};  // relaxed everywhere: a flag on its own, nothing is read through it
};

bool Pmi2::ask(std::string_view name, std::string_view fields, std::string& reply, std::string& error) {
  const std::string command = "cmd=" + std::string(name) + ";" + std::string(fields);
  if (!wire_.send(command)) return lost(fd_, error);
  if (name == fence_command && !await_others(fd_, error)) return false;
  if (!wire_.receive(reply)) return lost(fd_, error);
  if (pmi2_value(reply, "cmd") == std::string(name) + "-response") return true;
  error = "rank " + std::to_string(rank_) + ": the launcher answered \"" + reply.substr(0, 200) + "\" to \"" +
          command.substr(0, 200) + "\": it does not speak PMI-2; HEDDLE_PMI=pmi1 may help";
  return false;
}

bool Pmi2::succeeded(const std::string& reply, const std::string& what, std::string& error) const {
  if (pmi2_value(reply, "rc").value_or("0") == "0") return true;
  error = "rank " + std::to_string(rank_) + ": " + what + ": " + reply.substr(0, 300);
  return false;
}

bool Pmi2::agree_on_version(std::string& error) {
  Wire lines;
  lines.attach(fd_);
  std::string reply;
  if (!lines.send_line("cmd=init pmi_version=2 pmi_subversion=0\n") || !lines.read_line(reply)) return lost(fd_, error);
  if (wire_value(reply, "cmd") == "response_to_init" && wire_number(reply, "rc").value_or(-1) == 0) return true;
  error = "the launcher refuses PMI-2 (\"" + reply.substr(0, 200) + "\"); HEDDLE_PMI=pmi1 may help";
  return false;
}

bool Pmi2::start(Bootstrap& job, std::string& error) {
  finalized_.store(false, std::memory_order_relaxed);
  if (started_) {
    job = known_;
    return true;
  }
  fd_ = number_in_environment("PMI_FD").value_or(-1);
  rank_ = number_in_environment("PMI_RANK").value_or(number_in_environment("SLURM_PROCID").value_or(0));
  const int flags = fcntl(fd_, F_GETFD);
  if (flags >= 0) fcntl(fd_, F_SETFD, flags | FD_CLOEXEC);
  wire_.attach(fd_);
  if (!agree_on_version(error)) return false;
  const char* text = getenv("PMI_JOBID");
  job_ = text != nullptr ? text : "";
  std::string reply;
  if (!ask("fullinit", "pmijobid=" + job_ + ";pmirank=" + std::to_string(rank_) + ";threaded=FALSE;", reply, error) ||
      !succeeded(reply, "the launcher refuses this process", error))
    return false;
  const auto number = [&](std::string_view key) { return parse_number(pmi2_value(reply, key).value_or("")); };
  job = Bootstrap{};
  job.kind = BootstrapKind::pmi2;
  job.singleton = false;
  job.rank = rank_ = number("rank").value_or(rank_);
  job.size = number("size").value_or(-1);
  job.appnum = number("appnum").value_or(-1);
  job.spawned = pmi2_value(reply, "spawner-jobid").has_value();
  if (job.rank < 0 || job.size <= job.rank) {
    error = "the launcher does not say which process of the job this is: " + reply.substr(0, 300);
    return false;
  }
  if (const auto named = pmi2_value(reply, "pmijobid"); named && !named->empty()) job_ = *named;
  job.job_id = file_name_part(job_);
  key_limit_ = 63;      // PMI2_MAX_KEYLEN less the terminating zero
  value_limit_ = 1000;  // of PMI2_MAX_VALLEN, 1024
  std::optional<std::string> universe, mapping;
  if (!attribute("universeSize", universe, error) || !attribute("PMI_process_mapping", mapping, error)) return false;
  if (universe) job.universe_size = parse_number(*universe).value_or(-1);
  if (!find_local_ranks(job, mapping, error)) return false;
  known_ = job;
  started_ = true;
  return true;
}

bool Pmi2::attribute(std::string_view key, std::optional<std::string>& value, std::string& error) {
  std::string reply;
  value.reset();
  if (!ask("info-getjobattr", "key=" + std::string(key) + ";", reply, error)) return false;
  if (pmi2_value(reply, "found") == "TRUE") value = pmi2_value(reply, "value");
  return true;
}

bool Pmi2::put_raw(std::string_view key, std::string_view value, std::string& error) {
  std::string reply;
  return ask("kvs-put", "key=" + std::string(key) + ";value=" + std::string(value) + ";", reply, error) &&
         succeeded(reply, "the launcher refused to store \"" + std::string(key) + "\"", error);
}

bool Pmi2::get_raw(int rank, std::string_view key, std::optional<std::string>& value, std::string& error) {
  std::string reply;
  value.reset();
  if (!ask("kvs-get", "jobid=" + job_ + ";srcid=" + std::to_string(rank) + ";key=" + std::string(key) + ";", reply,
           error))
    return false;
  if (pmi2_value(reply, "found") == "TRUE") value = pmi2_value(reply, "value");
  return true;
}

bool Pmi2::fence(std::string& error) {
  std::string reply;
  return ask(fence_command, "", reply, error) && succeeded(reply, "the fence failed", error);
}

bool Pmi2::publish(std::string_view service, std::string_view port, std::string& error) {
  std::optional<std::string> known;
  if (!lookup(service, known, error)) return false;
  if (known) {  // Slurm overwrites
    error = "the service name \"" + std::string(service) + "\" is published already";
    return false;
  }
  std::string reply;
  return ask("name-publish", "name=" + encode_percent(service) + ";port=" + encode_percent(port) + ";", reply, error) &&
         succeeded(reply, "the service name \"" + std::string(service) + "\" cannot be published", error);
}

bool Pmi2::lookup(std::string_view service, std::optional<std::string>& port, std::string& error) {
  std::string reply;
  port.reset();
  if (!ask("name-lookup", "name=" + encode_percent(service) + ";", reply, error)) return false;
  const auto found = pmi2_value(reply, "value") ? pmi2_value(reply, "value") : pmi2_value(reply, "port");
  if (pmi2_value(reply, "rc").value_or("0") == "0" && found && !found->empty()) port = decode_percent(*found);
  return true;
}

bool Pmi2::unpublish(std::string_view service, std::string& error) {
  std::optional<std::string> known;
  if (!lookup(service, known, error)) return false;
  if (!known) {
    error = "the service name \"" + std::string(service) + "\" is not published";
    return false;
  }
  std::string reply;
  return ask("name-unpublish", "name=" + encode_percent(service) + ";", reply, error) &&
         succeeded(reply, "the service name \"" + std::string(service) + "\" cannot be withdrawn", error);
}

// As with PMI-1, the server hangs up after `finalize`, and a session may start again before the process ends.
bool Pmi2::finalize(Leaving, std::string&) {
  finalized_.store(true, std::memory_order_relaxed);
  static Pmi2* only = this;  // a process has one launcher
  [[maybe_unused]] static const int registered = std::atexit([] {
    if (only->process_ != getpid() || !only->finalized_.load(std::memory_order_relaxed)) return;
    std::string reply, ignored;
    only->ask("finalize", "", reply, ignored);
  });
  return true;
}

void Pmi2::abort(int code, std::string_view message) noexcept {
  announce_abort(rank_, code, message);
  // One short command in one system call: it cannot be torn apart by what another thread is sending.
  wire_.send("cmd=abort;isworld=TRUE;msg=MPI_Abort;");
}

bool Pmi2::launcher_gone() noexcept {
  if (finalized_.load(std::memory_order_relaxed)) return false;  // a server may hang up after finalize
  pollfd poll_fd{fd_, POLLRDHUP, 0};
  return ::poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)) != 0;
}

}  // namespace

std::unique_ptr<Backend> make_pmi2() { return std::make_unique<Pmi2>(); }

}  // namespace heddle::sys::bootstrap
