#include "core/datatype.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "core/datatype_copy.hpp"
#include "core/datatype_envelope.hpp"
#include "core/datatype_layout.hpp"
#include "sys/error.hpp"

namespace heddle {

constinit Datatype builtin_datatypes[256];

namespace {

constinit Layout builtin_layouts[256];  // one block each; pairs have theirs made

void fill_builtin_datatypes() noexcept {
  for (const BasicInfo& info : basic_types) {
    if (!info.name) continue;
    Datatype& type = builtin_datatypes[info.value];
    type.predefined_value = 0x200u + info.value;
    type.size = info.size;
    type.extent = info.extent;
    type.basic = info.value;
    type.alignment = info.alignment;
    type.builtin = true;
    if (!info.is_pair()) {
      Layout& layout = builtin_layouts[info.value];
      layout.basic = info.value;
      layout.typed = true;
      layout.size = layout.high = info.size;
      layout.elements = 1;
      layout.external = info.external;
      type.layout = &layout;
    }
  }
  for (const BasicInfo& info : basic_types) {  // pairs: made of the others
    if (!info.is_pair()) continue;
    Datatype& type = builtin_datatypes[info.value];
    SequenceBuilder members(true);
    LayoutRef layout;
    if (!members.add(0, 1, 0, builtin_datatypes[info.first].layout) ||
        !members.add(info.second_offset, 1, 0, builtin_datatypes[info.second].layout) || !members.finish(layout))
      std::abort();  // no memory while the program is being loaded
    type.layout = layout.take();
  }
  for (Datatype& type : builtin_datatypes) {
    if (!type.builtin) continue;
    type.true_lb = type.layout->low;
    type.true_extent = type.layout->high - type.layout->low;
    type.kind.store(Kind::datatype, std::memory_order_relaxed);
    if (commit(type) != MPI_SUCCESS) std::abort();
  }
}

struct FillAtLoad {
  FillAtLoad() noexcept { fill_builtin_datatypes(); }
};
[[gnu::init_priority(101)]] FillAtLoad filled;

UserAddress address_of(const void* buffer) noexcept { return reinterpret_cast<UserAddress>(buffer); }

void destroy(Datatype& type, EnvelopeList<Datatype*>& orphans) noexcept {
  release_layout(type.layout);
  release_layout(type.plan);
  std::free(type.name);
  if (DatatypeEnvelope* envelope = type.envelope) {
    for (MPI_Count i = 0; i < envelope->types.size; ++i) {
      Datatype& old = *envelope->types.data[i];
      if (old.builtin || !old.Object::release()) continue;
      if (!orphans.push(&old)) destroy(old, orphans);  // no memory for the list: recurse instead
    }
    delete envelope;
  }
  pool<Datatype>().destroy(&type);
}

}  // namespace

void release(Datatype& type) noexcept {
  if (type.builtin || !type.Object::release()) return;
  // What the type was made of may die with it, and so on: a list instead of recursion, for chains of any length.
  EnvelopeList<Datatype*> orphans;
  destroy(type, orphans);
  while (orphans.size) destroy(*orphans.data[--orphans.size], orphans);
}

int commit(Datatype& type) noexcept {
  std::lock_guard lock(type.mutex);
  if (type.committed) return MPI_SUCCESS;
  LayoutRef plan;
  if (!make_plan(type.layout, plan))
    return error(MPI_ERR_NO_MEM, "no memory to commit a datatype of %lld bytes", static_cast<long long>(type.size));
  type.one_block = !plan || plan->shape == Layout::Shape::block;
  type.contiguous = type.one_block && (type.size == type.extent || type.size == 0);
  type.plan = plan.take();
  type.committed = true;
  return MPI_SUCCESS;
}

void pack(const void* buffer, MPI_Count count, const Datatype& type, PackCursor& cursor, void* out,
          std::size_t bytes) noexcept {
  if (bytes == 0) return;
  if (is_one_block(count, type))
    std::memcpy(out, displaced(buffer, type.true_lb + cursor.offset), bytes);
  else
    pack_range(*type.plan, address_of(buffer), count, type.extent, cursor.offset, static_cast<std::int64_t>(bytes),
               static_cast<std::byte*>(out));
  cursor.offset += static_cast<MPI_Count>(bytes);
}

void unpack(void* buffer, MPI_Count count, const Datatype& type, PackCursor& cursor, const void* in,
            std::size_t bytes) noexcept {
  if (bytes == 0) return;
  if (is_one_block(count, type))
    std::memcpy(displaced(buffer, type.true_lb + cursor.offset), in, bytes);
  else
    unpack_range(*type.plan, address_of(buffer), count, type.extent, cursor.offset, static_cast<std::int64_t>(bytes),
                 static_cast<const std::byte*>(in));
  cursor.offset += static_cast<MPI_Count>(bytes);
}

void copy_typed(const void* from, MPI_Count from_count, const Datatype& from_type, void* to, MPI_Count to_count,
                const Datatype& to_type) noexcept {
  const auto bytes = static_cast<std::size_t>(std::min(from_count * from_type.size, to_count * to_type.size));
  if (bytes == 0) return;
  PackCursor source, target;
  const bool from_block = is_one_block(from_count, from_type), to_block = is_one_block(to_count, to_type);
  const std::byte* in = displaced(from, from_type.true_lb);
  std::byte* out = displaced(to, to_type.true_lb);
  if (from_block && to_block) {
    if (in != out) std::memmove(out, in, bytes);
  } else if (to_block) {
    pack(from, from_count, from_type, source, out, bytes);
  } else if (from_block) {
    unpack(to, to_count, to_type, target, in, bytes);
  } else {
    alignas(64) std::byte piece[8 * 1024];  // stays in the first-level cache between the two steps
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t n = std::min(sizeof piece, bytes - done);
      pack(from, from_count, from_type, source, piece, n);
      unpack(to, to_count, to_type, target, piece, n);
      done += n;
    }
  }
}

MPI_Count basic_elements(const Datatype& type, MPI_Count bytes) noexcept {
  if (bytes == 0) return 0;
  if (type.size == 0) return MPI_UNDEFINED;
  const MPI_Count whole = bytes / type.size, rest = bytes % type.size;
  const MPI_Count tail = rest ? elements_in(*type.layout, rest) : 0;
  return tail < 0 ? MPI_UNDEFINED : whole * type.layout->elements + tail;
}

MPI_Count bytes_of_elements(const Datatype& type, MPI_Count elements) noexcept {
  if (elements == 0) return 0;
  if (!type.layout) return -1;
  const MPI_Count whole = elements / type.layout->elements, rest = elements % type.layout->elements;
  MPI_Count bytes;
  if (__builtin_mul_overflow(whole, type.size, &bytes) ||
      __builtin_add_overflow(bytes, rest ? bytes_of(*type.layout, rest) : 0, &bytes))
    return -1;
  return bytes;
}

int type_name(Datatype& type, char* name) noexcept {
  std::lock_guard lock(type.mutex);
  const char* text = type.name ? type.name : type.predefined_value ? basic_info(type.basic).name : "";
  return std::snprintf(name, MPI_MAX_OBJECT_NAME, "%s", text);
}

}  // namespace heddle
