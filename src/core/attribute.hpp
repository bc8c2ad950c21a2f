// Attributes cached on communicators, datatypes and windows. \see MPI-5.0 §7.7
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace heddle {

struct Keyval;  // a key with its callbacks; attribute.cpp

/// Values by keyval, in the order in which they were set (delete callbacks run in reverse order of setting).
struct AttributeMap {
  struct Entry {
    void* value;
    std::uint64_t order;
    std::shared_ptr<Keyval> key;  ///< outlives MPI_X_free_keyval while an attribute uses it
  };
  std::map<int, Entry> entries;
  std::uint64_t next_order = 0;
};

/// What keys are for: a communicator's key does nothing on a datatype.
enum class KeyvalKind : unsigned char { comm, type, win };

/// An object that has attributes. `handle` is the user's handle of it, passed to callbacks.
struct AttributeOwner {
  KeyvalKind kind;
  void* handle;
  AttributeMap& map;
  std::mutex& mutex;  ///< guards `map`; never held while a callback runs, so callbacks may call MPI
};

/// Makes a key. `copy` and `del` are the user's functions of the type that belongs to `kind`, as generic pointers: 0 is the
/// null function and, for `copy`, 1 the one that duplicates the value (both are sentinels, never called).
int create_keyval(KeyvalKind kind, void (*copy)(), void (*del)(), void* extra_state, int* keyval) noexcept;
/// Ends the key's use; attributes that have it keep its callbacks. Sets `*keyval` to MPI_KEYVAL_INVALID.
int free_keyval(KeyvalKind kind, int* keyval) noexcept;

/// Return an error code, which may be the one that a callback returned. All are thread-safe.
int set_attribute(const AttributeOwner& owner, int keyval, void* value) noexcept;
int get_attribute(const AttributeOwner& owner, int keyval, void** value, int* found) noexcept;
int delete_attribute(const AttributeOwner& owner, int keyval) noexcept;
/// Deletes all, newest first. Stops at a callback that fails: that attribute and the older ones stay.
int delete_all_attributes(const AttributeOwner& owner) noexcept;
/// Runs the copy callbacks of `from` and fills `to`, the map of an object that no other thread knows yet. When a
/// callback fails its error code is returned and `to` holds what was copied before it.
int copy_attributes(const AttributeOwner& from, AttributeMap& to) noexcept;

}  // namespace heddle
