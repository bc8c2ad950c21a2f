// The loop, and what happens in it.
#include "launcher.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace heddle::mpiexec {

using namespace std::chrono_literals;

namespace {

bool ends_a_program(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

}  // namespace

/// False for a descriptor that cannot be waited for because it is always ready: a file.
bool Launcher::watch(int descriptor, unsigned events, Source source, int index) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = static_cast<std::uint64_t>(source) << 32 | static_cast<std::uint32_t>(index);
  if (epoll_ctl(poll_, EPOLL_CTL_ADD, descriptor, &event) == 0) return true;
  if (errno == EEXIST) return epoll_ctl(poll_, EPOLL_CTL_MOD, descriptor, &event) == 0;
  return errno != EPERM;
}

void Launcher::unwatch(int descriptor) { epoll_ctl(poll_, EPOLL_CTL_DEL, descriptor, nullptr); }

void Launcher::loop() {
  epoll_event events[64];
  while (running_ > 0) {
    flush_output();
    pump_input(input_is_file_);
    const bool more_input = input_is_file_ && input_->wants_source();
    const int ready = epoll_wait(poll_, events, 64, more_input ? 0 : milliseconds_to_next_deadline());
    for (int i = 0; i < ready; ++i) {
      const std::uint64_t tag = events[i].data.u64;
      on_event(static_cast<Source>(tag >> 32), static_cast<int>(static_cast<std::uint32_t>(tag)), events[i].events);
    }
    on_deadlines();
  }
}

int Launcher::milliseconds_to_next_deadline() const {
  Deadline next;
  for (const Deadline& deadline : {timeout_at_, kill_at_, give_up_at_, hint_at_})
    if (deadline && (!next || *deadline < *next)) next = deadline;
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 1'000'000'000));
}

void Launcher::on_event(Source source, int index, unsigned events) {
  switch (source) {
    case Source::signals:
      return on_signal();
    case Source::pmi:
      return on_pmi(index, events);
    case Source::output:
      return on_stream(index, false);
    case Source::error:
      return on_stream(index, true);
    case Source::input:
      return pump_input(true);
    case Source::input_sink:
      return pump_input(false);
    case Source::own_output:
    case Source::own_error:
      return;  // the loop flushes anyway
  }
}

void Launcher::on_signal() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD)
      reap();
    else
      forward(signal);
  }
}

void Launcher::forward(int signal) {
  if (ends_a_program(signal)) {
    if (passed_on_signal_ != 0 && !ending_) {
      end_job(128 + signal, fmt::format("a second signal (SIG{}): ending all ranks", sigabbrev_np(signal)));
      kill_everything();
      return;
    }
    passed_on_signal_ = signal;
    hint_at_ = Clock::now() + 2s;
  }
  if (ending_) return;
  signal_ranks(signal);
  if (signal == SIGTSTP) raise(SIGSTOP);  // the shell that stopped us sees us stopped; SIGCONT is passed on later
}

void Launcher::reap() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto found = rank_of_pid_.find(pid);
    if (found == rank_of_pid_.end()) continue;  // an orphan of a rank, or a child that could not exec
    const int rank = found->second;
    rank_of_pid_.erase(found);
    on_exit(rank, status);
  }
}

void Launcher::on_exit(int rank, int status) {
  Rank& it = ranks_[static_cast<std::size_t>(rank)];
  // Its last message (abort, finalize) decides how its end is judged.
  while (it.socket >= 0 && drain_pmi(rank)) {
  }
  it.running = false;
  it.status = status;
  --running_;
  guard_->set_group(rank, 0);
  if (WIFSIGNALED(status))
    judge_death(rank, WTERMSIG(status), WCOREDUMP(status));
  else
    judge_exit(rank, WEXITSTATUS(status));
  if (it.mpi == Rank::Mpi::started) --in_mpi_;
  it.mpi = Rank::Mpi::finished;
}

void Launcher::on_pmi(int rank, unsigned events) {
  Rank& it = ranks_[static_cast<std::size_t>(rank)];
  if (it.socket < 0) return;  // closed by an earlier event of the same batch
  if ((events & EPOLLOUT) != 0 && !it.unsent.empty()) {
    const std::string held = std::exchange(it.unsent, {});
    watch(it.socket, EPOLLIN, Source::pmi, rank);
    reply(rank, held);
  }
  if ((events & ~static_cast<unsigned>(EPOLLOUT)) != 0) drain_pmi(rank);
}

