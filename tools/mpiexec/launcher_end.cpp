// How a job ends: what counts as a failure, how it is reported, and that nothing stays behind.
#include <errno.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher.hpp"

namespace heddle::mpiexec {

using namespace std::chrono_literals;

namespace {

constexpr auto time_to_leave = 250ms;         // between SIGTERM and SIGKILL when a job fails
constexpr auto time_after_user_signal = 10s;  // for ranks that clean up on the user's SIGTERM after others have ended
constexpr auto time_to_die = 10s;             // after SIGKILL; only a process stuck in the kernel takes longer
constexpr auto time_for_leftovers = 500ms;    // for a pipeline's last process when all ranks have ended well

std::string signal_text(int signal) {
  const char* name = sigabbrev_np(signal);
  return fmt::format("signal {} (SIG{}, {})", signal, name != nullptr ? name : "?", strsignal(signal));
}

}  // namespace

std::string Launcher::name_of(int rank) const {
  const Rank& it = ranks_[static_cast<std::size_t>(rank)];
  return fmt::format("rank {} ({}, pid {}) on {}", rank,
                     options_.apps[static_cast<std::size_t>(it.app)].command.front(), it.pid, host_);
}

void Launcher::judge_exit(int rank, int code) {
  const Rank& it = ranks_[static_cast<std::size_t>(rank)];
  if (ending_) return;
  if (it.mpi == Rank::Mpi::started && passed_on_signal_ != 0) return leave_on_request(code);
  if (it.mpi == Rank::Mpi::started)
    return end_job(code != 0 ? code : 1,
                   fmt::format("{} exited with code {} after MPI_Init but without MPI_Finalize", name_of(rank), code));
  if (code != 0 && exit_code_ == 0) exit_code_ = code;
  if (it.mpi == Rank::Mpi::not_started) {
    never_in_mpi_ = rank;
    check_that_all_start_mpi();
  }
}

/// A rank that ends before MPI_Init leaves those that have called it, or will, waiting for it forever.
void Launcher::check_that_all_start_mpi() {
  if (never_in_mpi_ < 0 || in_mpi_ == 0 || ending_) return;
  const int code = WEXITSTATUS(ranks_[static_cast<std::size_t>(never_in_mpi_)].status);
  end_job(code != 0 ? code : 1,
          fmt::format("{} exited with code {} without calling MPI_Init, but other ranks have called "
                      "it and would wait for it forever",
                      name_of(never_in_mpi_), code));
}

void Launcher::judge_death(int rank, int signal, bool dumped) {
  if (ending_) return;
  if (signal == passed_on_signal_) return leave_on_request(128 + signal);
  end_job(128 + signal,
          fmt::format("{} was killed by {}{}", name_of(rank), signal_text(signal), dumped ? ", core dumped" : ""));
}

/// The user asked for it, so nothing is reported. Others may be writing a checkpoint: they get time.
void Launcher::leave_on_request(int code) {
  if (exit_code_ == 0) exit_code_ = code != 0 ? code : 128 + passed_on_signal_;
  if (!kill_at_) kill_at_ = Clock::now() + time_after_user_signal;
}

void Launcher::on_abort(int rank, int code, const std::string& message) {
  if (ending_) return;
  end_job((code & 0xff) != 0 ? code & 0xff : 1, fmt::format("{} called MPI_Abort with code {}{}{}", name_of(rank), code,
                                                            message.empty() ? "" : ": ", message));
}

/// Prints a message while ranks run. A stalled reader (a pager) must not keep the job from ending: what it does not take now is queued behind
/// the ranks' labelled lines, at the latest until the end.
void Launcher::tell(const std::string& text) {
  error_.add("mpiexec: " + text + "\n");
  error_.write_some();
}

void Launcher::end_job(int exit_code, const std::string& why) {
  if (ending_) return;
  ending_ = true;
  if (exit_code_ == 0) exit_code_ = exit_code;
  tell(why + (running_ > 0 ? "; ending the job" : ""));
  signal_ranks(SIGTERM);
  signal_ranks(SIGCONT);  // a stopped process would not notice
  kill_at_ = Clock::now() + time_to_leave;
  hint_at_.reset();
  timeout_at_.reset();
}

void Launcher::signal_ranks(int signal) {
  for (const Rank& rank : ranks_)
    if (rank.running && kill(-rank.pid, signal) != 0) kill(rank.pid, signal);
}

void Launcher::kill_everything() {
  ending_ = true;
  signal_ranks(SIGKILL);
  kill_at_.reset();
  give_up_at_ = Clock::now() + time_to_die;
}

void Launcher::on_deadlines() {
  const auto now = Clock::now();
  if (timeout_at_ && now >= *timeout_at_) on_timeout();
  if (kill_at_ && now >= *kill_at_) kill_everything();
  if (give_up_at_ && now >= *give_up_at_) {
    tell(fmt::format("{} cannot be killed: stuck in the kernel (a dead file system or device?)", list_running()));
    running_ = 0;
  }
  if (hint_at_ && now >= *hint_at_) {
    hint_at_.reset();
    if (running_ > 0 && !ending_ && !options_.quiet)
      tell(fmt::format("SIG{} was passed on, {} still running; once more to kill", sigabbrev_np(passed_on_signal_),
                       list_running()));
  }
}

void Launcher::on_timeout() {
  timeout_at_.reset();
  end_job(124,
          fmt::format("the job ran longer than {} s (--timeout), {} still running", options_.timeout, list_running()));
}

/// Abbreviates lists of ranks: "rank 0, 4-7 and 12 are".
std::string Launcher::list_running() const {
  sys::CoreSet running;  // a set of small numbers that can print itself
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (ranks_[rank].running) running.add(static_cast<int>(rank));
  return fmt::format("{} {}", running.count() == 1 ? "rank" : "ranks", running.text());
}

/// Nobody is left to pass signals on to. What remains is passing on output, for as long as its reader takes; the user may interrupt that.
void Launcher::stop_listening_to_signals() {
  signalfd_siginfo late;
  while (read(signals_, &late, sizeof late) > 0) {
  }
  sigset_t ours;
  sigemptyset(&ours);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT}) sigaddset(&ours, number);
  sigprocmask(SIG_UNBLOCK, &ours, nullptr);
}

