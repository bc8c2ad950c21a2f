// What each process publishes of its network before anybody can talk to it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "transport/net/engine.hpp"

namespace heddle::sys {
struct Bootstrap;
}

namespace heddle::net {

/// Puts this process's address into the bootstrap, with what others must have alike. `name` is its VCI 0's. False: `problem` is for the user.
/// \param job, common valid as long as the network
bool publish_address(const sys::Bootstrap& job, const Common& common, unsigned vcis, std::string_view name, std::string& problem);
/// The job's key, which may need rank 0's address. After a fence.
bool agree_on_key(std::uint64_t& key, std::string& problem);

/// What the process has published; asked of the launcher the first time, kept from then on. Ends the job when it does not fit this process.
/// Thread-safe.
const ProcessAddress& address_of(ProcessIndex process) noexcept;
/// When nobody asks any more.
void forget_addresses() noexcept;

}  // namespace heddle::net
