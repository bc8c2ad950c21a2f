// One VCI's own sockets: messages, reads and writes of memory over TCP without a library between.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/tcp/address.hpp"
#include "transport/wire.hpp"

namespace heddle::tcp {

/// Sets this host's addresses; contexts of this process listen at those that are offered. Call before the first `open`.
void set_host(std::vector<HostAddress> addresses);
const std::vector<HostAddress>& own_host() noexcept;
/// The same with a single address.
void set_address(const sockaddr_storage& address);
/// Sets the job's key; connections that do not prove knowledge of it are closed. Call before the first `poll`.
void set_key(std::uint64_t key) noexcept;

enum class PacketKind : std::uint16_t;
struct PacketHead;
struct WriteHead;
struct Connection;
struct Packet;
struct Peer;
struct ConnectAttempt;

/// When to use it: where the nodes are joined by TCP alone. When not: where the network has its own way past the kernel (libfabric).
///
/// Connections carry packets (packet.hpp). The first to send connects, and the other end answers on the same connection. If both connected at
/// once, each uses its own until the one with the greater identity switches to the other's. Messages on one connection arrive in order, but may
/// overtake across that switch: the layer above reorders them by frame number.
///
/// A peer with several addresses is tried at one after the other, best first (ConnectAttempt), until the right process answers.
///
/// Messages go straight from the caller's memory into the socket, and what the socket does not take is queued. An arrived message is handed out
/// in the receive buffer; the reply to a `read` is received into the caller's memory, a peer's write into the region. A poll costs one system call.
class Context final : public wire::Context {
 public:
  Context();
  ~Context() override;

  bool open(std::size_t largest, bool wait, std::string& problem) override;
  void close() noexcept override;
  wire::Address insert(std::string_view name) noexcept override;
  int send(wire::Address to, const void* data, std::size_t bytes, void* descriptor, wire::Operation& operation) noexcept override;
  int send_parts(wire::Address to, const iovec* parts, std::size_t count, wire::Operation& operation) noexcept override;
  int read(wire::Address from, void* to, std::size_t bytes, void* descriptor, std::uint64_t address, std::uint64_t key,
           wire::Operation& operation) noexcept override;
  int write(wire::Address to, const void* data, std::size_t bytes, void* descriptor, std::uint64_t address, std::uint64_t key,
            wire::Operation* operation) noexcept override;
  int write_with_data(wire::Address to, const void* data, std::size_t bytes, void* descriptor, std::uint64_t address, std::uint64_t key,
                      std::uint32_t immediate, wire::Operation* operation) noexcept override;
  int confirm(wire::Address to, wire::Operation& operation) noexcept override;
  void flush() noexcept override;
  int poll(wire::Event* events, int n) noexcept override;
  bool register_memory(const void* address, std::size_t bytes, wire::Use use, wire::Registration& registration) noexcept override;
  void deregister(wire::Registration& registration) noexcept override;
  bool may_sleep() noexcept override;
  [[nodiscard]] bool has_left(wire::Address address) const noexcept override;
  [[nodiscard]] std::string way(wire::Address address) const override;
  wire::Address find_silent(int seconds, std::string& host) noexcept override;

 private:
  struct Region {  ///< memory that peers may read or write
    std::byte* base = nullptr;
    std::size_t bytes = 0;
    bool may_read = false, may_write = false;
    std::uint32_t generation = 1;  ///< part of the key: a key of an earlier registration is refused
    bool used = false;
    std::uint32_t answers = 0;     ///< replies from it that are still queued
  };
  struct Read {  ///< or confirmation, under way
    wire::Operation* operation = nullptr;
    std::byte* to = nullptr;
    std::size_t bytes = 0;
    Peer* peer = nullptr;
    Connection* landing = nullptr;  ///< the connection on which part of the reply has arrived
    bool confirms = false;
  };

