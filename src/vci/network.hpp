// A VCI's part of the network, and what the network is told of the VCIs.
#pragma once

#include "transport/net/engine.hpp"
#include "vci/vci.hpp"

namespace heddle {

/// What the network calls when it needs the VCIs.
net::Host& network_host() noexcept;

/// Opens the VCI's network. Ends the job when that fails. Thread-safe; the VCI need not be held.
[[gnu::cold]] net::Engine& open_network(Vci& vci) noexcept;
/// The VCI's network, opened on first use.
inline net::Engine& network_of(Vci& vci) noexcept {
  if (net::Engine* engine = vci.net.load(std::memory_order_acquire)) [[likely]] return *engine;  // pairs with open_network's store
  return open_network(vci);
}
/// Before the VCI goes.
void close_network(Vci& vci) noexcept;

}  // namespace heddle
