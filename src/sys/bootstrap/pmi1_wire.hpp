#pragma once

#include <optional>
#include <string>
#include <string_view>

/// The PMI-1 wire format: one line per command, `cmd=NAME key=value key=value …`, values without spaces.
namespace heddle::sys::bootstrap {

/// The value of `key` in `line`, empty when the line does not have it. Keys are matched whole (`port` is not found in
/// `xport=1`), in any order, since servers differ in what they send and in which order.
std::optional<std::string_view> wire_value(std::string_view line, std::string_view key);

/// `wire_value` as a decimal number; empty when absent, not a number, or out of range.
std::optional<int> wire_number(std::string_view line, std::string_view key);

/// A decimal number that is the whole of `text`.
std::optional<int> parse_number(std::string_view text);

/// The blocking, line by line end of a connection to a PMI-1 server. Owns no descriptor. Not thread-safe,
/// except `send_line`, which may interleave with another thread's calls line by line (short lines only).
class Wire {
 public:
  void attach(int fd) { fd_ = fd; }

  /// Writes `line` (with its newline) completely. False: the connection is broken.
  bool send_line(std::string_view line) const;

  /// The next line without its newline. False: end of stream or error.
  bool read_line(std::string& line);

 private:
  int fd_ = -1;
  std::string buffer_;     ///< bytes read, not yet returned
  std::size_t start_ = 0;  ///< where the next line begins in it
};

}  // namespace heddle::sys::bootstrap
