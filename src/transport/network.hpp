// Which network carries the job's messages: hardware through libfabric, or sockets of our own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/ofi/provider.hpp"
#include "transport/tcp/address.hpp"
#include "transport/wire.hpp"

namespace heddle::wire {

inline constexpr const char* own_tcp = "sockets of its own";  ///< as a provider's name

/// What was chosen, once for the process.
struct Network {
  ofi::Choice choice;      ///< `info` is null with our own sockets
  std::vector<tcp::HostAddress> host;  ///< for those: the addresses of this host, the best one first
  std::size_t contexts = 0;         ///< that the node has; 0: no limit
  std::size_t largest_message = 0;
  [[nodiscard]] bool over_tcp() const noexcept;  ///< where a copy costs less than asking first
};

/// Looks at what there is. Parameters: HEDDLE_OFI_PROVIDER, HEDDLE_NET. False: `problem` says the cause and the remedy.
/// `offered` (may be null) gets all that was looked at.
bool choose(bool one_host, Network& network, std::vector<ofi::Offered>* offered, std::string& problem);

/// Opens what was chosen, for all contexts of the process; undone by `close`. `new_context` is null without memory.
bool open(const Network& network, std::string& problem);
std::unique_ptr<Context> new_context(const Network& network);
void close() noexcept;

/// What a code of an Event or a call means.
std::string error_text(const Network& network, int code);

}  // namespace heddle::wire