/// Reads once. True while there may be more.
bool Launcher::drain_pmi(int rank) {
  char chunk[16384];
  const ssize_t got = recv(ranks_[static_cast<std::size_t>(rank)].socket, chunk, sizeof chunk, MSG_DONTWAIT);
  if (got > 0) {
    pmi_->receive(rank, std::string_view(chunk, static_cast<std::size_t>(got)));
    return true;
  }
  if (got < 0 && errno == EINTR) return true;
  if (got < 0 && errno == EAGAIN) return false;
  close_pmi(rank);
  return false;
}

void Launcher::close_pmi(int rank) {
  Rank& it = ranks_[static_cast<std::size_t>(rank)];
  if (it.socket >= 0) close(it.socket);
  it.socket = -1;
  it.unsent.clear();
}

void Launcher::reply(int rank, std::string_view bytes) {
  Rank& it = ranks_[static_cast<std::size_t>(rank)];
  if (it.socket < 0) return;
  while (it.unsent.empty() && !bytes.empty()) {
    const ssize_t sent = send(it.socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0)
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    else if (errno == EAGAIN)
      break;
    else if (errno != EINTR)
      return;  // it is gone; its end of stream will be reported
  }
  if (bytes.empty()) return;
  it.unsent += bytes;
  watch(it.socket, EPOLLIN | EPOLLOUT, Source::pmi, rank);
}

void Launcher::on_stream(int rank, bool error) {
  Rank& it = ranks_[static_cast<std::size_t>(rank)];
  if (it.streams.empty()) return;
  Stream& stream = it.streams[error ? 1 : 0];
  Output& to = error ? error_ : output_;
  if (stream.descriptor < 0) return;
  char chunk[65536];
  const ssize_t got = read(stream.descriptor, chunk, sizeof chunk);
  if (got > 0)
    stream.labeller.take(std::string_view(chunk, static_cast<std::size_t>(got)), to);
  else if (got == 0 || (errno != EINTR && errno != EAGAIN))
    return close_stream(it, stream, to);
  if (to.full()) {
    unwatch(stream.descriptor);
    stream.held_back = true;
  }
}

void Launcher::close_stream(Rank&, Stream& stream, Output& to) {
  stream.labeller.end(to);
  close(stream.descriptor);
  stream.descriptor = -1;
}

void Launcher::flush_output() {
  const auto flush = [this](Output& to, bool& watched, Source source, std::size_t which) {
    to.write_some();
    if (to.pending() != watched) {
      watched = to.pending();
      if (!watched)
        unwatch(to.descriptor());
      else if (!watch(to.descriptor(), EPOLLOUT, source, 0))
        to.write_all(), watched = false;  // a file never blocks for long
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].streams.empty()) continue;
      Stream& stream = ranks_[rank].streams[which];
      if (stream.descriptor < 0) continue;
      if (to.gone()) {
        // As if the rank wrote to the closed output itself: its next write fails.
        close_stream(ranks_[rank], stream, to);
      } else if (stream.held_back && !to.full()) {
        stream.held_back = false;
        watch(stream.descriptor, EPOLLIN, which == 0 ? Source::output : Source::error, static_cast<int>(rank));
      }
    }
  };
  if (!options_.label_output) return error_.write_some();
  flush(output_, own_output_watched_, Source::own_output, 0);
  flush(error_, own_error_watched_, Source::own_error, 1);
}

void Launcher::pump_input(bool source_ready) {
  if (input_ == nullptr || input_->done()) return;
  input_->pump(source_ready);
  const bool wanted = input_->wants_source();
  if (wanted != input_watched_) {
    input_watched_ = wanted;
    if (!wanted)
      unwatch(STDIN_FILENO);
    else if (!watch(STDIN_FILENO, EPOLLIN, Source::input, 0))
      input_is_file_ = true;
  }
  for (const int sink : std::exchange(watched_sinks_, input_->waiting_sinks())) unwatch(sink);
  for (const int sink : watched_sinks_) watch(sink, EPOLLOUT, Source::input_sink, 0);
}

}  // namespace heddle::mpiexec
