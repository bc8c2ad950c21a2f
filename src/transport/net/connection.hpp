// What a VCI keeps of those it exchanges messages with. Private to transport/net.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "transport/address.hpp"
#include "transport/net/completion.hpp"
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
