// What layers above core/ keep with a communicator.
#pragma once

namespace heddle {

struct Comm;

/// Base of what another layer keeps with a communicator: the communicator ends it without knowing what it is.
struct CommExtension {
  /// Ends it. Runs once, when the communicator is destroyed, in the thread that drops the last reference: it may hold a VCI, so nothing here waits.
  void (*const end)(CommExtension& extension, Comm& comm) noexcept;
};

}  // namespace heddle