  bool listen_at(std::string& problem);
  Peer& peer_of(std::uint64_t identity);
  int begin_connecting(const Endpoint& to) noexcept;
  bool connect(Peer& peer) noexcept;
  void greet(Connection& connection, bool asks_for_welcome) noexcept;
  void try_next(Peer& peer) noexcept;
  void try_address(Peer& peer, std::size_t path, int fd) noexcept;
  void address_failed(Connection& connection, int error) noexcept;
  void give_up(Peer& peer) noexcept;
  void take_over(Peer& peer, Connection& connection) noexcept;
  void check_attempts() noexcept;
  bool welcomed(Connection& connection, std::uint64_t proof, const std::byte* body) noexcept;
  void finish_attempts() noexcept;
  void join(Connection& connection, Peer& peer) noexcept;
  bool connect_again(Connection& connection, int error) noexcept;
  void watch(Connection& connection) noexcept;
  Connection& new_connection(int fd) noexcept;
  bool send_strangers_away(std::int64_t seconds) noexcept;
  void accept_all() noexcept;
  void listen_on(bool wanted) noexcept;
  int post(Peer& peer, Packet& packet, bool later = false) noexcept;
  void post_on(Connection& connection, Packet& packet) noexcept;
  Packet* new_packet() noexcept;
  void release(Packet& packet) noexcept;
  void drop(Packet*& head, Packet*& tail, int error) noexcept;
  void withdraw(std::uint32_t region) noexcept;
  bool push(Connection& connection) noexcept;
  void push_all() noexcept;
  bool receive(Connection& connection) noexcept;
  void look_at_all(wire::Event* events, int n, int& found) noexcept;
  void take_in_turn(Connection& connection, wire::Event* events, int n, int& found) noexcept;
  bool take(Connection& connection, wire::Event* events, int n, int& found) noexcept;
  bool greeted(Connection& connection, std::uint64_t proof, const std::byte* body) noexcept;
  void change_over(Peer& peer) noexcept;
  bool part_with(Connection& connection) noexcept;
  void answer(Connection& connection, std::uint64_t id, const std::byte* request) noexcept;
  std::uint32_t new_read(const Read& read) noexcept;
  void end_read(std::size_t slot, int error) noexcept;
  int post_write(Peer& peer, PacketKind kind, std::uint32_t immediate, const void* data, std::size_t bytes, const WriteHead& where,
                 wire::Operation* operation) noexcept;
  bool append_write(Peer& peer, const PacketHead& head, const WriteHead& where, const void* data, std::size_t bytes) noexcept;
  Packet& new_block(Peer& peer) noexcept;
  const Region* region_of(std::uint64_t key, std::uint64_t offset, std::uint64_t bytes) const noexcept;
  std::byte* place_of_write(const Connection& connection, const PacketHead& head, const WriteHead& where) noexcept;
  bool land(Connection& connection, const PacketHead& head, std::size_t from, std::byte* to) noexcept;
  void end_landing(Connection& connection, const PacketHead& head) noexcept;
  bool has_written(Connection& connection, const PacketHead& head) noexcept;
  void confirm_later(Connection& connection, std::uint64_t id, const std::byte* question) noexcept;
  void say_confirmed(Peer& peer, std::uint64_t id) noexcept;
  void end(Connection& connection) noexcept;
  void break_off(Connection& connection, int error) noexcept;
  void tidy() noexcept;
  void want_writable(Connection& connection, bool wanted) noexcept;

  int listener_ = -1, epoll_ = -1;
  std::int64_t deaf_since_ = 0;         ///< out of descriptors: no accept until the next second; 0: accepting
  std::size_t largest_ = 0, buffer_bytes_ = 0;
  bool everywhere_ = false;             ///< `listener_` listens at all addresses of this host; accept_all closes connections to those not offered
  std::uint64_t identity_ = 0;
  std::vector<std::unique_ptr<Peer>> peers_;                    ///< by Address
  std::unordered_map<std::uint64_t, Peer*> by_identity_;
  std::vector<Peer*> attempts_;         ///< peers with a connect attempt under way
  std::int64_t attempts_checked_ = 0;   ///< second in which they were last checked
  bool found_ = false;                  ///< some of these peers have answered
  std::vector<std::unique_ptr<Connection>> connections_;
  std::size_t living_ = 0;              ///< how many of these are open
  std::vector<Connection*> touched_;    ///< received or handed out bytes since the last `tidy`
  std::vector<Connection*> heard_;      ///< received anything since a thread last went to sleep
  std::deque<Connection*> ready_;       ///< with received packets not yet handed out
  std::vector<Connection*> backlog_;    ///< with packets the kernel refused, or that wait for the end of the step
  bool later_ = false;                  ///< some of these wait for the end of the step
  std::deque<wire::Event> done_;        ///< completions to hand out
  std::vector<std::byte*> free_buffers_, free_blocks_;
  Packet* free_packets_ = nullptr;
  std::vector<Region> regions_;
  std::vector<std::uint32_t> free_regions_;
  std::vector<Read> reads_under_way_;
  std::vector<std::uint32_t> free_reads_;
  Connection* hot_ = nullptr;           ///< the last one with data: polled first
  unsigned misses_ = 0, looks_ = 0;
};

}  // namespace heddle::tcp
