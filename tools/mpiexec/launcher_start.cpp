// From options to running ranks.
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "binding.hpp"
#include "hosts.hpp"
#include "launcher.hpp"
#include "sys/bootstrap/job_id.hpp"

namespace heddle::mpiexec {
Launcher::Launcher(Options options) : options_(std::move(options)), host_(host_name()) {
  keep_standard_descriptors_open();
  job_id_ = sys::bootstrap::random_job_id();
  settings_.launcher = getpid();
  std::vector<int> appnums;
  for (std::size_t app = 0; app < options_.apps.size(); ++app)
    appnums.insert(appnums.end(), static_cast<std::size_t>(options_.apps[app].ranks), static_cast<int>(app));
  ranks_.resize(appnums.size());
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) ranks_[rank].app = appnums[rank];
  const int size = options_.ranks();
  pmi_ = std::make_unique<PmiServer>(
      job_id_, size, options_.universe_size.value_or(size), std::move(appnums), names_,
      PmiEvents{
          .reply = [this](int rank, std::string_view bytes) { reply(rank, bytes); },
          .initialized =
              [this](int rank) {
                if (ranks_[static_cast<std::size_t>(rank)].mpi != Rank::Mpi::started) ++in_mpi_;
                ranks_[static_cast<std::size_t>(rank)].mpi = Rank::Mpi::started;
                check_that_all_start_mpi();
              },
          .finalized =
              [this](int rank) {
                if (ranks_[static_cast<std::size_t>(rank)].mpi == Rank::Mpi::started) --in_mpi_;
                ranks_[static_cast<std::size_t>(rank)].mpi = Rank::Mpi::finished;
              },
          .aborted = [this](int rank, int code, const std::string& message) { on_abort(rank, code, message); },
          .broken =
              [this](int rank, const std::string& what) {
                end_job(1, fmt::format("{} sent {} over its PMI connection", name_of(rank), what));
              },
      });
}

Launcher::~Launcher() {
  for (Rank& rank : ranks_)
    if (rank.socket >= 0) close(rank.socket);
  for (const int descriptor : {poll_, signals_, job_memory_, rank_socket_})
    if (descriptor >= 0) close(descriptor);
}

int Launcher::run() {
  if (!find_programs()) return exit_code_;
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // subreaper: whatever the ranks leave behind becomes our child
  raise_descriptor_limit();
  choose_cores();
  warn_about_threads();
  create_job_memory();
  take_over_signals();
  guard_ = std::make_unique<Guard>(job_id_, options_.ranks());
  poll_ = epoll_create1(EPOLL_CLOEXEC);
  watch(signals_, EPOLLIN, Source::signals, 0);
  if (options_.timeout > 0)
    timeout_at_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(std::min(options_.timeout, 1e9)));
  start_ranks();
  loop();
  clean_up();
  return exit_code_;
}

/// Opens missing standard streams: otherwise our sockets would get their numbers.
void Launcher::keep_standard_descriptors_open() {
  for (int number = 0; number < 3; ++number)
    if (fcntl(number, F_GETFD) < 0 && errno == EBADF) open("/dev/null", number == 0 ? O_RDONLY : O_WRONLY);
}

/// Signals come through a descriptor. Those that whoever started us had ignored (nohup) stay ignored, for us and the
/// ranks, except SIGCHLD: without it the kernel would throw the ranks' exit codes away.
void Launcher::take_over_signals() {
  signal(SIGCHLD, SIG_DFL);
  sigset_t mask;
  sigemptyset(&mask);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT})
    sigaddset(&mask, number);
  signals_ = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
  sigaddset(&mask, SIGPIPE);  // a closed reader is an error code, not our death
  sigaddset(&mask, SIGTTOU);
  sigprocmask(SIG_BLOCK, &mask, &settings_.signal_mask);
}

void Launcher::raise_descriptor_limit() {
  getrlimit(RLIMIT_NOFILE, &settings_.descriptors);
  const rlim_t each = 1 + (options_.label_output ? 2 : 0) + (options_.stdin_to == "all" ? 1 : 0);
  const rlim_t needed = static_cast<rlim_t>(options_.ranks()) * each + 600;
  if (settings_.descriptors.rlim_cur >= needed) return;
  rlimit raised = settings_.descriptors;
  raised.rlim_cur = std::min(needed, raised.rlim_max);
  setrlimit(RLIMIT_NOFILE, &raised);
}

bool Launcher::find_programs() {
  for (App& app : options_.apps) {
    const Program program = find_program(app.command.front(), app.directory, app.search_path);
    if (program.path.empty()) {
      say(program.problem);
      exit_code_ = program.exit_code;
      return false;
    }
    programs_.push_back(program.path);
  }
  return true;
}

