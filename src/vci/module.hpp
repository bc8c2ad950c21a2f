// What a module of protocols (point-to-point; later one-sided, partitioned) keeps in each VCI, and does in the VCI's progress. Its records are
// listed in the same way (transport/module.hpp), under the same number.
#pragma once

#include <cstdint>

#include "transport/module.hpp"

namespace heddle {

class Vci;
class VciGuard;
struct Request;

/// What a module keeps in a VCI, which owns it. Guarded by the VCI.
struct VciState {};

struct VciModule {
  std::uint8_t number;
  VciState* (*open)(Vci& vci) noexcept;      ///< with the VCI; null: memory is out
  void (*close)(VciState& state) noexcept;   ///< before the VCI goes
  /// Moves a bounded piece of what is under way. True if anything moved. Called in each step in which the VCI's `backlogged` or `moving` counts
  /// anything, the module's or not.
  bool (*advance)(VciGuard& guard) noexcept;
  /// Takes records from the VCI's ring: at most `most`, and none after the one that completes `awaited`; its own at once, others through
  /// `handle_record`. True if there was any. One module has it, that of the smallest messages; null in the others.
  bool (*take_records)(VciGuard& guard, int most, const Request* awaited) noexcept;
};

/// `module` stays where it is. Before the first VCI exists; again has no effect.
void register_vci_module(const VciModule& module) noexcept;

}  // namespace heddle