/// All ranks have been collected. Ends the processes they left behind, then prints the rest of their output.
void Launcher::clean_up() {
  if (guard_) guard_->dismiss();
  const auto start = Clock::now();
  const auto grace = ending_ ? 0ms : std::chrono::milliseconds(time_for_leftovers);
  bool asked = false;
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  for (;;) {
    const pid_t pid = waitpid(-1, nullptr, WNOHANG);
    if (pid > 0) continue;
    if (pid < 0 && errno == ECHILD) break;
    const auto waited = Clock::now() - start;
    if (waited > grace * 2 + 5s) break;  // again, only a process stuck in the kernel
    if (waited >= grace * 2) {
      signal_children(SIGKILL, -1);
    } else if (waited >= grace && !asked) {
      asked = true;
      signal_children(SIGTERM, -1);
    }
    const timespec moment{0, 5'000'000};
    sigtimedwait(&child, nullptr, &moment);
  }
  stop_listening_to_signals();
  for (Rank& rank : ranks_) {
    for (std::size_t which = 0; which < rank.streams.size(); ++which) {
      Stream& stream = rank.streams[which];
      Output& to = which == 0 ? output_ : error_;
      char chunk[65536];
      for (ssize_t got; stream.descriptor >= 0 && (got = read(stream.descriptor, chunk, sizeof chunk)) != 0;) {
        if (got < 0 && errno != EINTR) break;
        if (got > 0) stream.labeller.take(std::string_view(chunk, static_cast<std::size_t>(got)), to);
        to.write_all();
      }
      if (stream.descriptor >= 0) close_stream(rank, stream, to);
    }
  }
  output_.write_all();
  error_.write_all();
  remove_names();
}

/// Ranks that do not share the job's memory give theirs a name while their peers open it (sys/segment.cpp). If they are killed meanwhile,
/// the launcher removes it.
void Launcher::remove_names() const {
  if (exit_code_ == 0) return;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    unlink(fmt::format("/dev/shm/heddle-{}-{}", job_id_, rank).c_str());
}

}  // namespace heddle::mpiexec
