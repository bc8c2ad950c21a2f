// Which network carries the job's messages.
#pragma once

#include <string>
#include <vector>

#include "transport/wire.hpp"

namespace heddle::net {

/// What was chosen, once for the process.
struct Network {
  const wire::Factory* factory = nullptr;
  wire::Choice choice;
};

/// Looks at what there is, kind by kind, and takes the first that will do. False: `problem` says the cause and the remedy.
/// `offered` (may be null) gets all that was looked at.
bool choose(const wire::Need& need, Network& network, std::vector<wire::Offered>* offered, std::string& problem);

}  // namespace heddle::net
