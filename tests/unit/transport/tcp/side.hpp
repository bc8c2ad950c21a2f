// One end of what tests of tcp::Context do: contexts of one process stand for processes, and meet over the loopback interface.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "transport/tcp/context.hpp"

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
      if (events[i].operation->kind == wire::Operation::Kind::receive)
        messages.emplace_back(events[i].data, events[i].data + events[i].bytes);
      else
        (events[i].error ? failed : done).push_back(events[i].operation);
    }
  }
  Context context;
  bool opened = false;
  std::vector<std::vector<std::byte>> messages;
  std::vector<wire::Operation*> done, failed;
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

}  // namespace heddle::tcp
