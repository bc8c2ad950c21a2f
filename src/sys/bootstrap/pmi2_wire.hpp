#pragma once

#include <optional>
#include <string>
#include <string_view>

/// The PMI-2 wire format: six characters with a decimal length, then `cmd=NAME;key=value;…`; a `;` in a value is
/// doubled.
namespace heddle::sys::bootstrap {

/// The value of `key` in a command, with its doubled semicolons undone; empty when the command does not have it.
std::optional<std::string> pmi2_value(std::string_view command, std::string_view key);

/// The blocking end of a connection to a PMI-2 server. Owns no descriptor. Not thread-safe, except `send`, which may
/// interleave with another thread's calls command by command (short commands only).
class Pmi2Wire {
 public:
  void attach(int fd) { fd_ = fd; }

  /// Sends one command, at most 999,999 bytes. False: too long, or the connection is broken.
  bool send(std::string_view command) const;

  /// Reads one command. False: end of stream, an error, or a length that is no number.
  bool receive(std::string& command);

 private:
  bool read_exactly(char* to, std::size_t bytes) const;
  int fd_ = -1;
};

}  // namespace heddle::sys::bootstrap
