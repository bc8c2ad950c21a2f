// The other end of a tcp::Context, for its fuzzer: raw sockets that send what a fuzzer makes up, a reading of the protocol of its own
// (packet.hpp) that says what must come of it, and the check that just that came.
//
// What is checked after every step, when the context has come to rest:
//   - whole good messages were handed out, byte for byte and in order, up to the first bad packet of their connection, and no other
//   - a connection with a bad packet is closed, and whatever was posted to its peer and cannot arrive any more has failed
//   - a reply carries the bytes of registered memory that were asked for; what is not registered, or not any more, is refused
//   - a write brings its bytes into registered memory, and no byte elsewhere; it is confirmed when it and all before it are there, not before
//   - an operation completes once; a read has brought the bytes of its reply, wrote no other byte, and none after it was complete
//   - no good connection is closed
#pragma once

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transport/tcp/context.hpp"
#include "transport/tcp/packet.hpp"

namespace heddle::test {

inline constexpr std::size_t largest = 20'000;  ///< message
inline constexpr std::uint64_t job = 0x1122334455667788;

[[noreturn, gnu::noinline]] inline void wrong(const char* what) {
  std::fprintf(stderr, "tcp_fuzz: %s\n", what);
  std::abort();
}
inline void must(bool right, const char* what) {
  if (!right) wrong(what);
}

/// Bytes that differ with their place and with `seed`.
inline std::byte byte_of(std::size_t seed, std::size_t i) noexcept {
  return static_cast<std::byte>((i + seed * 29) * 0x9e3779b97f4a7c15U >> 56);
}
inline void fill(std::byte* to, std::size_t n, std::size_t seed) noexcept {
  for (std::size_t i = 0; i < n; ++i) to[i] = byte_of(seed, i);
}

inline sockaddr_storage place_of(std::uint32_t address, std::uint16_t port) {
  sockaddr_storage place{};
  auto& in = reinterpret_cast<sockaddr_in&>(place);
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(address);
  in.sin_port = htons(port);
  return place;
}
/// The name of a peer with one address, or with several.
inline std::string name_of(std::uint64_t identity, const std::vector<sockaddr_storage>& places) {
  tcp::Name name{identity, {}};
  for (const sockaddr_storage& place : places) name.addresses.push_back({tcp::Endpoint::of(place), 0, true});
  return tcp::encode(name);
}
inline std::uint64_t identity_of(std::string_view name) {
  tcp::Name read;
  if (!tcp::decode(name, read)) wrong("this is no name");
  return read.identity;
}
inline constexpr std::uint32_t loopback = INADDR_LOOPBACK;

/// What the context was asked to send, write or read. The first member is what it knows.
struct Posted {
  wire::Operation operation;
  bool reads = false;     ///< a read, or a confirmation
  bool confirms = false;  ///< a confirmation: a read of nothing, so to say
  bool writes = false;    ///< a write, not a message
  std::uint32_t count = 0;  ///< of writes to the peer until then
  std::uint64_t peer = 0;
  std::size_t number = 0, bytes = 0;
  bool complete = false, arrived = false;
  // Of a read:
  static constexpr std::size_t guard = 16;
  std::vector<std::byte> room;          ///< between two guards
  std::vector<std::byte> expected;      ///< of the reply, as far as it was sent
  bool asked = false;                   ///< its request has come, so its id is known
  std::uint64_t id = 0;
  struct Line* landing = nullptr;       ///< where its reply is under way
  bool finished = false, refused = false;
  [[nodiscard]] std::byte* at() { return room.data() + guard; }
};

/// Memory that may be read, or written. After it is withdrawn it holds what nobody may see.
struct Region {
  static constexpr std::size_t guard = 64;
  std::vector<std::byte> memory;   ///< between two guards
  std::vector<std::byte> right;    ///< what is to be in it
  std::vector<bool> unsure;        ///< may be there or not: who wrote it is in trouble
  std::size_t seed = 0, bytes = 0;
  bool may_write = false;          ///< and not be read
  [[nodiscard]] std::byte* at() { return memory.data() + guard; }
  wire::Registration registration;
  bool used = false;
};

/// What the context owes for a request.
struct Answer {
  std::uint64_t peer;
  std::uint64_t id;
  bool good, withdrawn;
  std::size_t region, seed, offset, bytes;
};

/// What a peer has written, by its numbers.
struct Written {
  std::uint32_t landed = 0, early_from = 0, early = 0;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> questions;  ///< numbers that it asks for before they are there, and ids
  [[nodiscard]] bool may_be_next(std::uint32_t number) const {
    if (number == landed + 1) return true;
    return early ? number == early_from + early : static_cast<std::int32_t>(number - landed) > 0;
  }
};

/// A connection, seen from outside.
struct Line {
  int fd = -1;
  int inside = -1;                 ///< the context's descriptor of it, found by its addresses
  bool accepted = false;           ///< that was found once
  sockaddr_storage here{}, there{};
  std::vector<std::byte> pending;  ///< made up, and not yet sent
  std::size_t sent = 0;
  bool stalled = false;            ///< nobody takes what the context sends
  bool bad = false;                ///< a bad packet was sent
  bool over = false;               ///< nothing more is sent here
  bool closing = false;            ///< its end was announced
  bool ours = false;               ///< the context has connected
  std::uint64_t peer = 0;          ///< its identity; 0: has not greeted, or was not chosen after a welcome
  std::uint64_t greeter = 0;       ///< who has greeted and asked for a welcome, and decides whether this connection is used
  std::uint64_t meant = 0;         ///< whom the context looks for here, until it is welcomed
  // How far the protocol was read in what was sent.
  std::byte head[sizeof(tcp::PacketHead)]{};
  std::size_t have = 0, left = 0, pad = 0;
  std::vector<std::byte> body;
  Posted* reply = nullptr;
  Region* writing = nullptr;       ///< a write is being sent, and is good so far
  std::size_t place = 0;           ///< of its next byte
  // What came.
  std::vector<std::byte> in;
  bool greeted_us = false, welcomed_us = false, chose_us = false, ended = false;
  std::uint64_t challenge = 0;     ///< of the welcome
  bool silent = false;             ///< the context has announced that no more comes
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
};

/// A context, and everybody who talks to it. Its functions end the program with a sentence when something is not as it must be.
class Stranger {
 public:
  /// \param events_at_once how many the context is asked for with a call
  explicit Stranger(int events_at_once);
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  ~Stranger();

