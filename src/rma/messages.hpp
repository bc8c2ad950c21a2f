// One-sided operations over the network and as records: where neither loads and stores nor the kernel's copy reach a target. The network's own
// writes and reads carry puts and gets, where it has them; the target's process carries out the rest.
// docs/design/one-sided.md, "Messages"
#pragma once

#include "core/pieces.hpp"
#include "rma/combine.hpp"
#include "rma/locks.hpp"
#include "rma/window.hpp"

namespace heddle::rma {

/// Makes the window known to those who ask for it, and this process answer them even if its threads do not come. Error code.
/// \param on_node how many of its ranks are on this node
int serve_window(Window& window, int on_node) noexcept;
/// The opposite. Nobody sends to the window any more.
void forget_window(Window& window) noexcept;

/// Fills in what only the target knows. Waits for its answer.
void ask_target(Window& window, Target& target) noexcept;

// Operations, started in order towards each target from each VCI. `there` lies at its displacement in bytes from the window's beginning
// (core/pieces.hpp, buffer_at). `request`, if not null, is set to one that completes with the operation at this end: until then, or a flush, or a
// local one, `here` is in use. What accumulates read from may be changed at once.
void put(Window& window, Target& target, const Buffer& here, const Buffer& there, Request** request) noexcept;
/// By the kernel, together with what else the calling thread's VCI has for the target: no later than the next flush. `here` is used until then;
/// `there` has addresses of the target.
void copy_later(Window& window, Target& target, const Buffer& here, const Buffer& there, bool write) noexcept;
void get(Window& window, Target& target, const Buffer& here, const Buffer& there, Request** request) noexcept;

/// \param result nullptr: what was there is not wanted
void accumulate(Window& window, Target& target, Combination what, const Buffer& here, const Buffer& there, const Buffer* result, Request** request) noexcept;
void compare_and_swap(Window& window, Target& target, BasicType basic, const void* value, const void* compare, void* result, std::uint64_t at) noexcept;

/// Waits until what any thread has started towards the target (nullptr: all) is complete there, or, if `local`, here.
void flush(Window& window, Target* target, bool local) noexcept;
/// The same for all targets and for locks that were let go: afterwards nothing more of this rank's comes to the window.
void flush_before_free(Window& window) noexcept;

/// For the report of a long wait.
inline constexpr const char* awaited_lock = "for the window lock of";

// Locks in another node's memory. The target's process queues those who wait, among its own node's, and answers when it is their turn.
/// Waits for it.
void lock(Window& window, Target& target, LockKind kind) noexcept;
void unlock(Window& window, Target& target, LockKind kind) noexcept;

/// After a lock of a process of this node was let go, or a turn handed on, while others wait on other nodes.
void tell_owner(Target& target) noexcept;

}  // namespace heddle::rma
