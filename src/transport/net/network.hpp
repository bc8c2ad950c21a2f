// Messages to processes that shared memory does not reach: the process's part, above the engines of its VCIs.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "transport/net/engine.hpp"

namespace heddle::sys {
struct Bootstrap;
}

namespace heddle::net {

/// Opens the network if the job needs it, and publishes this process's address; `meet` comes after a fence. False: `problem` is for the user.
/// \param host, job valid until `close`  \param self which the table of processes knows, and the other ranks of the job
/// \param vcis that the process will have; made smaller when the network has no room for so many
/// \param overhead bytes that a protocol adds to an eager message, at most
bool start(Host& host, const sys::Bootstrap& job, ProcessIndex self, std::size_t overhead, unsigned& vcis, std::string& problem);
/// Whether `start` published an address, so that a fence is needed.
bool needs_fence() noexcept;
/// After the fence, if `needs_fence`, and after the VCIs exist. Starts the helper: VCIs have to be locked from now on.
bool meet(std::string& problem);
/// Who is told, at the VCI that holds the region, of writes that peers have announced (Engine::write_with_data): with the VCI held, when the bytes
/// are in place. Before `start`; nobody: they are ignored.
void hear_writes(void (*written)(Held& held, std::uint32_t immediate) noexcept) noexcept;
/// Asks all peers to confirm what was sent to them. Then `finished` becomes true in time.
void begin_finish() noexcept;
bool finished() noexcept;
/// Before the engines go, and after.
void stop() noexcept;
void close() noexcept;

namespace detail {
[[gnu::visibility("hidden")]] extern bool active;
}
/// True when this process has a network open.
inline bool active() noexcept { return detail::active; }

/// An engine for the VCI; ends the job when there is none to be had. One call at a time.
std::unique_ptr<Engine> open_engine(VciIndex vci) noexcept;

}  // namespace heddle::net