  /// Two places where a context can connect to; the first has a lesser, the second a greater identity than any context.
  static const std::vector<int>& listeners();
  static std::string listener_name(int i);
  /// Peers with two addresses, at the first of which nobody listens; the second one is that of a listener.
  static std::string searched_name(int i);
  [[nodiscard]] static bool listens(std::uint64_t peer);

  Line& connect();

  /// Appends a packet to what is pending: a body of `bytes`, and a head that says `said` (bytes) and `version`.
  void add(Line& line, tcp::PacketKind kind, std::uint64_t id, const void* body, std::size_t bytes, std::uint32_t said, std::uint16_t version);
  void add(Line& line, tcp::PacketKind kind, std::uint64_t id, const void* body, std::size_t bytes);
  /// \param key the job's, or another
  void greet(Line& line, std::uint64_t from, std::uint64_t key = job, bool asks_for_welcome = false) {
    const tcp::Greeting greeting{from, identity_of(context.name()), asks_for_welcome};
    const std::uint64_t proof = tcp::proof_of(key, tcp::PacketKind::greeting, greeting.from, greeting.to, asks_for_welcome);
    add(line, tcp::PacketKind::greeting, proof, &greeting, sizeof greeting);
  }

  /// Sends up to `bytes` of what is pending. What it does is to be awaited by `settle` before anything is done elsewhere.
  void send(Line& line, std::size_t bytes);

  /// The answer to a context that looks for somebody. \param key the job's, or another
  void welcome(Line& line, std::uint64_t key = job) {
    constexpr std::uint64_t challenge = 0xc4a11e06e;
    const std::uint64_t proof = tcp::proof_of(key, tcp::PacketKind::welcome, line.meant, identity_of(context.name()), challenge);
    add(line, tcp::PacketKind::welcome, proof, &challenge, sizeof challenge);
  }
  /// The answer to its welcome.
  void choose(Line& line, std::uint64_t key = job) {
    const std::uint64_t proof = tcp::proof_of(key, tcp::PacketKind::choice, line.greeter, identity_of(context.name()), line.challenge);
    add(line, tcp::PacketKind::choice, proof, nullptr, 0);
  }

  // The context's side.
  void post_read(const std::string& peer, std::size_t bytes);
  void post_message(const std::string& peer, std::size_t bytes);
  void post_write(const std::string& peer, std::size_t bytes, bool uncopied);
  void post_confirm(const std::string& peer);
  void register_region(std::size_t bytes, bool may_write = false);
  void withdraw_region(std::size_t i);