void Launcher::choose_cores() {
  const sys::CoreSet mine = sys::affinity();
  usable_cores_ = sys::usable_cores(mine, sys::cpu_quota());
  const int size = options_.ranks();
  if (options_.bind == Bind::none || (size == 1 && options_.bind != Bind::core) || size > usable_cores_) {
    if (options_.bind == Bind::core || options_.bind == Bind::even)
      if (size > usable_cores_ && !options_.quiet)
        say(fmt::format("note: {} ranks on {} cores: ranks are not bound", size, usable_cores_));
  } else {
    cores_ = assign_cores(options_.bind, size, usable_cores_, physical_cores(mine));
  }
  if (!options_.report_bindings) return;
  for (int rank = 0; rank < size; ++rank)
    say(fmt::format("rank {} on {}: cores {}{}", rank, host_,
                    cores_.empty() ? mine.text() : cores_[static_cast<std::size_t>(rank)].text(),
                    cores_.empty() ? " (not bound)" : ""));
}

void Launcher::warn_about_threads() {
  if (options_.quiet) return;
  const int size = options_.ranks();
  int least_cores = std::max(usable_cores_ / size, 1);
  for (const sys::CoreSet& cores : cores_) least_cores = std::min(least_cores, cores.count());
  for (const App& app : options_.apps) {
    const char* threads = getenv("OMP_NUM_THREADS");
    for (const auto& [name, value] : app.environment.values)
      if (name == "OMP_NUM_THREADS") threads = value.c_str();
    const int wanted = threads != nullptr ? std::atoi(threads) : 0;
    if (wanted <= 1 || wanted <= least_cores) continue;
    say(fmt::format(
        "warning: OMP_NUM_THREADS={} but each of the {} rank{} has {} core{} ({} usable in all): threads will "
        "wait for each other. Start fewer ranks or threads",
        wanted, size, size == 1 ? "" : "s", least_cores, least_cores == 1 ? "" : "s", usable_cores_));
    return;
  }
}

/// Whether the ranks are asked to keep their shared memory in /dev/shm (HEDDLE_SHM_BACKING, declared in sys/segment.cpp).
bool Launcher::wants_memory_in_dev_shm() const {
  constexpr const char* variable = "HEDDLE_SHM_BACKING";
  for (const App& app : options_.apps)
    for (const auto& [name, value] : app.environment.values)
      if (name == variable) return strcasecmp(value.c_str(), "file") == 0;
  const char* backing = getenv(variable);
  return backing != nullptr && strcasecmp(backing, "file") == 0;
}

/// Shared by the ranks of the job, found by inheritance, gone with the last of them: see Bootstrap::job_fd. It never has a
/// name, so nothing is left whoever is killed when. Without it the ranks find each other by way of the bootstrap.
/// Inherited descriptors get high numbers: scripts between us and the program use low ones (`exec 3>file`).
void Launcher::create_job_memory() {
  if (!wants_memory_in_dev_shm()) job_memory_ = memfd_create(("heddle-" + job_id_.substr(0, 12)).c_str(), MFD_CLOEXEC);
  if (job_memory_ < 0) job_memory_ = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  const int lowest = static_cast<int>(std::min<rlim_t>(settings_.descriptors.rlim_cur / 2, 500));
  const int high = job_memory_ < 0 ? -1 : fcntl(job_memory_, F_DUPFD_CLOEXEC, lowest);
  if (high >= 0) close(std::exchange(job_memory_, high));
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);  // reserves the number of the ranks' connections
  rank_socket_ = fcntl(nothing, F_DUPFD_CLOEXEC, std::max(job_memory_ + 1, lowest));
  close(nothing);
  struct stat info;
  if (job_memory_ >= 0 && fstat(job_memory_, &info) == 0) job_memory_inode_ = info.st_ino;
}

/// The variable by which the library recognizes us and learns what a handshake would tell it (pmi1.cpp reads it).
/// Inode numbers prove to a reader that the descriptors are still what we opened.
std::string Launcher::job_description(int rank, int descriptor) {
  struct stat info;
  const unsigned long long inode = fstat(descriptor, &info) == 0 ? info.st_ino : 0;
  const int size = options_.ranks();
  return fmt::format(
      "HEDDLE_JOB=id={},rank={},size={},pmifd={},sock={},fd={},mem={},app={},universe={},cores={},lrank={},"
      "lsize={}",
      job_id_, rank, size, rank_socket_, inode, job_memory_, job_memory_inode_,
      ranks_[static_cast<std::size_t>(rank)].app, options_.universe_size.value_or(size), usable_cores_, rank, size);
}

