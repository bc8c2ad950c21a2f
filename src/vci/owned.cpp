#include "vci/owned.hpp"

#include <limits>

#include "sync/futex.hpp"
#include "vci/wait.hpp"

namespace heddle {
namespace {

bool is_owned(const Vci& vci) noexcept { return vci.owner.thread.load(std::memory_order_acquire); }  // pairs with `own`

/// False, and the lock is not taken: the VCI has an owner.
bool wait_for_lock(Vci& vci) noexcept {
  const auto owned = [&] { return is_owned(vci); };
  return !owned() && vci.lock.lock_unless(owned);
}

/// The VCIs that a thread owns. Its end gives them back, since nobody else could.
struct OwnVcis {
  Vci* first = nullptr;
  ~OwnVcis() {
    while (first) give_back(*first);
  }
};
constinit thread_local OwnVcis own_vcis;

/// A thread that waits to be let into a VCI. It lies on that thread's stack.
class Guest : public Submission {
 public:
  Guest() noexcept : Submission{let_in} {}

  /// Acquire pairs with let_in: the VCI is this thread's until it unlocks it.
  [[nodiscard]] bool may_enter() const noexcept { return state_.load(std::memory_order_acquire) == entering; }
  /// Sleeps until it may enter, at most `nanoseconds` (< 0: for ever). May return for no reason.
  void sleep(long nanoseconds) noexcept {
    std::uint32_t seen = waiting;
    // Relaxed: nothing is published by it, and a look at may_enter follows.
    if (state_.compare_exchange_strong(seen, asleep, std::memory_order_relaxed) || seen == asleep) sync::futex_wait(state_, asleep, nanoseconds);
  }

 private:
  enum : std::uint32_t { waiting, asleep, entering };

  static void let_in(Submission& self, VciGuard& guard) noexcept {
    auto& guest = static_cast<Guest&>(self);
    sync::Lock& lock = guard.vci().lock;  // taken by the owner; the guest unlocks it
    // Release pairs with may_enter. From here on the guest may be gone: waking up a word that is no more wakes nobody.
    if (guest.state_.exchange(entering, std::memory_order_acq_rel) == asleep) sync::futex_wake(guest.state_);
    lock.lock();
  }

  std::atomic<std::uint32_t> state_{waiting};
};

void execute(VciGuard& guard, Submission* first) noexcept {
  Vci& vci = guard.vci();
  vci.serving = true;  // for steps that make progress: they do not serve
  const VciUse use = vci.use.load(std::memory_order_relaxed);
  while (Submission* const submission = first) {
    first = submission->next;  // running may end its life
    vci.moving.fetch_sub(1, std::memory_order_relaxed);
    submission->run(*submission, guard);
    vci.use.store(use, std::memory_order_relaxed);
  }
  vci.serving = false;
}

/// After publishing something for an owner: wakes it if it sleeps. Either this finds what it is about to announce, or the look that follows its
/// announcement finds what was published (park/sleepers.hpp).
void wake_owner(Vci& vci) noexcept {
  const park::Awaited awaited = vci.owner.sleeps_for.load(std::memory_order_relaxed);
  if (awaited == Owner::awake) return;
  if (awaited == park::anything) park::sleepers.wake_all(); else park::sleepers.wake(static_cast<unsigned>(awaited));
}

/// Serves those VCIs of the calling thread, which is in no step, whose index is lower than `below`. True if it owns any.
bool serve_own(VciIndex below) noexcept {
  for (Vci* vci = own_vcis.first; vci; vci = vci->owner.next)
    if (number(vci->index) < number(below)) submit(*vci, [](VciGuard& guard) { serve(guard); });
  return own_vcis.first;
}

void await_turn(Guest& guest, const Vci& vci) noexcept {
  for (unsigned looks = 4 * idle_looks(); looks; --looks) {
    if (guest.may_enter()) return;
    sync::relax();
  }
  // An owner may wait for another one, directly or not, that waits to be let in here. Of owners that wait in a circle one at least finds that its
  // VCI is below the one it waits for, and lets the next one in; never all of them, which would then all wait for their guests to leave.
  while (!guest.may_enter()) guest.sleep(serve_own(vci.index) ? 50'000 : -1);
}

}  // namespace

bool own(Vci& vci) noexcept {
  if (!vci.lock.try_lock() && !wait_for_lock(vci)) return detail::is_owner(vci);
  if (is_owned(vci)) {  // its owner is letting a guest in
    vci.lock.unlock();
    return false;
  }
  vci.submissions.open();
  vci.owner.sleeps_for.store(Owner::awake, std::memory_order_relaxed);
  vci.owner.thread.store(__builtin_thread_pointer(), std::memory_order_release);  // pairs with is_owned
  vci.owner.next = own_vcis.first;
  own_vcis.first = &vci;
  return true;
}

void give_back(Vci& vci) noexcept {
  for (Vci** place = &own_vcis.first; *place; place = &(*place)->owner.next)
    if (*place == &vci) {
      *place = vci.owner.next;
      break;
    }
  submit(vci, [](VciGuard& guard) {
    Vci& vci = guard.vci();
    vci.owner.thread.store(nullptr, std::memory_order_relaxed);
    // Who still took it for owned is refused from here on, and waits for the lock.
    execute(guard, vci.submissions.close());
  });
  vci.lock.unlock();
}

bool post(Vci& vci, Submission& step) noexcept {
  vci.moving.fetch_add(1, std::memory_order_relaxed);  // first, so that the count never falls below zero
  if (!vci.submissions.push(step)) {
    vci.moving.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  wake_owner(vci);
  return true;
}

bool serve(VciGuard& guard) noexcept {
  if (guard.vci().serving) return false;
  Submission* const first = guard.vci().submissions.take();
  if (!first) return false;
  execute(guard, first);
  return true;
}

void note_own_sleep(park::Awaited awaited) noexcept {
  for (Vci* vci = own_vcis.first; vci; vci = vci->owner.next) vci->owner.sleeps_for.store(awaited, std::memory_order_relaxed);
}

bool detail::enter_slowly(Vci& vci) noexcept {
  while (!wait_for_lock(vci)) {
    if (is_owner(vci)) return false;
    Guest guest;
    if (!post(vci, guest)) continue;  // it has just been given back
    await_turn(guest, vci);
    break;
  }
  return true;
}

bool detail::enter_own(Vci& vci) noexcept {
  if (!is_owned(vci)) return false;
  if (is_owner(vci)) return true;
  // A ring for the VCI may have woken this thread alone. What comes through the network wakes the owner itself.
  if (vci.ring.pending() || vci.backlogged.load(std::memory_order_relaxed) || vci.moving.load(std::memory_order_relaxed)) wake_owner(vci);
  return false;
}

}  // namespace heddle
