// VCIs that one thread owns. docs/design/core.md, Owned VCIs
//
// The owner's steps take no lock. Others enter by `submit` as they enter any VCI: they wait in a queue until the owner, in its progress, lets them
// in, and it waits until they have left. Or they `post` a step, which the owner executes. They make no progress there: `try_submit` is false.
// Use it for a thread that does little but drive VCIs; one that computes while others submit makes them wait for as long.
#pragma once

#include "vci/park/sleepers.hpp"
#include "vci/vci.hpp"

namespace heddle {

/// Makes the calling thread the owner of the VCI, once whoever is in it has left. False: another thread owns it. From then on this thread keeps
/// making progress on it, and waits with `wait_until` for this VCI or, where it owns several, for anything. Its end gives the VCI back.
/// \pre expect_threads was called; the thread is in no step
[[nodiscard]] bool own(Vci& vci) noexcept;
/// Serves the queue for the last time and makes the VCI one that is locked. \pre the calling thread owns it and is in no step
void give_back(Vci& vci) noexcept;

/// Has the owner execute `step` in its progress, after what this thread has submitted before, and returns at once. False, and nothing done: the VCI
/// has no owner. Thread-safe.
[[nodiscard]] bool post(Vci& vci, Submission& step) noexcept;

/// Executes what was posted and lets in who waits, each for one step. True if there was anything. Part of `progress`. \pre the VCI is owned
bool serve(VciGuard& guard) noexcept;
/// Publishes for all VCIs of the calling thread that it is about to sleep (or, with Owner::awake, that it does not), so that who submits wakes it.
void note_own_sleep(park::Awaited awaited) noexcept;

}  // namespace heddle
