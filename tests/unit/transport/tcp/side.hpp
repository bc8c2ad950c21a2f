// One end of what tests of tcp::Context do: contexts of one process stand for processes, and meet over the loopback interface.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "transport/tcp/context.hpp"
#include "transport/tcp/packet.hpp"

namespace heddle::tcp {

inline constexpr std::size_t largest = 96 << 10;
inline constexpr std::uint64_t key = 0x1234567890abcdef;

inline std::vector<std::byte> pattern(std::size_t n, unsigned seed) {
  std::vector<std::byte> bytes(n);
  std::mt19937 random(seed);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

struct Side {
  Side() {
    std::string problem;
    opened = context.open(largest, true, problem);
    EXPECT_TRUE(opened) << problem;
  }
  /// What has happened, once.
  void look() {
    wire::Event events[8];
    const int n = context.poll(events, 8);
    for (int i = 0; i < n; ++i) {
      if (!events[i].operation && !events[i].data && !events[i].error)
        announced.push_back(events[i].immediate);
      else if (!events[i].operation)
        messages.emplace_back(events[i].data, events[i].data + events[i].bytes);
      else
        (events[i].error ? failed : done).push_back(events[i].operation);
    }
  }
  Context context;
  bool opened = false;
  std::vector<std::vector<std::byte>> messages;
  std::vector<wire::Operation*> done, failed;
  std::vector<std::uint32_t> announced;  ///< of writes
};

/// Lets both look until `enough`, at most 20 s.
inline bool until(Side& a, Side& b, const std::function<bool()>& enough) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!enough()) {
    a.look();
    b.look();
    if (std::chrono::steady_clock::now() > deadline) return false;
  }
  return true;
}

inline Name name_of(const Side& side) {
  Name name;
  EXPECT_TRUE(decode(side.context.name(), name));
  return name;
}

/// A socket that is connected to a context.
inline int client_of(const Side& side) {
  sockaddr_storage to;
  const socklen_t bytes = name_of(side).addresses.at(0).address.fill(to);
  const int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), bytes), 0);
  return fd;
}

/// Sockets that this process has open.
inline int open_sockets() {
  int count = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    struct stat about;
    count += fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode);
  }
  return count;
}

class TcpContext : public testing::Test {
 protected:
  TcpContext() {
    sockaddr_storage loopback{};
    auto& in = reinterpret_cast<sockaddr_in&>(loopback);
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    set_address(loopback);
    set_key(key);
  }
};

/// A peer in the hands of a test: connections that carry what it likes.
struct RawPeer {
  explicit RawPeer(Side& s) : side(s) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    in.sin_port = htons(1);
    sockaddr_storage any{};
    std::memcpy(&any, &in, sizeof in);
    name = encode({identity, {{Endpoint::of(any), 0, true}}});
  }
  ~RawPeer() {
    for (const int fd : fds) ::close(fd);
  }
  /// A packet, or its first bytes.
  void send(int fd, PacketKind kind, std::uint64_t id, const void* body, std::size_t bytes, std::size_t there) {
    std::vector<std::byte> packet(sizeof(PacketHead) + there);
    const PacketHead head{static_cast<std::uint32_t>(bytes), kind, packet_version, id};
    std::memcpy(packet.data(), &head, sizeof head);
    std::memcpy(packet.data() + sizeof head, body, std::min(bytes, there));
    EXPECT_EQ(::send(fd, packet.data(), packet.size(), MSG_NOSIGNAL), static_cast<ssize_t>(packet.size()));
    for (int i = 0; i < 100; ++i) side.look();
  }
  int connect() {
    fds.push_back(client_of(side));
    const Greeting greeting{identity, name_of(side).identity, 0};
    send(fds.back(), PacketKind::greeting, proof_of(key, PacketKind::greeting, greeting.from, greeting.to), &greeting, sizeof greeting, sizeof greeting);
    return fds.back();
  }
  /// The id of the next request that comes on any connection.
  std::uint64_t next_request() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < deadline) {
      side.look();
      for (const int fd : fds) {
        char bytes[sizeof(PacketHead) + sizeof(ReadRequest)];
        if (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) != sizeof bytes) continue;
        PacketHead head;
        std::memcpy(&head, bytes, sizeof head);
        if (head.kind == PacketKind::request) return head.id;
      }
    }
    ADD_FAILURE() << "no request came";
    return 0;
  }
  static constexpr std::uint64_t identity = 4711;
  Side& side;
  std::string name;
  std::vector<int> fds;
};

}  // namespace heddle::tcp
