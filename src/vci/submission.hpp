// Steps on their way to the thread that owns a VCI.
#pragma once

#include <atomic>

namespace heddle {

class Vci;
class VciGuard;

/// A step that waits for a VCI's owner. It stays where it is until it runs.
struct Submission {
  void (*run)(Submission& self, VciGuard& guard) noexcept;  ///< on the owner's thread; may end the submission's life
  Submission* next = nullptr;
};

/// Submissions from many threads to one, which takes all at a time, oldest first.
///
/// Use it for short steps that the taker is done with before it looks again; not where it would leave some of them for later.
/// Lock-free. Push: 1 read-modify-write, or more beside other pushes; take: 1 where there is something, else 0. All write one word.
class SubmissionQueue {
 public:
  /// From any thread. False: nobody takes them.
  [[nodiscard]] bool push(Submission& submission) noexcept {
    Submission* head = head_.load(std::memory_order_relaxed);
    do {
      if (head == closed()) return false;
      submission.next = head;
      // Release pairs with take_all. Acquire: whoever looks next whether the owner sleeps does not look before.
    } while (!head_.compare_exchange_weak(head, &submission, std::memory_order_acq_rel, std::memory_order_relaxed));
    return true;
  }

  // The owner's:
  void open() noexcept { head_.store(nullptr, std::memory_order_relaxed); }
  /// What is there, linked by `next`, oldest first. \pre open
  [[nodiscard]] Submission* take() noexcept { return head_.load(std::memory_order_relaxed) ? take_all(nullptr) : nullptr; }
  /// The last; later pushes are refused.
  [[nodiscard]] Submission* close() noexcept { return take_all(closed()); }

 private:
  Submission* take_all(Submission* leave) noexcept {
    Submission* newest = head_.exchange(leave, std::memory_order_acquire);  // pairs with push
    Submission* oldest = nullptr;
    while (newest) {
      Submission* const older = newest->next;
      newest->next = oldest;
      oldest = newest;
      newest = older;
    }
    return oldest;
  }
  /// No submission has this address.
  Submission* closed() noexcept { return reinterpret_cast<Submission*>(this); }

  std::atomic<Submission*> head_{closed()};
};

/// Who owns a VCI, and whether that thread sleeps.
struct Owner {
  static constexpr int awake = -2;

  /// Its thread pointer; null: nobody. Release; pairs with is_owned: the queue is open. A thread finds itself by its own store.
  std::atomic<const void*> thread{nullptr};
  /// What it has announced, or is about to announce, that it sleeps for (park::Awaited), else `awake`. Relaxed: the announcement orders it.
  std::atomic<int> sleeps_for{awake};
  Vci* next = nullptr;  ///< of its VCIs; the owner's
};

}  // namespace heddle
