// The client side of PMI-1, over the connection that the launcher left open in PMI_FD.
//
// Under Heddle's own mpiexec (recognized by HEDDLE_JOB) everything that the handshake would ask for is in the
// environment already, and commands that need no answer say `quiet=1`: start and stop are then one write each.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "sys/bootstrap/encoding.hpp"
#include "sys/bootstrap/job_id.hpp"
#include "sys/bootstrap/kvs.hpp"
#include "sys/bootstrap/patience.hpp"
#include "sys/bootstrap/pmi1_wire.hpp"

namespace heddle::sys::bootstrap {
namespace {

constexpr std::size_t own_value_limit = 16384;  // what Heddle's mpiexec takes in one line

/// The field `key` of HEDDLE_JOB, `key=value,key=value,…`.
std::optional<std::string_view> job_field(std::string_view fields, std::string_view key) {
  while (!fields.empty()) {
    const std::size_t comma = fields.find(',');
    const std::string_view field = fields.substr(0, comma);
    if (field.size() > key.size() && field.starts_with(key) && field[key.size()] == '=')
      return field.substr(key.size() + 1);
    if (comma == std::string_view::npos) break;
    fields.remove_prefix(comma + 1);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> inode_of(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(info.st_ino);
}

/// True when field `key` of HEDDLE_JOB holds the inode behind `fd`. A process may have inherited the variable but not
/// the descriptor (a child of a rank, another launcher in between): then the number belongs to something else.
bool is_what_the_launcher_opened(std::string_view fields, std::string_view key, int fd) {
  const auto text = job_field(fields, key);
  const auto inode = inode_of(fd);
  if (!text || !inode) return false;
  std::uint64_t expected = 0;
  const auto [end, failure] = std::from_chars(text->data(), text->data() + text->size(), expected);
  return failure == std::errc{} && end == text->data() + text->size() && expected == *inode;
}

bool same_number(std::string_view fields, std::string_view key, int value) {
  const auto text = job_field(fields, key);
  return text && parse_number(*text) == value;
}

void close_on_exec(int fd) {
  const int flags = fcntl(fd, F_GETFD);
  if (flags >= 0) fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

class Pmi1 final : public KvsBackend {
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
  bool connect(Bootstrap& job, std::string& error);
  bool start_under_own_launcher(Bootstrap& job, std::string& error);
  bool start_with_handshake(Bootstrap& job, std::string& error);

  /// Sends `line` and reads the answer, which must be `cmd=expected …`.
  bool ask(std::string_view line, std::string_view expected, std::string& reply, std::string& error);
  /// Its second half.
  bool hear(std::string_view line, std::string_view expected, std::string& reply, std::string& error);
  bool put_raw(std::string_view key, std::string_view value, std::string& error) override;
  bool get_raw(int rank, std::string_view key, std::optional<std::string>& value, std::string& error) override;
  bool inherited_only(std::string& error) const;

  int fd_ = -1;
  pid_t process_ = getpid();  ///< a forked child inherits the connection, but is no rank
  Bootstrap known_;           ///< of the first start
  bool own_launcher_ = false;
  std::atomic<bool> finalized_{false};  // relaxed everywhere: a flag on its own, nothing is read through it
  Wire wire_;
  std::string kvs_;
};

bool Pmi1::inherited_only(std::string& error) const {
  error = "the environment says that this is rank " + std::to_string(rank_) + " of an MPI job, but descriptor " +
          std::to_string(fd_) +
          " is not a connection to its launcher. A program started by a rank inherits the variables only: start it "
          "with `env -u PMI_FD -u PMI_RANK -u PMI_SIZE …` to run it on its own";
  return false;
}

bool Pmi1::ask(std::string_view line, std::string_view expected, std::string& reply, std::string& error) {
  return wire_.send_line(line) ? hear(line, expected, reply, error) : lost(fd_, error);
}

bool Pmi1::hear(std::string_view line, std::string_view expected, std::string& reply, std::string& error) {
  if (!wire_.read_line(reply)) return lost(fd_, error);
  if (wire_value(reply, "cmd") == expected) return true;
  error = "rank " + std::to_string(rank_) + ": the launcher answered \"" + reply.substr(0, 200) + "\" to \"" +
          std::string(line.substr(0, line.find('\n'))).substr(0, 200) + "\": it does not speak PMI-1";
  return false;
}

bool Pmi1::connect(Bootstrap& job, std::string& error) {
  const auto fd = number_in_environment("PMI_FD");
  const auto rank = number_in_environment("PMI_RANK");
  const auto size = number_in_environment("PMI_SIZE");
  if (!fd || !rank || !size || *fd < 0 || *rank < 0 || *size <= *rank) {
    error =
        "PMI_FD, PMI_RANK and PMI_SIZE do not describe a process of a job (three numbers, rank < size). Start with "
        "mpiexec, or unset all three to run a single process";
    return false;
  }
  fd_ = *fd;
  rank_ = *rank;
  struct stat info;
  if (fstat(fd_, &info) != 0 || !S_ISSOCK(info.st_mode)) return inherited_only(error);
  close_on_exec(fd_);
  wire_.attach(fd_);
  job = Bootstrap{};
  job.kind = BootstrapKind::pmi1;
  job.singleton = false;
  job.rank = *rank;
  job.size = *size;
  const char* spawned = getenv("PMI_SPAWNED");
  job.spawned = spawned != nullptr && *spawned != '\0' && std::strcmp(spawned, "0") != 0;
  return true;
}

bool Pmi1::start(Bootstrap& job, std::string& error) {
  finalized_.store(false, std::memory_order_relaxed);
  if (!kvs_.empty() && !own_launcher_) {
    job = known_;
    return true;
  }
  if (!connect(job, error)) return false;
  const char* fields = getenv("HEDDLE_JOB");
  own_launcher_ = fields != nullptr && is_what_the_launcher_opened(fields, "sock", fd_);
  // The variables of a Heddle job, all as its launcher set them, but another descriptor under the number: a program
  // started by a rank. To talk to whatever is there could hang or corrupt it. (A different launcher inside a Heddle
  // job changes at least one of the three.)
  if (fields != nullptr && !own_launcher_ && same_number(fields, "pmifd", fd_) && same_number(fields, "rank", rank_) &&
      same_number(fields, "size", job.size))
    return inherited_only(error);
  if (!(own_launcher_ ? start_under_own_launcher(job, error) : start_with_handshake(job, error))) return false;
  known_ = job;
  return true;
}

bool Pmi1::start_under_own_launcher(Bootstrap& job, std::string& error) {
  const std::string_view fields = getenv("HEDDLE_JOB");
  const auto number = [&](std::string_view key, int otherwise) {
    const auto text = job_field(fields, key);
    const auto value = text ? parse_number(*text) : std::nullopt;
    return value.value_or(otherwise);
  };
  job.job_id = file_name_part(job_field(fields, "id").value_or("0"));
  job.appnum = number("app", 0);
  job.universe_size = number("universe", job.size);
  job.node_cores = number("cores", 0);
  job.local_rank = number("lrank", job.rank);
  job.local_size = number("lsize", job.size);
  job.mapping.assign(std::vector<int>(1, 0));  // one node; the pattern of one rank repeats for all
  size_ = job.size;
  speaks_ = speaks_in_fences(job);
  const int memory = number("fd", -1);
  if (memory >= 0) {
    // Without it this process would look for its peers in another place than they do.
    if (!is_what_the_launcher_opened(fields, "mem", memory)) {
      error = "descriptor " + std::to_string(memory) +
              ", the memory that the ranks of this job share, has been closed "
              "between mpiexec and this program: by a script that closes or reuses descriptors it does not know?";
      return false;
    }
    close_on_exec(memory);
    job.job_fd = memory;
  }
  kvs_ = job.job_id;
  value_limit_ = own_value_limit;
  if (!wire_.send_line("cmd=init pmi_version=1 pmi_subversion=1 quiet=1\n")) return lost(fd_, error);
  return true;
}

bool Pmi1::start_with_handshake(Bootstrap& job, std::string& error) {
  std::string reply;
  if (!ask("cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init", reply, error)) return false;
  if (wire_number(reply, "rc").value_or(0) != 0) {
    error = "the launcher refuses PMI-1: \"" + reply.substr(0, 200) + "\". Under Slurm use `srun --mpi=pmi2`";
    return false;
  }
  if (!ask("cmd=get_maxes\n", "maxes", reply, error)) return false;
  // Both limits may count a terminating zero, and some servers cut whole lines at 1024 bytes.
  key_limit_ = static_cast<std::size_t>(std::clamp(wire_number(reply, "keylen_max").value_or(64), 32, 4096) - 1);
  value_limit_ = static_cast<std::size_t>(std::clamp(wire_number(reply, "vallen_max").value_or(256), 64, 1024));
  value_limit_ = value_limit_ > 800 ? 800 : value_limit_ - 1;
  if (!ask("cmd=get_universe_size\n", "universe_size", reply, error)) return false;
  job.universe_size = wire_number(reply, "size").value_or(-1);
  if (!ask("cmd=get_appnum\n", "appnum", reply, error)) return false;
  job.appnum = wire_number(reply, "appnum").value_or(-1);
  if (!ask("cmd=get_my_kvsname\n", "my_kvsname", reply, error)) return false;
  kvs_ = wire_value(reply, "kvsname").value_or("");
  job.job_id = file_name_part(kvs_);
  std::optional<std::string> mapping;
  return get_raw(job.rank, "PMI_process_mapping", mapping, error) && find_local_ranks(job, mapping, error);
}

bool Pmi1::put_raw(std::string_view key, std::string_view value, std::string& error) {
  std::string line = "cmd=put kvsname=" + kvs_ + " key=" + std::string(key) + " value=" + std::string(value);
  if (own_launcher_) {
    line += " quiet=1\n";
    return wire_.send_line(line) || lost(fd_, error);
  }
  line += '\n';
  std::string reply;
  if (!ask(line, "put_result", reply, error)) return false;
  if (wire_number(reply, "rc").value_or(0) == 0) return true;
  error = "the launcher refused to store \"" + std::string(key) + "\": " + reply.substr(0, 200);
  return false;
}

bool Pmi1::get_raw(int, std::string_view key, std::optional<std::string>& value, std::string& error) {
  std::string reply;
  value.reset();
  if (!ask("cmd=get kvsname=" + kvs_ + " key=" + std::string(key) + "\n", "get_result", reply, error)) return false;
  if (wire_number(reply, "rc").value_or(0) != 0) return true;
  // A value may itself hold spaces with some servers (the process mapping does not); ours never do.
  value = std::string(wire_value(reply, "value").value_or(""));
  return true;
}

bool Pmi1::fence(std::string& error) {
  std::string reply;
  if (!wire_.send_line("cmd=barrier_in\n")) return lost(fd_, error);
  return await_others(fd_, error) && hear("cmd=barrier_in\n", "barrier_out", reply, error);
}

bool Pmi1::publish(std::string_view service, std::string_view port, std::string& error) {
  std::optional<std::string> known;
  if (!own_launcher_ && !lookup(service, known, error)) return false;
  if (known) {  // some servers overwrite
    error = "the service name \"" + std::string(service) + "\" is published already";
    return false;
  }
  std::string reply;
  if (!ask("cmd=publish_name service=" + encode_percent(service) + " port=" + encode_percent(port) + "\n",
           "publish_result", reply, error))
    return false;
  if (wire_number(reply, "rc").value_or(0) == 0) return true;
  error = "the service name \"" + std::string(service) + "\" cannot be published (published already?): " + reply;
  return false;
}

bool Pmi1::lookup(std::string_view service, std::optional<std::string>& port, std::string& error) {
  std::string reply;
  port.reset();
  if (!ask("cmd=lookup_name service=" + encode_percent(service) + "\n", "lookup_result", reply, error)) return false;
  const auto found = wire_value(reply, "port");
  // hydra_nameserver answers with an empty one for what it does not know.
  if (wire_number(reply, "rc").value_or(0) == 0 && found && !found->empty()) port = decode_percent(*found);
  return true;
}

bool Pmi1::unpublish(std::string_view service, std::string& error) {
  std::optional<std::string> known;
  if (!own_launcher_ && !lookup(service, known, error)) return false;
  if (!own_launcher_ && !known) {  // some servers do not say
    error = "the service name \"" + std::string(service) + "\" is not published";
    return false;
  }
  std::string reply;
  if (!ask("cmd=unpublish_name service=" + encode_percent(service) + "\n", "unpublish_result", reply, error))
    return false;
  if (wire_number(reply, "rc").value_or(0) == 0) return true;
  error = "the service name \"" + std::string(service) + "\" cannot be withdrawn (not published?): " + reply;
  return false;
}

// Hydra hangs up after `finalize`, so there it has to wait until no session can start again. A process that never comes
// to its exit handlers (_exit) has done nothing wrong in Hydra's eyes.
bool Pmi1::finalize(Leaving, std::string& error) {
  finalized_.store(true, std::memory_order_relaxed);
  if (own_launcher_) return wire_.send_line("cmd=finalize quiet=1\n") || lost(fd_, error);
  static Pmi1* only = this;  // a process has one launcher
  [[maybe_unused]] static const int registered = std::atexit([] {
    if (only->process_ != getpid() || !only->finalized_.load(std::memory_order_relaxed)) return;
    std::string reply, ignored;
    only->ask("cmd=finalize\n", "finalize_ack", reply, ignored);  // Hydra ends the job when nobody reads its answer
  });
  return true;
}

void Pmi1::abort(int code, std::string_view message) noexcept {
  // One short line in one system call: it cannot be torn apart by a line another thread is sending.
  if (own_launcher_) {
    wire_.send_line("cmd=abort exitcode=" + std::to_string(code) +
                    " message=" + encode_percent(message.substr(0, 1000)) + "\n");
  } else {
    announce_abort(rank_, code, message);
    wire_.send_line("cmd=abort exitcode=" + std::to_string(exit_code_of(code)) + "\n");
  }
}

bool Pmi1::launcher_gone() noexcept {
  if (finalized_.load(std::memory_order_relaxed)) return false;  // a server may hang up after finalize
  pollfd poll_fd{fd_, POLLRDHUP, 0};
  return ::poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)) != 0;
}

}  // namespace

std::unique_ptr<Backend> make_pmi1() { return std::make_unique<Pmi1>(); }

}  // namespace heddle::sys::bootstrap
