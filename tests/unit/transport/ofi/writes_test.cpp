// Writes, reads and atomics on a peer's memory over libfabric's own providers: two contexts of one process stand for two processes.
#include <gtest/gtest.h>
#include <rdma/fi_endpoint.h>

#include <algorithm>
#include <chrono>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "transport/ofi/context.hpp"
#include "transport/ofi/library.hpp"
#include "transport/ofi/provider.hpp"

namespace heddle::ofi {
namespace {

struct Done : wire::Operation {
  Done() { done = [](wire::Operation& self, const wire::Event& event, Held&) noexcept { static_cast<Done&>(self).take(event); }; }
  void take(const wire::Event& event) {
    ++times;
    error = event.error;
  }
  int times = 0, error = 0;
};

struct Nobody : Held {};

struct Side {
  Side() {
    std::string problem;
    opened = context.open(8192, false, problem);
    EXPECT_TRUE(opened) << problem;
  }
  void look() {
    wire::Event events[8];
    const int n = context.poll(events, 8);
    EXPECT_GE(n, 0);
    for (int i = 0; i < n; ++i) {
      if (events[i].operation) events[i].operation->done(*events[i].operation, events[i], nobody);
      else if (!events[i].data && !events[i].error) announced.push_back(events[i].immediate);
      else messages.emplace_back(events[i].data, events[i].data + events[i].bytes);
    }
  }
  ~Side() {
    for (wire::Registration& one : registrations) context.deregister(one);
  }
  /// What the calls want of memory at this end.
  void* descriptor(const void* memory, std::size_t bytes) {
    if (!context.capabilities().registers_local) return nullptr;
    registrations.emplace_back();
    EXPECT_TRUE(context.register_memory(memory, bytes, wire::Use::at_this_end, registrations.back()));
    return registrations.back().descriptor;
  }
  Context context;
  std::vector<wire::Registration> registrations;
  Nobody nobody;
  bool opened = false;
  std::vector<std::uint32_t> announced;
  std::vector<std::vector<std::byte>> messages;
};

class OfiWrites : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string problem;
    library = load(problem);
    if (!library) GTEST_SKIP() << problem;
    fi_info* hints = library->dupinfo(nullptr);
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->caps = FI_MSG | FI_RMA | FI_MULTI_RECV;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->fabric_attr->prov_name = strdup(GetParam());
    {
      const KeptSignals kept;
      // A device has no loopback.
      const bool device = is_verbs();
      if (library->getinfo(FI_VERSION(1, 15), device ? nullptr : "127.0.0.1", nullptr, device ? 0 : FI_SOURCE, hints, &list)) list = nullptr;
    }
    library->freeinfo(hints);
    if (!list && is_verbs() && std::getenv("HEDDLE_TEST_VERBS")) FAIL() << "the device is not found";
    if (!list) GTEST_SKIP() << "no " << GetParam();
    updating = with_atomics(*library, *list);
    ASSERT_TRUE(open_fabric(updating ? updating : list, problem)) << problem;
  }
  void TearDown() override {
    if (!list) return;
    close_fabric();
    library->freeinfo(list);
    if (updating) library->freeinfo(updating);
  }
  static bool is_verbs() { return !std::strncmp(GetParam(), "verbs", 5); }
  /// Posts, however often it takes: providers connect at the first attempts.
  static int post(Side& a, Side& b, const std::function<int()>& call) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    int code;
    while ((code = call()) == -EAGAIN && std::chrono::steady_clock::now() < deadline) a.look(), b.look();
    return code;
  }
  static bool until(Side& a, Side& b, const std::function<bool()>& enough) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!enough()) {
      a.look();
      b.look();
      if (std::chrono::steady_clock::now() > deadline) return false;
    }
    return true;
  }
  const Library* library = nullptr;
  fi_info *list = nullptr, *updating = nullptr;
};

INSTANTIATE_TEST_SUITE_P(, OfiWrites, testing::Values("tcp;ofi_rxm", "sockets", "verbs;ofi_rxm"), [](const auto& info) {
  return std::string(info.param).substr(0, std::string(info.param).find(';'));
});

