// libfabric, as a kind of network.
#pragma once

#include "transport/wire.hpp"

namespace heddle::ofi {

extern const wire::Factory factory;

}  // namespace heddle::ofi
