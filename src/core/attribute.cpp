#include "core/attribute.hpp"

#include <mpi.h>

#include <algorithm>
#include <vector>

#include "sys/error.hpp"

namespace heddle {

using Callback = void (*)();

/// One key. Immutable after creation.
struct Keyval {
  int value;
  KeyvalKind kind;
  Callback copy, del;  ///< nullptr: none; `duplicate` (copy only): the value itself
  void* extra_state;
};

namespace {

const Callback duplicate = reinterpret_cast<Callback>(1);  // MPI_COMM_DUP_FN and its siblings
constexpr int first_keyval = 0x10000;                      // beyond every predefined one

std::mutex keys_mutex;  // guards the two below
int next_keyval = first_keyval;

std::map<int, std::shared_ptr<Keyval>>& keys() {
  static auto& map = *new std::map<int, std::shared_ptr<Keyval>>;  // never destroyed: used by exit handlers
  return map;
}

const char* kind_name(KeyvalKind kind) noexcept {
  switch (kind) {
    case KeyvalKind::comm: return "communicators";
    case KeyvalKind::type: return "datatypes";
    case KeyvalKind::win: break;
  }
  return "windows";
}

int find_key(KeyvalKind kind, int keyval, std::shared_ptr<Keyval>& key) noexcept {
  if (keyval == MPI_KEYVAL_INVALID) return error(MPI_ERR_KEYVAL, "the key is MPI_KEYVAL_INVALID");
  std::lock_guard lock(keys_mutex);
  const auto found = keys().find(keyval);
  if (found == keys().end())
    return error(MPI_ERR_KEYVAL, "%d is no key that the program made, or it was freed", keyval);
  if (found->second->kind != kind)
    return error(MPI_ERR_KEYVAL, "key %d was made for %s, not for %s", keyval, kind_name(found->second->kind),
                 kind_name(kind));
  key = found->second;
  return MPI_SUCCESS;
}

int call_copy(const Keyval& key, void* handle, void* in, void* out, int* flag) noexcept {
  switch (key.kind) {
    case KeyvalKind::comm:
      return reinterpret_cast<MPI_Comm_copy_attr_function*>(key.copy)(static_cast<MPI_Comm>(handle), key.value,
                                                                      key.extra_state, in, out, flag);
    case KeyvalKind::type:
      return reinterpret_cast<MPI_Type_copy_attr_function*>(key.copy)(static_cast<MPI_Datatype>(handle), key.value,
                                                                      key.extra_state, in, out, flag);
    case KeyvalKind::win: break;
  }
  return reinterpret_cast<MPI_Win_copy_attr_function*>(key.copy)(static_cast<MPI_Win>(handle), key.value,
                                                                 key.extra_state, in, out, flag);
}

int call_delete(const Keyval& key, void* handle, void* value) noexcept {
  if (!key.del) return MPI_SUCCESS;
  switch (key.kind) {
    case KeyvalKind::comm:
      return reinterpret_cast<MPI_Comm_delete_attr_function*>(key.del)(static_cast<MPI_Comm>(handle), key.value, value,
                                                                       key.extra_state);
    case KeyvalKind::type:
      return reinterpret_cast<MPI_Type_delete_attr_function*>(key.del)(static_cast<MPI_Datatype>(handle), key.value,
                                                                       value, key.extra_state);
    case KeyvalKind::win: break;
  }
  return reinterpret_cast<MPI_Win_delete_attr_function*>(key.del)(static_cast<MPI_Win>(handle), key.value, value,
                                                                  key.extra_state);
}

/// Removes the entry with `keyval` if it is still the one set as number `order`.
void erase_entry(const AttributeOwner& owner, int keyval, std::uint64_t order) noexcept {
  std::lock_guard lock(owner.mutex);
  const auto found = owner.map.entries.find(keyval);
  if (found != owner.map.entries.end() && found->second.order == order) owner.map.entries.erase(found);
}

}  // namespace

int create_keyval(KeyvalKind kind, Callback copy, Callback del, void* extra_state, int* keyval) noexcept {
  std::lock_guard lock(keys_mutex);
  if (next_keyval < first_keyval) return error(MPI_ERR_NO_MEM, "the program made two billion keys");
  *keyval = next_keyval++;
  keys()[*keyval] = std::make_shared<Keyval>(Keyval{*keyval, kind, copy, del, extra_state});
  return MPI_SUCCESS;
}

int free_keyval(KeyvalKind kind, int* keyval) noexcept {
  std::shared_ptr<Keyval> key;
  if (const int code = find_key(kind, *keyval, key)) return code;
  {
    std::lock_guard lock(keys_mutex);
    keys().erase(*keyval);
  }
  *keyval = MPI_KEYVAL_INVALID;
  return MPI_SUCCESS;
}

int set_attribute(const AttributeOwner& owner, int keyval, void* value) noexcept {
  std::shared_ptr<Keyval> key;
  if (const int code = find_key(owner.kind, keyval, key)) return code;
  AttributeMap::Entry old{};
  {
    std::lock_guard lock(owner.mutex);
    const auto found = owner.map.entries.find(keyval);
    if (found != owner.map.entries.end()) old = found->second;
  }
  // The old value goes as if MPI_Comm_delete_attr had been called, before the new one is there.
  if (old.key)
    if (const int code = call_delete(*old.key, owner.handle, old.value)) return code;
  std::lock_guard lock(owner.mutex);
  owner.map.entries[keyval] = {value, owner.map.next_order++, std::move(key)};
  return MPI_SUCCESS;
}

int get_attribute(const AttributeOwner& owner, int keyval, void** value, int* found) noexcept {
  {
    std::lock_guard lock(owner.mutex);
    const auto entry = owner.map.entries.find(keyval);
    *found = entry != owner.map.entries.end();
    if (*found) {
      *value = entry->second.value;
      return MPI_SUCCESS;
    }
  }
  std::shared_ptr<Keyval> key;
  return find_key(owner.kind, keyval, key);  // not found is fine, a key that does not exist is not
}

int delete_attribute(const AttributeOwner& owner, int keyval) noexcept {
  AttributeMap::Entry old{};
  {
    std::lock_guard lock(owner.mutex);
    const auto found = owner.map.entries.find(keyval);
    if (found != owner.map.entries.end()) old = found->second;
  }
  if (!old.key) {
    std::shared_ptr<Keyval> key;
    return find_key(owner.kind, keyval, key);
  }
  if (const int code = call_delete(*old.key, owner.handle, old.value)) return code;
  erase_entry(owner, keyval, old.order);
  return MPI_SUCCESS;
}

int delete_all_attributes(const AttributeOwner& owner) noexcept {
  for (;;) {
    AttributeMap::Entry newest{};
    {
      std::lock_guard lock(owner.mutex);
      for (const auto& [keyval, entry] : owner.map.entries)
        if (!newest.key || entry.order > newest.order) newest = entry;
    }
    if (!newest.key) return MPI_SUCCESS;
    if (const int code = call_delete(*newest.key, owner.handle, newest.value)) return code;
    erase_entry(owner, newest.key->value, newest.order);
  }
}

int copy_attributes(const AttributeOwner& from, AttributeMap& to) noexcept {
  std::vector<AttributeMap::Entry> entries;
  {
    std::lock_guard lock(from.mutex);
    for (const auto& [keyval, entry] : from.map.entries) entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.order < b.order; });
  for (const auto& entry : entries) {
    const Keyval& key = *entry.key;
    if (!key.copy) continue;
    void* value = entry.value;
    int flag = 1;
    if (key.copy != duplicate) {
      value = nullptr;
      flag = 0;
      if (const int code = call_copy(key, from.handle, entry.value, &value, &flag)) return code;
    }
    if (flag) to.entries[key.value] = {value, to.next_order++, entry.key};
  }
  return MPI_SUCCESS;
}

}  // namespace heddle
