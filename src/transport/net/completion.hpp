// How the network says that it is done with something.
#pragma once

#include "transport/holder.hpp"

namespace heddle::net {

/// Given along with what the network is to move, and the network's until `done`.
struct Completion {
  /// Called once, with the VCI held. \param error 0, or a positive errno: the peer has left, and what was for it is dropped
  void (*done)(Completion& self, Held& held, int error) noexcept = nullptr;
  Completion* next = nullptr;  ///< the network's
};

}  // namespace heddle::net
