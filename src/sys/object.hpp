// Objects behind MPI handles: type-stable memory, so that a stale handle is detected and never crashes.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

namespace heddle {

enum class Kind : std::uint32_t {
  freed = 0,
  comm = 0x48436f6d,  // "HCom" and so on, so that freed or foreign memory does not look like an object by accident
  group = 0x48477270,
  datatype = 0x48547970,
  op = 0x484f7065,
  info = 0x48496e66,
  errhandler = 0x48457272,
  request = 0x48526571,
  message = 0x484d7367,
  session = 0x48536573,
  win = 0x4857696e,
  file = 0x4846696c,
  stream = 0x48537472,
  stream_comm = 0x48436f53,  ///< a communicator with streams: not found by its fast path
  threadcomm = 0x48546872,
};

/// The largest `Object::index`: MPI_X_toint returns an int. No pool comes near it.
inline constexpr std::uint32_t last_index = 0x7fffffff;

/// First base of everything a handle can point to. `kind` is `freed` while the slot is in its pool.
struct Object {
  std::atomic<Kind> kind{Kind::freed};
  std::uint32_t index = 0;  ///< stable small number of the slot, for MPI_X_toint; 0 for predefined objects
  std::atomic<std::int32_t> references{1};

  [[nodiscard]] bool is(Kind k) const noexcept { return kind.load(std::memory_order_relaxed) == k; }
  void retain() noexcept { references.fetch_add(1, std::memory_order_relaxed); }
  /// True when this was the last reference: the caller destroys the object.
  [[nodiscard]] bool release() noexcept { return references.fetch_sub(1, std::memory_order_acq_rel) == 1; }
};

/// A pool of objects of one type that never gives memory back and reuses slots oldest first (so a stale handle stays detectable for long).
///
/// Use it for objects that users hold by handle. Not for the fast path (one lock per call): requests have per-VCI caches in front of
/// it. `T` derives from Object, has `static constexpr Kind object_kind` and a default constructor.
/// Thread-safe.
template <typename T>
class ObjectPool {
 public:
  /// A default-constructed object (`kind` set, one reference), or nullptr when memory is out.
  T* create() noexcept {
    T* object;
    {
      std::lock_guard lock(mutex_);
      if (!head_ && !grow_locked()) return nullptr;
      Slot* slot = head_;
      head_ = slot->next;
      if (!head_) tail_ = nullptr;
      object = &slot->object;
    }
    object->kind.store(T::object_kind, std::memory_order_release);
    return object;
  }

  /// Ends the object's life; its handle reads as freed from now on.
  void destroy(T* object) noexcept {
    const std::uint32_t index = object->index;
    object->~T();
    new (object) T();
    object->index = index;
    object->kind.store(Kind::freed, std::memory_order_release);
    Slot* slot = reinterpret_cast<Slot*>(object);
    std::lock_guard lock(mutex_);
    slot->next = nullptr;
    if (tail_) tail_->next = slot; else head_ = slot;
    tail_ = slot;
  }

  /// The object with this index, or nullptr when no live object has it.
  T* find(std::uint32_t index) noexcept {
    if (index < first_index) return nullptr;
    const std::uint32_t n = index - first_index;
    std::lock_guard lock(mutex_);
    if (n / chunk_slots >= chunks_) return nullptr;
    T* object = &table_[n / chunk_slots][n % chunk_slots].object;
    return object->is(Kind::freed) ? nullptr : object;
  }

  /// Calls `use(T&)` for every live object, under the pool's lock: `use` must not create or destroy.
  template <typename Use>
  void for_each(Use&& use) noexcept {
    std::lock_guard lock(mutex_);
    for (std::uint32_t c = 0; c < chunks_; ++c)
      for (std::uint32_t i = 0; i < chunk_slots; ++i)
        if (!table_[c][i].object.is(Kind::freed)) use(table_[c][i].object);
  }

 private:
  // Objects never move; the free list's link lies beside the object, not in it.
  struct Slot {
    T object;
    Slot* next = nullptr;
  };
  static constexpr std::uint32_t chunk_slots = 64;
  static constexpr std::uint32_t first_index = 4096;  // the ABI reserves 0..4095 for predefined handles

  bool grow_locked() noexcept {
    if (chunks_ == capacity_) {
      const std::uint32_t capacity = capacity_ ? capacity_ * 2 : 8;
      auto* table = static_cast<Slot**>(std::realloc(table_, sizeof(Slot*) * capacity));
      if (!table) return false;
      table_ = table;
      capacity_ = capacity;
    }
    Slot* chunk = new (std::nothrow) Slot[chunk_slots];
    if (!chunk) return false;
    table_[chunks_] = chunk;
    for (std::uint32_t i = 0; i < chunk_slots; ++i) {
      chunk[i].object.index = first_index + chunks_ * chunk_slots + i;
      chunk[i].next = i + 1 < chunk_slots ? &chunk[i + 1] : nullptr;
    }
    head_ = chunk;
    tail_ = &chunk[chunk_slots - 1];
    ++chunks_;
    return true;
  }

  std::mutex mutex_;
  Slot *head_ = nullptr, *tail_ = nullptr;
  Slot** table_ = nullptr;
  std::uint32_t chunks_ = 0, capacity_ = 0;
};

/// The pool of all objects of one type.
template <typename T>
ObjectPool<T>& pool() noexcept {
  static ObjectPool<T> instance;
  return instance;
}

}  // namespace heddle
