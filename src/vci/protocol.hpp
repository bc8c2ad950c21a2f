// What the progress engine calls and the protocols implement. The VCI knows that records arrive; the protocols know what they mean.
// (Declared apart so that vci/ includes nothing else of proto/.)
#pragma once

#include <cstdint>

#include "transport/record.hpp"

namespace heddle {
class Vci;
class VciGuard;
struct Request;
}  // namespace heddle

namespace heddle::proto {

struct Backlog;

/// Takes records from the ring and acts on them: at most `most`, and none after the one that completes `awaited`. True if there was any.
bool take_records(VciGuard& guard, int most, const Request* awaited) noexcept;

/// Completes a request of this VCI.
void end_request(VciGuard& guard, Request& request) noexcept;

/// Pushes records that found a full ring, in order per destination. True if any went.
bool drain_backlog(VciGuard& guard) noexcept;

/// Moves a piece of the next large message. True if anything moved.
bool advance_transfers(VciGuard& guard) noexcept;

Backlog* make_backlog() noexcept;
void destroy_backlog(Backlog* backlog) noexcept;
void free_spares(Vci& vci) noexcept;

}  // namespace heddle::proto
