// What a VCI keeps of those it exchanges messages with. Private to transport/net.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "transport/address.hpp"
#include "transport/net/completion.hpp"
#include "transport/net/region.hpp"
#include "transport/wire.hpp"

namespace heddle::net {

class Engine;
struct Connection;

/// One network message being filled or under way.
struct Frame : wire::Operation {
  Connection* connection = nullptr;
  Frame* next = nullptr;
  void* descriptor = nullptr;
  Completion* waiting = nullptr;     ///< of records in the frame, told when it is closed; last first
  const std::byte* body = nullptr;   ///< follows what is filled, from the caller's memory
  std::size_t body_bytes = 0;
  Completion* completion = nullptr;  ///< told when the network is done with `body`
  std::uint32_t bytes = 0;           ///< filled
  std::byte* data = nullptr;
};

/// A read, write or update of a peer's memory under way, or a confirmation.
struct RegionPiece : wire::Operation {
  Connection* connection = nullptr;
  RegionPiece* next = nullptr;
  Pending* pending = nullptr;           ///< of who waits for it
  struct WriteGroup* group = nullptr;   ///< that it is one of
  wire::Registration memory;            ///< of the caller's memory, where it had to be registered
  Frame* copy = nullptr;                ///< what holds a copy instead, if that does not fit `room`
  void* to = nullptr;                   ///< where `bytes` from `from` go in the end
  const std::byte* from = nullptr;
  std::size_t bytes = 0;
  bool confirms = false;
  void* descriptor = nullptr;           ///< of `room`
  static constexpr std::size_t room_bytes = 128;
  std::byte room[room_bytes];           ///< for a copy of little
};

/// Writes that were posted between two confirmations, where the network says of each that it is in place.
struct WriteGroup {
  std::uint32_t under_way = 0;
  Pending* pending = nullptr;           ///< of who waits until they and all before them are in place
  WriteGroup* next = nullptr;
};

/// From a VCI of this process to a VCI of another. Records on it are handled in the order in which they were sent.
struct Connection {
  Engine* engine = nullptr;
  ProcessIndex process = 0;
  VciIndex vci{};                ///< the peer's
  bool greet = false;            ///< our first frame must carry our address
  bool dirty = false;            ///< in Engine::dirty_
  bool peer_closing = false;     ///< the peer is in MPI_Finalize, and has been sent nothing since: it needs no more of us
  bool peer_may_go = false;      ///< the peer has announced once that it closes: that it cannot be reached any more is no error
  bool gone = false;             ///< the peer has left
  // Where the network does not tell who has left, the two ends take leave of each other (docs/design/network.md). Since the last message of either:
  bool said_closing = false;     ///< this process is in MPI_Finalize, and has said so
  bool heard_farewell = false;   ///< and the peer has read it
  wire::Address address = wire::no_address;  ///< not known yet: frames wait
  std::uint32_t next_sequence = 0, expected = 0;  ///< of frames
  std::uint32_t epoch = 0;       ///< Engine::epoch_ of the last write that did not wait for others
  // Flow control: bytes of records that the peer confirms, which gives credit for as many more; and the same the other way round.
  std::uint64_t sent = 0, acked = 0;
  std::uint64_t received = 0, told = 0;
  Frame* open = nullptr;         ///< being filled
  Frame *head = nullptr, *tail = nullptr;  ///< closed, in order, not posted
  std::uint32_t posted = 0;      ///< writes under way
  std::map<std::uint32_t, std::vector<std::byte>> early;  ///< frames that came before their turn, by number
  // Operations on the peer's memory.
  bool unconfirmed = false;      ///< written since the last confirmation was asked for
  bool stalled = false;          ///< the last one could not be posted; until the helper's next tick
  std::uint32_t confirming = 0;  ///< confirmations under way
  std::uint32_t unanswered = 0;  ///< operations under way
  std::uint64_t moved = 0;       ///< counts what was posted and answered
  WriteGroup *groups = nullptr, *last_group = nullptr;  ///< the oldest that somebody waits for; the one being filled
  std::uint64_t moved_before = 0;  ///< `moved` at the helper's last tick
  std::uint64_t acked_before = 0;  ///< `acked` at the helper's last tick
  std::uint32_t silent = 0;      ///< ticks for which the peer has confirmed nothing of what it was sent
};

/// A part of a RemoteRead under way.
struct ReadPiece : wire::Operation {
  struct RemoteRead* read = nullptr;
  std::uint64_t bytes = 0;
  ReadPiece* next = nullptr;
};

}  // namespace heddle::net
