// The records that the network parts of two VCIs exchange; they never reach a protocol.
#pragma once

#include <cstdint>

#include "transport/module.hpp"

namespace heddle::net {

struct Control {
  static constexpr std::uint8_t module = 1;

  static constexpr RecordKind hello{module, 0};     ///< first record to a VCI that may not know the sender: its address; payload is NetworkName
  static constexpr RecordKind where{module, 1};     ///< what is the address of your VCI (payload: its index, 32 bits)?
  static constexpr RecordKind here{module, 2};      ///< the answer; payload is NetworkName
  static constexpr RecordKind credit{module, 3};    ///< how many bytes of messages have arrived from the receiver of this (64 bits), so that it may send more
  static constexpr RecordKind closing{module, 4};   ///< the same, from a process that is about to leave: it waits until what it has sent has arrived
  static constexpr RecordKind probe{module, 5};     ///< the same, from a process that has had no credit for a while: it wants one now
  static constexpr RecordKind farewell{module, 6};  ///< the same: the answer to `closing`, where networks do not tell who has left
};

/// The module, for register_module.
const Module& control() noexcept;

/// A VCI's address in the network; `length` bytes follow.
struct NetworkName {
  VciIndex vci;
  std::uint16_t length;
  std::uint32_t reserved;
};

}  // namespace heddle::net