/// Where rank `rank` reads from: a pipe or /dev/null, -1 for our own input as it is; empty when descriptors are out.
std::optional<int> Launcher::stdin_of(int rank, int& writing_end) {
  const bool all = options_.stdin_to == "all";
  const bool mine = all || options_.stdin_to == std::to_string(rank);
  // Our own input can be inherited as it is, unless it has several readers, or is a terminal: that serves only its
  // foreground process group, which is ours and not the rank's.
  if (mine && !all && isatty(STDIN_FILENO) != 1) return -1;
  if (!mine) {
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return nothing >= 0 ? std::optional(nothing) : std::nullopt;
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  writing_end = ends[1];
  return ends[0];
}

void Launcher::watch_streams(int rank, int output, int error) {
  Rank& it = ranks_[static_cast<std::size_t>(rank)];
  it.streams.push_back({output, Labeller(rank), false});
  it.streams.push_back({error, Labeller(rank), false});
  for (const int descriptor : {output, error}) fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  watch(output, EPOLLIN, Source::output, rank);
  watch(error, EPOLLIN, Source::error, rank);
}

bool Launcher::start_ranks() {
  int app = -1;
  std::vector<std::string> environment;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    if (ranks_[static_cast<std::size_t>(rank)].app != app) {
      app = ranks_[static_cast<std::size_t>(rank)].app;
      environment = make_environment(options_.apps[static_cast<std::size_t>(app)]);
      if (const std::string problem = preload_shared_heap(environment); !problem.empty() && !options_.quiet)
        say("warning: " + problem);
      const std::string size = std::to_string(ranks_.size());
      environment.push_back("PMI_SIZE=" + size);
      environment.push_back("MPI_LOCALNRANKS=" + size);
      environment.push_back("HEDDLE_JOB_ID=" + job_id_);
    }
    if (!start_rank(rank, environment)) return false;
  }
  if (!input_pipes_.empty()) input_ = std::make_unique<InputRelay>(input_pipes_);
  return true;
}

bool Launcher::start_rank(int rank, const std::vector<std::string>& environment) {
  Rank& it = ranks_[static_cast<std::size_t>(rank)];
  const App& app = options_.apps[static_cast<std::size_t>(it.app)];
  std::string path = programs_[static_cast<std::size_t>(it.app)];

  int pair[2] = {-1, -1}, output[2] = {-1, -1}, error[2] = {-1, -1}, writing_end = -1;
  const bool connected = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0;
  const bool labelled = !options_.label_output || (pipe2(output, O_CLOEXEC) == 0 && pipe2(error, O_CLOEXEC) == 0);
  const std::optional<int> input = stdin_of(rank, writing_end);
  if (!connected || !labelled || !input) {
    end_job(1, fmt::format("cannot start rank {} of {}: {}. Raise the limit on open files (ulimit -n)", rank,
                           ranks_.size(), strerror(errno)));
    return false;
  }

  const std::string own[] = {fmt::format("PMI_RANK={}", rank), fmt::format("PMI_FD={}", rank_socket_),
                             fmt::format("MPI_LOCALRANKID={}", rank), job_description(rank, pair[1])};
  ProcessPlan plan;
  plan.path = path.c_str();
  for (const std::string& word : app.command) plan.arguments.push_back(const_cast<char*>(word.c_str()));
  plan.arguments.push_back(nullptr);
  // Ours first: getenv finds the first of two.
  for (const std::string& variable : own) plan.environment.push_back(const_cast<char*>(variable.c_str()));
  for (const std::string& variable : environment) plan.environment.push_back(const_cast<char*>(variable.c_str()));
  plan.environment.push_back(nullptr);
  plan.directory = app.directory.empty() ? nullptr : app.directory.c_str();
  plan.standard[0] = *input;
  plan.standard[1] = output[1];
  plan.standard[2] = error[1];
  plan.keep = {{pair[1], rank_socket_}};
  if (job_memory_ >= 0) plan.keep.push_back({job_memory_, job_memory_});
  plan.cores = cores_.empty() ? nullptr : &cores_[static_cast<std::size_t>(rank)];

  SpawnFailure failure;
  it.pid = spawn(plan, settings_, failure);
  if (failure.step == SpawnFailure::Step::exec && failure.error == ENOEXEC && is_shell_text(path)) {
    // As shells and execvp do.
    std::string shell = "/bin/sh";
    plan.arguments.insert(plan.arguments.begin(), shell.data());
    plan.arguments[1] = path.data();
    plan.path = shell.c_str();
    it.pid = spawn(plan, settings_, failure);
  }
  for (const int descriptor : {pair[1], output[1], error[1], *input})
    if (descriptor >= 0) close(descriptor);
  if (failure.step != SpawnFailure::Step::none) {
    for (const int descriptor : {pair[0], output[0], error[0], writing_end})
      if (descriptor >= 0) close(descriptor);
    int code = 1;
    const std::string why = explain(failure, app, path, code);
    end_job(code, fmt::format("rank {}: {}", rank, why));
    return false;
  }
  it.running = true;
  ++running_;
  rank_of_pid_[it.pid] = rank;
  guard_->set_group(rank, it.pid);
  it.socket = pair[0];
  watch(it.socket, EPOLLIN, Source::pmi, rank);
  if (options_.label_output) watch_streams(rank, output[0], error[0]);
  if (writing_end >= 0) input_pipes_.push_back(writing_end);
  return true;
}

}  // namespace heddle::mpiexec
