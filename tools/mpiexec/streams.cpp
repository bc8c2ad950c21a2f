#include "streams.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

namespace heddle::mpiexec {

// A pipe that polls as writable takes a page at once; more could block.
bool Output::write_piece() {
  constexpr std::size_t page = 4096;
  const ssize_t sent = write(descriptor_, pending_.data(), std::min(pending_.size(), page));
  if (sent >= 0) {
    pending_.erase(0, static_cast<std::size_t>(sent));
    return true;
  }
  if (errno == EINTR || errno == EAGAIN) return true;
  gone_ = true;
  pending_.clear();
  return false;
}

void Output::write_some() {
  // The bound keeps one rank's flood from delaying everything else.
  for (int piece = 0; piece < 64 && pending(); ++piece) {
    pollfd ready{descriptor_, POLLOUT, 0};
    if (poll(&ready, 1, 0) != 1 || !write_piece()) return;
  }
}

void Output::write_all() {
  while (pending()) {
    pollfd ready{descriptor_, POLLOUT, 0};
    if (poll(&ready, 1, -1) < 0 && errno != EINTR) return;
    if (!write_piece()) return;
  }
}

void Labeller::take(std::string_view bytes, Output& to) {
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, newline);
    line_ += piece;
    if (newline == std::string_view::npos) {
      if (line_.size() >= longest_line) end(to);
      return;
    }
    line_ += '\n';
    to.add(label_ + line_);
    line_.clear();
    bytes.remove_prefix(newline + 1);
  }
}

void Labeller::end(Output& to) {
  if (line_.empty()) return;
  to.add(label_ + line_ + "\n");
  line_.clear();
}

InputRelay::InputRelay(std::vector<int> sinks) : is_terminal_(isatty(STDIN_FILENO) == 1) {
  for (const int sink : sinks) {
    fcntl(sink, F_SETFL, fcntl(sink, F_GETFL) | O_NONBLOCK);
    sinks_.push_back({sink, 0});
  }
}

InputRelay::~InputRelay() { close_all(); }

void InputRelay::close_all() {
  for (const Sink& sink : sinks_) close(sink.descriptor);
  sinks_.clear();
}

bool InputRelay::wants_source() const {
  if (done() || !buffer_.empty()) return false;
  // Reading a terminal from the background would stop the whole launcher.
  return !is_terminal_ || tcgetpgrp(STDIN_FILENO) == getpgrp();
}

std::vector<int> InputRelay::waiting_sinks() const {
  std::vector<int> waiting;
  for (const Sink& sink : sinks_)
    if (sink.sent < buffer_.size()) waiting.push_back(sink.descriptor);
  return waiting;
}

void InputRelay::pump(bool source_ready) {
  if (source_ready && wants_source()) {
    char chunk[65536];
    const ssize_t got = read(STDIN_FILENO, chunk, sizeof chunk);
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) close_all();
    if (got > 0) buffer_.assign(chunk, static_cast<std::size_t>(got));
    for (Sink& sink : sinks_) sink.sent = 0;
  }
  std::erase_if(sinks_, [this](Sink& sink) {
    while (sink.sent < buffer_.size()) {
      const ssize_t sent = write(sink.descriptor, buffer_.data() + sink.sent, buffer_.size() - sink.sent);
      if (sent >= 0) {
        sink.sent += static_cast<std::size_t>(sent);
      } else if (errno == EAGAIN) {
        return false;
      } else if (errno != EINTR) {
        close(sink.descriptor);  // this rank reads no more; the others do
        return true;
      }
    }
    return false;
  });
  if (waiting_sinks().empty()) buffer_.clear();
}

}  // namespace heddle::mpiexec