  /// From now on nothing is taken of what the context sends, or all of it again.
  void stall(Line& line, bool stalled);

  /// Closes a connection, with a reset or without.
  void shut(Line& line, bool reset);

  /// What the context has, once.
  void look();

  /// Lets the context and the peers work until nothing moves any more, and looks whether all is as it must be.
  void settle();

  /// At the end: a connection that was not there before is served, and nothing that was posted is forgotten.
  void finish();

  /// A read, or a confirmation, whose id is known and whose reply was not sent yet.
  [[nodiscard]] Posted* waiting_read(std::size_t which, bool confirms = false);
  /// The number of the last write that the peer of a line has made up, by the rules.
  [[nodiscard]] std::uint32_t& last_number(const Line& line) { return numbers_[line.peer]; }

  tcp::Context context;
  std::vector<std::unique_ptr<Line>> lines;
  std::vector<std::unique_ptr<Region>> regions;
  std::vector<std::uint64_t> keys;  ///< of all regions that were ever registered
  std::vector<std::unique_ptr<Posted>> posted;

 private:
  /// Generous: what is waited for comes at once, unless it never comes.
  class Patience {
   public:
    [[nodiscard]] bool ended() const { return ++looks_ % 64 == 0 && std::chrono::steady_clock::now() > end_; }

   private:
    mutable unsigned looks_ = 0;
    std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  };

  static int lowest_descriptor();
  static int listen_at(int from, int to);

  Posted& post(bool reads, std::uint64_t peer, std::size_t bytes);

  void trouble(std::uint64_t peer) { troubled_[peer] = true; }
  [[nodiscard]] bool is_troubled(std::uint64_t peer) const { return troubled_.count(peer); }

  /// How many connections of a peer are not known to be closed.
  [[nodiscard]] std::size_t lines_of(std::uint64_t peer) const {
    return static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), [&](const auto& line) { return line->peer == peer && !line->ended; }));
  }

  // --- the protocol, read once more -------------------------------------------------------------------------------------------------

  /// Reads what is about to be sent. Fewer bytes than given: the rest cannot be foretold.
  std::size_t follow(Line& line, const std::byte* at, std::size_t bytes);
  Posted* read_of(const Line& line, std::uint64_t id, bool confirms = false);
  void begin_write(Line& line);
  bool end_write(Line& line);

  /// An id may be that of a read whose request has not come yet.
  bool is_unclear(const Line& line, const tcp::PacketHead& head);
  bool is_good(const Line& line, const tcp::PacketHead& head);

  /// All of a packet but its padding was sent. A reply is received by then.
  void end_body(Line& line);
  void end_packet(Line& line);

  // --- what comes out of the context --------------------------------------------------------------------------------------------------

  void arrived(const wire::Event& event);

  /// One read failed because of its peer: so must all, and replies that are under way go nowhere.
  void fail_reads(std::uint64_t peer);
  void accept_lines();
  void take_in(Line& line);
  void came(Line& line, const tcp::PacketHead& head, const std::byte* body);

  // --- at rest -----------------------------------------------------------------------------------------------------------------------

  static bool same_place(const sockaddr_storage& a, const sockaddr_storage& b) { return !std::memcmp(&a, &b, 8); }  // family, port, address

  /// The context's descriptor of a connection; -1: it has none.
  int inside_of(Line& line);
  static tcp_info about(int fd);
  static bool is_established(int fd) { return about(fd).tcpi_state == 1; }

  /// Nothing that was sent is unread, and the context has nothing that it would do if it were asked.
  bool at_rest();

  /// What the peers are to get has come.
  bool nothing_is_missing();

  /// What is sent to it comes to be seen.
  bool is_reachable(std::uint64_t peer) const;
  const char* why_not();
  void verify();

  std::vector<wire::Event> events_;
  int first_free_ = -1;
  std::deque<std::vector<std::byte>> expected_;  ///< messages that were sent and not handed out
  std::vector<Answer> answers_;                 ///< that the context owes
  std::map<std::uint64_t, int> answered_;
  std::map<std::uint64_t, Written> written_;     ///< by peers
  std::map<std::uint64_t, std::uint32_t> numbers_, posted_writes_, came_writes_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> confirmed_;  ///< peers and ids that are to be answered
  std::map<std::uint32_t, int> announced_;       ///< to be handed out with writes
  std::map<std::uint64_t, bool> troubled_;
  std::vector<std::uint64_t> failing_;
  std::size_t messages_ = 0;
  bool may_connect_ = false;  ///< the context, to where it finds somebody who listens
};

}  // namespace heddle::test
