#include "sys/bootstrap/pmi1_wire.hpp"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>

namespace heddle::sys::bootstrap {

std::optional<std::string_view> wire_value(std::string_view line, std::string_view key) {
  while (!line.empty()) {
    const std::size_t space = line.find(' ');
    const std::string_view word = line.substr(0, space);
    if (word.size() > key.size() && word.starts_with(key) && word[key.size()] == '=')
      return word.substr(key.size() + 1);
    if (space == std::string_view::npos) break;
    line.remove_prefix(space + 1);
  }
  return std::nullopt;
}

std::optional<int> parse_number(std::string_view text) {
  int number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<int> wire_number(std::string_view line, std::string_view key) {
  const auto text = wire_value(line, key);
  return text ? parse_number(*text) : std::nullopt;
}

bool Wire::send_line(std::string_view line) const {
  while (!line.empty()) {
    // A launcher that died must not kill us by SIGPIPE; one that gives us a pipe instead of a socket is served too.
    ssize_t sent = ::send(fd_, line.data(), line.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == ENOTSOCK) sent = ::write(fd_, line.data(), line.size());
    if (sent < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    line.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool Wire::read_line(std::string& line) {
  std::size_t searched = start_;
  for (;;) {
    const std::size_t newline = buffer_.find('\n', searched);
    if (newline != std::string::npos) {
      line.assign(buffer_, start_, newline - start_);
      start_ = newline + 1;
      if (start_ == buffer_.size()) {
        buffer_.clear();
        start_ = 0;
      }
      return true;
    }
    searched = buffer_.size();
    char chunk[4096];
    const ssize_t got = ::read(fd_, chunk, sizeof chunk);
    if (got > 0)
      buffer_.append(chunk, static_cast<std::size_t>(got));
    else if (got == 0 || errno != EINTR)
      return false;
  }
}

}  // namespace heddle::sys::bootstrap
