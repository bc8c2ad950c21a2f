// Which records there are. A module of the library that exchanges records (point-to-point, the network's own control, later one-sided)
// lists its operations, and registers the list before the first record can come.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/holder.hpp"
#include "transport/record.hpp"

namespace heddle {

/// What a record can ask of a module.
struct RecordOperation {
  const char* name;           ///< for messages to the user
  std::size_t least_payload;  ///< bytes that `handle` relies on: a frame with a shorter record is refused
  bool over_network;          ///< false: between processes of one node only
  void (*handle)(Held& held, Record& record) noexcept;  ///< null: only the network itself acts on it
};

struct Module {
  std::uint8_t number;  ///< `RecordKind::module`, the same in all processes of a job
  const char* name;
  std::span<const RecordOperation> operations;  ///< by `RecordKind::operation`
};

inline constexpr std::size_t most_modules = 8;

namespace detail {
[[gnu::visibility("hidden")]] extern std::array<std::span<const RecordOperation>, most_modules> record_table;
}

/// Makes the module's records known; `module` and its operations stay where they are. Ends the process if another module has the number.
/// Not thread-safe: before there is a thread that could receive a record.
void register_module(const Module& module) noexcept;

/// nullptr: there is no such operation. Thread-safe.
inline const RecordOperation* find_operation(RecordKind kind) noexcept {
  if (kind.module >= most_modules) return nullptr;
  const std::span operations = detail::record_table[kind.module];
  return kind.operation < operations.size() ? &operations[kind.operation] : nullptr;
}

/// Acts on an arrived record, whose memory is valid during the call only. Ends the job when there is no such operation.
void handle_record(Held& held, Record& record) noexcept;

}  // namespace heddle
