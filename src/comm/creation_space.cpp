// Ids and message spaces for making communicators.
#include "comm/create.hpp"

#include "transport/process.hpp"

namespace heddle {
namespace {

thread_local ContextId spare = 0;

/// FNV-1a with a seed.
std::uint64_t hash(const char* text, std::uint64_t seed) noexcept {
  std::uint64_t h = 0xcbf29ce484222325u ^ seed;
  for (; *text; ++text) h = (h ^ static_cast<unsigned char>(*text)) * 0x100000001b3u;
  return h ^ h >> 29;
}

/// Of the members in their order, by the names that all of them know.
std::uint64_t hash(const Group& group) noexcept {
  std::uint64_t h = static_cast<std::uint64_t>(group.size);
  const auto mix = [&h](std::uint64_t value) { h = (h ^ value) * 0x9e3779b97f4a7c15u + (h >> 31); };
  for (int r = 0; r < group.size; ++r) {
    const ProcessName name = processes.name_of(group.process(r));
    mix(std::uint64_t{name.job} << 32 | name.rank);
    if (group.endpoints) mix(group.endpoints->id[r]);
  }
  return h;
}

}  // namespace

ContextOffer::ContextOffer(std::uint32_t width) noexcept : id_(width == 1 ? std::exchange(spare, 0) : 0), wide_(width > 1) {
  if (!id_) id_ = new_context_id(width);
}

ContextOffer::~ContextOffer() {
  if (id_ && !wide_) spare = id_;
}

CreationSpace::CreationSpace(ContextId context, const Group& group, int rank) noexcept {
  comm_.kind.store(Kind::comm, std::memory_order_relaxed);
  comm_.predefined = true;  // never reference counted: it outlives the messages because they are waited for
  // Read only: the communicator's parts are released by release_comm, which never sees this one.
  comm_.group = const_cast<Group*>(&group);
  comm_.rank = rank;
  comm_.size = group.size;
  set_context(comm_, context);
}

CreationSpace::CreationSpace(Comm& parent) noexcept
    : CreationSpace(parent.context | creation_space, *parent.group, parent.rank) {
  comm_.inter = parent.inter;
  comm_.remote_group = parent.remote_group;
  comm_.remote_size = parent.remote_size;
  comm_.plain = parent.plain;
  comm_.self = parent.self;
  comm_.routing = parent.routing;
  comm_.peers = parent.peers;
  comm_.peer_count = parent.peer_count;
  comm_.outbox = parent.outbox | creation_space;
  comm_.inbox = parent.inbox | creation_space;
  comm_.lane = parent.lane;
}

// 30 bits of the string's hash go into the context id, leaving those that choose the VCI zero, and 31 into the tag. The group's
// members are part of both: disjoint groups may use a string at the same time, also groups of endpoints in the same processes, and a
// process may be in two groups that use it one after the other, and hear of the second early.
CreationSpace::CreationSpace(const Group& group, const char* string, int* tag) noexcept
    : CreationSpace(string_space | (hash(string, hash(group)) & 0x3fffffff) << 32, group, group.rank) {
  *tag = static_cast<int>(hash(string, ~hash(group)) & 0x7fffffff);
}

CreationSpace::~CreationSpace() = default;

}  // namespace heddle
