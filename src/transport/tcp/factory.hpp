// Sockets of the library's own, as a kind of network.
#pragma once

#include "transport/wire.hpp"

namespace heddle::tcp {

extern const wire::Factory factory;

}  // namespace heddle::tcp
