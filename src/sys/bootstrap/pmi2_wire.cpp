#include "sys/bootstrap/pmi2_wire.hpp"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "sys/bootstrap/pmi1_wire.hpp"

namespace heddle::sys::bootstrap {
namespace {

constexpr std::size_t length_digits = 6;
constexpr std::size_t longest_command = 999'999;

}  // namespace

std::optional<std::string> pmi2_value(std::string_view command, std::string_view key) {
  for (std::size_t at = 0; at < command.size();) {
    // One field: up to a semicolon that is not doubled.
    std::string field;
    while (at < command.size()) {
      if (command[at] == ';') {
        if (at + 1 >= command.size() || command[at + 1] != ';') break;
        ++at;
      }
      field += command[at++];
    }
    ++at;
    if (field.size() > key.size() && field.starts_with(key) && field[key.size()] == '=')
      return field.substr(key.size() + 1);
  }
  return std::nullopt;
}

bool Pmi2Wire::send(std::string_view command) const {
  if (command.size() > longest_command) return false;
  char length[16];
  std::snprintf(length, sizeof length, "%6zu", command.size());
  std::string bytes(length, length_digits);
  bytes += command;
  for (std::string_view rest = bytes; !rest.empty();) {
    const ssize_t sent = ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool Pmi2Wire::read_exactly(char* to, std::size_t bytes) const {
  while (bytes > 0) {
    const ssize_t got = ::read(fd_, to, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool Pmi2Wire::receive(std::string& command) {
  char length[length_digits];
  if (!read_exactly(length, sizeof length)) return false;
  std::string_view digits(length, sizeof length);
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  const auto bytes = parse_number(digits.substr(0, digits.find(' ')));
  if (!bytes || *bytes < 0) return false;
  command.resize(static_cast<std::size_t>(*bytes));
  return read_exactly(command.data(), command.size());
}

}  // namespace heddle::sys::bootstrap
