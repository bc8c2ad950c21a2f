// Intrusive lists: membership costs no allocation. Guarded by whoever owns the list.
#pragma once

namespace heddle::sync {

template <typename T>
struct Link {
  T* prev = nullptr;
  T* next = nullptr;
};

/// A doubly linked list through the member `link` of T. O(1) push, pop and removal of any member.
template <typename T, Link<T> T::*link>
class List {
 public:
  [[nodiscard]] bool empty() const noexcept { return !head_; }
  [[nodiscard]] T* front() const noexcept { return head_; }
  [[nodiscard]] static T* next(const T* item) noexcept { return (item->*link).next; }

  void push_back(T* item) noexcept {
    (item->*link) = {tail_, nullptr};
    if (tail_) (tail_->*link).next = item; else head_ = item;
    tail_ = item;
  }

  void remove(T* item) noexcept {
    auto [prev, next] = item->*link;
    if (prev) (prev->*link).next = next; else head_ = next;
    if (next) (next->*link).prev = prev; else tail_ = prev;
    (item->*link) = {};
  }

  T* pop_front() noexcept {
    T* item = head_;
    if (!item) return nullptr;
    head_ = (item->*link).next;
    if (head_) (head_->*link).prev = nullptr; else tail_ = nullptr;
    return item;
  }

 private:
  T *head_ = nullptr, *tail_ = nullptr;
};

}  // namespace heddle::sync