std::vector<std::byte> pattern(std::size_t n, std::size_t seed) {
  std::vector<std::byte> bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>((i + seed * 31) * 0x9e3779b97f4a7c15U >> 56);
  return bytes;
}

TEST_P(OfiWrites, asking_for_atomics_changes_nothing_for_messages_or_is_not_done) {
  const bool layered = std::string(GetParam()).find("ofi_rx") != std::string::npos;
  EXPECT_EQ(updating == nullptr, layered);
  if (!updating) return;
  EXPECT_EQ(updating->tx_attr->msg_order, list->tx_attr->msg_order);
  EXPECT_TRUE(updating->caps & FI_ATOMIC);
}

TEST_P(OfiWrites, a_write_is_in_place_when_it_is_complete_and_nowhere_else) {
  Side a, b;
  ASSERT_TRUE(a.opened && b.opened);
  ASSERT_TRUE(a.context.capabilities().writes);
  EXPECT_FALSE(a.context.capabilities().confirms);
  std::vector<std::byte> memory(3'000'000, std::byte{0x5a}), expected = memory;
  wire::Registration region;
  ASSERT_TRUE(b.context.register_memory(memory.data() + 1000, memory.size() - 2000, wire::Use::read_and_written_by_peers, region));
  const wire::Address to = a.context.insert(b.context.name());
  std::size_t offset = 0;
  for (const std::size_t n : {1UL, 8UL, 64UL, 65UL, 4096UL, 20'000UL, 1'000'003UL}) {
    const auto source = pattern(n, n);
    void* const descriptor = a.descriptor(source.data(), n);
    Done done;
    ASSERT_EQ(post(a, b, [&] { return a.context.write(to, source.data(), n, descriptor, region.base + offset, region.key, &done); }), 0) << n;
    ASSERT_TRUE(until(a, b, [&] { return done.times == 1; })) << n;
    EXPECT_EQ(done.error, 0);
    std::copy(source.begin(), source.end(), expected.begin() + static_cast<std::ptrdiff_t>(1000 + offset));
    EXPECT_EQ(memory, expected) << n;
    offset += n + 3;
  }
  std::vector<std::byte> room(2000);
  void* const descriptor = a.descriptor(room.data(), room.size());
  Done read;
  ASSERT_EQ(post(a, b, [&] { return a.context.read(to, room.data(), room.size(), descriptor, region.base + 77, region.key, read); }), 0);
  ASSERT_TRUE(until(a, b, [&] { return read.times == 1; }));
  EXPECT_TRUE(std::equal(room.begin(), room.end(), expected.begin() + 1077));
  b.context.deregister(region);
}

TEST_P(OfiWrites, what_a_write_announces_is_heard_when_its_bytes_are_in_place) {
  Side a, b;
  ASSERT_TRUE(a.opened && b.opened);
  ASSERT_EQ(a.context.capabilities().writes_with_data, !is_verbs());
  if (is_verbs()) GTEST_SKIP() << "ofi_rxm takes such a write for an empty message";
  std::vector<std::byte> memory(100'000);
  wire::Registration region;
  ASSERT_TRUE(b.context.register_memory(memory.data(), memory.size(), wire::Use::written_by_peers, region));
  const wire::Address to = a.context.insert(b.context.name());
  const auto source = pattern(50'000, 1);
  void* const descriptor = a.descriptor(source.data(), source.size());
  Done done[2];
  const auto write = [&](std::size_t n, std::size_t offset, std::uint32_t immediate, Done& one) {
    return post(a, b, [&] { return a.context.write_with_data(to, source.data(), n, descriptor, region.base + offset, region.key, immediate, &one); });
  };
  ASSERT_EQ(write(source.size(), 0, 0xfedcba98, done[0]), 0);
  ASSERT_TRUE(until(a, b, [&] { return !b.announced.empty(); }));
  EXPECT_TRUE(std::equal(source.begin(), source.end(), memory.begin()));
  ASSERT_EQ(write(8, 60'000, 7, done[1]), 0);
  ASSERT_TRUE(until(a, b, [&] { return b.announced.size() == 2 && done[0].times && done[1].times; }));
  EXPECT_EQ(b.announced, (std::vector<std::uint32_t>{0xfedcba98, 7}));
  EXPECT_TRUE(b.messages.empty());
  // And a message after it is one.
  Done sent;
  ASSERT_GE(post(a, b, [&] { return a.context.send(to, source.data(), 100, descriptor, sent); }), 0);
  ASSERT_TRUE(until(a, b, [&] { return b.messages.size() == 1; }));
  b.context.deregister(region);
}

template <typename T>
void update_everything(Side& a, Side& b, wire::AtomicType type, const std::function<int(const std::function<int()>&)>& post,
                       const std::function<bool(const std::function<bool()>&)>& until) {
  alignas(8) T memory[4] = {T{100}, T{100}, T{100}, T{100}};
  wire::Registration region;
  ASSERT_TRUE(b.context.register_memory(memory, sizeof memory, wire::Use::read_and_written_by_peers, region));
  const wire::Address to = a.context.insert(b.context.name());
  int tried = 0;
  const auto update = [&](wire::Atomic what, T operand, const T* compare, T* before, std::size_t at) {
    if (!a.context.has_atomic(what, type, before)) return false;
    Done done;
    EXPECT_EQ(post([&] { return a.context.atomic(to, what, type, &operand, compare, before, nullptr, region.base + at * sizeof(T), region.key, done); }), 0);
    EXPECT_TRUE(until([&] { return done.times == 1; }));
    EXPECT_EQ(done.error, 0);
    ++tried;
    return true;
  };
  T before{};
  if (update(wire::Atomic::add, T{23}, nullptr, &before, 0)) { EXPECT_TRUE(before == T{100} && memory[0] == T{123}); }
  if (update(wire::Atomic::add, T{7}, nullptr, nullptr, 1)) { EXPECT_EQ(memory[1], T{107}); }
  if (update(wire::Atomic::max, T{200}, nullptr, &before, 2)) { EXPECT_TRUE(before == T{100} && memory[2] == T{200}); }
  if (update(wire::Atomic::replace, T{5}, nullptr, &before, 3)) { EXPECT_TRUE(before == T{100} && memory[3] == T{5}); }
  const T five{5}, six{6};
  if (update(wire::Atomic::compare_swap, T{9}, &six, &before, 3)) { EXPECT_TRUE(before == T{5} && memory[3] == T{5}); }
  if (update(wire::Atomic::compare_swap, T{9}, &five, &before, 3)) { EXPECT_TRUE(before == T{5} && memory[3] == T{9}); }
  if (update(wire::Atomic::read, T{}, nullptr, &before, 3)) { EXPECT_EQ(before, T{9}); }
  EXPECT_EQ(tried == 0, !a.context.capabilities().atomics);
  b.context.deregister(region);
}

TEST_P(OfiWrites, atomics_do_what_they_say_where_the_provider_has_them) {
  Side a, b;
  ASSERT_TRUE(a.opened && b.opened);
  EXPECT_EQ(a.context.capabilities().atomics, updating != nullptr);
  EXPECT_EQ(a.context.capabilities().passive_target, is_verbs());
  EXPECT_FALSE(a.context.capabilities().coherent_atomics);
  const auto again = [&](const std::function<int()>& call) { return post(a, b, call); };
  const auto wait = [&](const std::function<bool()>& enough) { return until(a, b, enough); };
  update_everything<std::int32_t>(a, b, wire::AtomicType::int32, again, wait);
  update_everything<std::uint64_t>(a, b, wire::AtomicType::uint64, again, wait);
  update_everything<float>(a, b, wire::AtomicType::float32, again, wait);
  update_everything<double>(a, b, wire::AtomicType::float64, again, wait);
}

}  // namespace
}  // namespace heddle::ofi
