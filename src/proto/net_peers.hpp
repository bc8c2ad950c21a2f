// Who is where: what each process says of its network before anybody can talk to it. Private to proto/net*.cpp.
#pragma once

#include <string>
#include <string_view>

#include "transport/address.hpp"
#include "transport/network.hpp"

namespace heddle::sys {
struct Bootstrap;
}

namespace heddle::net {

/// The network that this process has chosen. Written by `start` only.
[[gnu::visibility("hidden")]] extern wire::Network network;

/// A process of the job.
struct KnownProcess {
  std::uint32_t vcis;  ///< that it has
  std::string name;    ///< of its VCI 0
};

/// Puts this process's card into the bootstrap, with what others must have alike. `name` is its VCI 0's. False: `problem` is for the user.
bool put_card(const sys::Bootstrap& job, unsigned vcis, std::string_view name, std::string& problem);
/// Sets `job_key`, which may need rank 0's card. After a fence.
bool agree_on_key(const sys::Bootstrap& job, std::string& problem);

/// What the process has put; asked of the launcher the first time, kept from then on. Ends the job when it does not fit this process.
/// Thread-safe.
const KnownProcess& process_of(ProcessIndex process) noexcept;

}  // namespace heddle::net
