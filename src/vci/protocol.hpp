// What the progress engine calls and the protocols implement. The VCI knows that records arrive; the protocols know what they mean.
// (Declared apart so that vci/ includes nothing else of proto/.)
#pragma once

#include "transport/record.hpp"

namespace heddle {
class VciGuard;
}

namespace heddle::proto {

struct Backlog;

/// Acts on one arrived record; its memory is valid during the call only.
void handle_record(VciGuard& guard, Record& record) noexcept;

/// Pushes records that found a full ring, in order per destination. True if any went.
bool drain_backlog(VciGuard& guard) noexcept;

/// Moves a piece of the next large message. True if anything moved.
bool advance_transfers(VciGuard& guard) noexcept;

Backlog* make_backlog() noexcept;
void destroy_backlog(Backlog* backlog) noexcept;

}  // namespace heddle::proto
