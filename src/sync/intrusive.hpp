// Intrusive lists: membership costs no allocation. Guarded by whoever owns the list.
#pragma once

namespace heddle::sync {

template <typename T>
struct Link {
  T *prev, *next;
};

/// A doubly linked list through the member `link` of T. O(1) push, pop and removal of any member.
/// The tail of an empty list and the `prev` of the first item mean nothing, so neither is kept up to date.
template <typename T, Link<T> T::*link>
class List {
 public:
  [[nodiscard]] bool empty() const noexcept { return !head_; }
  [[nodiscard]] T* front() const noexcept { return head_; }
  [[nodiscard]] static T* next(const T* item) noexcept { return (item->*link).next; }

  void push_back(T* item) noexcept {
    (item->*link) = {tail_, nullptr};
    if (head_) (tail_->*link).next = item; else head_ = item;
    tail_ = item;
  }

  void remove(T* item) noexcept {
    auto [prev, next] = item->*link;
    if (item == head_) head_ = next; else (prev->*link).next = next;
    if (next) (next->*link).prev = prev; else tail_ = prev;
  }

  T* pop_front() noexcept {
    T* item = head_;
    if (item) head_ = (item->*link).next;
    return item;
  }

 private:
  T *head_ = nullptr, *tail_ = nullptr;
};

}  // namespace heddle::sync
