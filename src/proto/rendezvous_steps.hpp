// The steps of progress of large messages, by role and strategy: each moves a bounded number of bytes. True if anything moved.
#pragma once

#include "proto/rendezvous.hpp"

namespace heddle::proto {

/// The sender pushes what the ring takes of a stream, or of the pieces that it claims.
bool stream_step(VciGuard& guard, Sending& sending) noexcept;
bool piece_step(VciGuard& guard, Sending& sending) noexcept;
/// The receiver copies the next bytes, or a piece where the sender does not.
bool copy_step(VciGuard& guard, Receiving& receiving) noexcept;
bool claim_step(VciGuard& guard, Receiving& receiving) noexcept;

/// This end has nothing to do for now.
void stop_moving(Vci& vci, Transfer& transfer) noexcept;

/// Bytes that one step moves at most, and one end claims at once.
inline constexpr std::uint64_t step_bytes = 256 << 10;
inline constexpr std::uint32_t piece_bytes = 64 << 10;

/// Ends the job: a copy between the two processes failed. \pre errno is that of the copy
[[noreturn]] void copying_failed(const Transfer& transfer, std::uint64_t bytes) noexcept;

}  // namespace heddle::proto
