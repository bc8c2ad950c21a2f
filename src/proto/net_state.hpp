// What the network part keeps. Private to proto/net*.cpp. docs/design/ofi.md
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "proto/net.hpp"
#include "proto/net_pace.hpp"
#include "proto/protocol_state.hpp"
#include "transport/net/control.hpp"
#include "transport/net/frame.hpp"
#include "transport/wire.hpp"

namespace heddle::net {

struct Link;
struct Net;

/// One network message being filled or under way.
struct Frame : wire::Operation {
  Link* link = nullptr;
  Frame* next = nullptr;
  void* descriptor = nullptr;
  Request* waiting = nullptr;  ///< sends whose bytes lie here, complete when the frame is closed; by Request::next, last first
  std::uint32_t bytes = 0;     ///< filled
  Request* direct = nullptr;   ///< whose buffer follows what is filled, uncopied
  bool completes = false;      ///< `direct` is complete when the frame is back; a synchronous one when it is acknowledged
  std::byte* data = nullptr;
};

/// What a VCI of this process knows of a VCI of another with which it exchanges messages.
struct Link {
  Net* net = nullptr;
  ProcessIndex process = 0;
  std::uint16_t vci = 0;
  bool greet = false;            ///< our first frame must carry our address
  bool dirty = false;            ///< in Net::dirty
  bool peer_closing = false;     ///< it is in MPI_Finalize, and has not been sent anything since: it needs no more of us
  bool peer_may_go = false;      ///< it was there at some time: that it cannot be reached any more is no fault
  bool gone = false;             ///< it has left, and cannot be reached any more
  // Parting (docs/design/ofi.md), where the network does not tell who has left. Since the last message of either side:
  bool said_closing = false;     ///< this process is in MPI_Finalize, and has said so
  bool heard_farewell = false;   ///< and the peer has read it
  wire::Address address = wire::no_address;  ///< not known yet: frames wait
  std::uint32_t next_sequence = 0, expected = 0;
  std::uint32_t epoch = 0;       ///< Net::epoch of the last write that was not gathered
  std::uint64_t sent = 0, acked = 0;      ///< bytes of records that the peer confirms
  std::uint64_t received = 0, told = 0;   ///< the same the other way round
  Frame* open = nullptr;         ///< being filled
  std::map<std::uint32_t, std::vector<std::byte>> early;  ///< frames that providers gave us before their turn, by number
  Frame *head = nullptr, *tail = nullptr;  ///< closed, in order, not posted
  std::uint32_t posted = 0;      ///< writes under way
  std::uint64_t acked_before = 0; ///< `acked` at the helper's last tick
  std::uint32_t silent = 0;      ///< ticks for which the peer has confirmed nothing of what it was sent
};

/// A read of remote memory under way.
struct ReadPiece : wire::Operation {
  Transfer* transfer = nullptr;
  std::uint64_t bytes = 0;
  ReadPiece* next = nullptr;
};

/// The network part of a large message.
struct Move {
  Link* link = nullptr;
  wire::Registration memory;      ///< of the buffer at this end
  std::uint64_t remote = 0, key = 0;
  std::uint64_t issued = 0;      ///< bytes asked for
  std::uint32_t in_flight = 0;   ///< reads
  bool queued = false;           ///< in Net::reads, at most once
  Transfer* next = nullptr;
};

/// The network of one VCI. Guarded by the VCI, but for what is atomic.
struct Net {
  Net(Vci& v, std::unique_ptr<wire::Context> c) noexcept : vci(v), context(*c), context_(std::move(c)) {}
  ~Net();

