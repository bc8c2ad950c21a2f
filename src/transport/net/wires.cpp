#include "transport/net/wires.hpp"

#include "transport/ofi/factory.hpp"
#include "transport/tcp/factory.hpp"

namespace heddle::net {
namespace {

/// The only place that names them. In the order in which they are asked.
constexpr const wire::Factory* wires[] = {&ofi::factory, &tcp::factory};

}  // namespace

bool choose(const wire::Need& need, Network& network, std::vector<wire::Offered>* offered, std::string& problem) {
  for (const wire::Factory* factory : wires) {
    wire::Choice choice;
    const wire::Look found = factory->look(need, choice, offered, problem);
    if (found == wire::Look::refused) return false;
    if (found == wire::Look::passed) continue;
    network = {factory, choice};
    return true;
  }
  return false;
}

}  // namespace heddle::net