  Vci& vci;
  wire::Context& context;
  int bell = -1;  ///< the socket of the thread that sleeps for this VCI (doorbell.hpp)
  std::unordered_map<std::uint64_t, Link*> by_lane;  ///< key_of(process, lane), as senders ask
  std::unordered_map<std::uint64_t, std::unique_ptr<Link>> links;  ///< key_of(process, the peer's VCI)
  std::vector<Link*> dirty;     ///< with frames to send
  Frame* free_frames = nullptr;
  ReadPiece* free_pieces = nullptr;
  struct Slab {
    std::byte* memory;
    wire::Registration registration;
    Frame* frames;
  };
  std::vector<Slab> slabs;
  Transfer *reads_head = nullptr, *reads_tail = nullptr;  ///< with pieces to ask for
  LookPace pace;
  std::uint32_t epoch = 1;      ///< counts progress steps
  bool in_step = false;         ///< inside a progress step: replies leave together at its end
  bool withheld = false;        ///< credit was kept back because too much is kept here unasked
  std::uint32_t under_way = 0;  ///< posted frames and reads
  std::uint32_t epoch_before = 0;  ///< `epoch` at the helper's last tick
  std::atomic<bool> gathered{false};  ///< the helper thread looks; relaxed, it takes the VCI before it acts

 private:
  std::unique_ptr<wire::Context> context_;
};

// Written by `start` and `meet`. Hidden: reached without a look into the table of addresses.
[[gnu::visibility("hidden")]] extern std::uint64_t job_key;
[[gnu::visibility("hidden")]] extern std::size_t frame_bytes;    ///< largest frame that messages are copied into
[[gnu::visibility("hidden")]] extern std::size_t copy_limit;     ///< largest message that is copied into one, with others
[[gnu::visibility("hidden")]] extern std::size_t largest_frame;  ///< largest of all
[[gnu::visibility("hidden")]] extern std::uint64_t window;

/// Opens the VCI's network. Ends the job when that fails.
[[gnu::cold]] Net& open_net(Vci& vci) noexcept;
/// The VCI's network, opened on first use.
inline Net& net_of(Vci& vci) noexcept {
  if (Net* net = vci.net.load(std::memory_order_acquire)) [[likely]] return *net;  // pairs with open_net's store
  return open_net(vci);
}

/// What links are found by.
inline std::uint64_t key_of(ProcessIndex process, unsigned lane) noexcept { return std::uint64_t{process} << 16 | lane; }
/// The link that messages for the peer's lane take, made on first use.
Link& link_to(Net& net, ProcessIndex process, unsigned lane) noexcept;
/// A link to a VCI of a peer that has none yet. Its address is not known.
Link& new_link(Net& net, ProcessIndex process, unsigned vci) noexcept;

/// Room for a record of `payload` bytes behind what the link sends already: the payload's place. Bytes count once `send_appended` is called.
std::byte* append(VciGuard& guard, Link& link, const RecordHead& head, std::size_t payload) noexcept;
/// Posts what was appended, or leaves it to be gathered with more. True when it was posted (or given to the provider's queue).
bool send_appended(VciGuard& guard, Link& link) noexcept;
bool flush_link(VciGuard& guard, Link& link) noexcept;

void handle_read(VciGuard& guard, Net& net, ReadPiece& piece) noexcept;
bool issue_reads(VciGuard& guard, Net& net) noexcept;

/// The helper's tick, once a second: takes what arrived when nobody else did, asks silent peers for a sign of life, and ends the job
/// when one gives none for HEDDLE_NET_TIMEOUT.
void tick(VciGuard& guard, Net& net) noexcept;

/// The helper's ticks so far: seconds in which this process ran. Relaxed: a count that orders nothing.
extern std::atomic<std::uint32_t> ticks;

/// Before this process says that a peer is gone. Mostly its process has died, and the launcher, which sees that at the same time, says better of
/// what, and ends the job meanwhile. Where it does not, the ranks speak one after the other, so that the first to do so ends the job.
void await_the_launcher() noexcept;

/// For messages about a peer that is not reached: from where to where, and what to do where it never was.
std::string way_to(const Link& link);
const char* advice_for(const Link& link) noexcept;

/// Ends the job: the peer cannot be reached any more.
[[noreturn]] void lost(const Link& link, const char* doing, int error) noexcept;

/// Seconds after which a peer or its host is given up; 0: never.
std::int64_t patience() noexcept;

/// The thread that sends what was gathered when nobody else does.
bool start_helper(std::string& problem) noexcept;
void stop_helper() noexcept;
/// Makes it look at gathered messages soon.
void wake_helper_to_flush() noexcept;

}  // namespace heddle::net
