// The order in which a peer's addresses are tried, and their form on the way.
#include "transport/tcp/address.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace heddle::tcp {
namespace {

Endpoint at(const std::string& text, std::uint16_t port = 0) {
  sockaddr_storage any{};
  auto& in = reinterpret_cast<sockaddr_in&>(any);
  auto& in6 = reinterpret_cast<sockaddr_in6&>(any);
  if (inet_pton(AF_INET, text.c_str(), &in.sin_addr) == 1) any.ss_family = AF_INET;
  else if (inet_pton(AF_INET6, text.c_str(), &in6.sin6_addr) == 1) any.ss_family = AF_INET6;
  Endpoint endpoint = Endpoint::of(any);
  endpoint.port = port;
  return endpoint;
}

HostAddress own(const std::string& text, unsigned prefix, std::uint32_t megabits, bool offered = true, bool linked = true) {
  HostAddress one;
  one.address = at(text);
  one.prefix = prefix + (one.address.is_v4() ? 96 : 0);
  one.interface = "if" + text;
  one.megabits = megabits;
  one.offered = offered;
  one.linked = linked;
  return one;
}

OfferedAddress offer(const std::string& text, std::uint32_t megabits, bool linked = true) { return {at(text, 4000), megabits, linked}; }

/// Where packets leave, by the beginning of where they go; nothing: no route.
std::map<std::string, std::string>& routes() {
  static std::map<std::string, std::string> table;
  return table;
}
bool route(const Endpoint& to, Endpoint& from) noexcept {
  std::string best;
  for (const auto& [beginning, source] : routes())
    if (to.text().rfind(beginning, 0) == 0 && beginning.size() >= best.size()) best = beginning, from = at(source);
  return routes().count(best) > 0;
}

std::vector<std::string> order(const std::vector<OfferedAddress>& peer, const std::vector<HostAddress>& host) {
  std::vector<std::string> texts;
  for (const Path& path : paths_to({1, peer}, host, route)) texts.push_back(path.to.text());
  return texts;
}
using Texts = std::vector<std::string>;

TEST(TcpAddress, the_network_that_both_share_comes_before_one_through_a_router) {
  routes() = {{"10.1.0.", "10.1.0.1"}, {"", "10.1.0.1"}};
  EXPECT_EQ(order({offer("192.168.7.2", 1000), offer("10.1.0.2", 1000)}, {own("10.1.0.1", 24, 1000)}), (Texts{"10.1.0.2", "192.168.7.2"}));
}

TEST(TcpAddress, the_fastest_way_is_first_as_its_slower_end_has_it) {
  routes() = {{"10.1.0.", "10.1.0.1"}, {"10.2.0.", "10.2.0.1"}, {"10.3.0.", "10.3.0.1"}};
  const std::vector<HostAddress> host = {own("10.1.0.1", 24, 1000), own("10.2.0.1", 24, 100'000), own("10.3.0.1", 24, 25'000)};
  EXPECT_EQ(order({offer("10.1.0.2", 100'000), offer("10.2.0.2", 10'000), offer("10.3.0.2", 25'000)}, host), (Texts{"10.3.0.2", "10.2.0.2", "10.1.0.2"}));
  EXPECT_EQ(order({offer("10.1.0.2", 0), offer("10.2.0.2", 0), offer("10.3.0.2", 10)}, host), (Texts{"10.3.0.2", "10.1.0.2", "10.2.0.2"})) << "not known is slow";
}

TEST(TcpAddress, a_fast_network_behind_routers_comes_before_a_slow_one_that_both_share) {
  routes() = {{"10.1.0.", "10.1.0.1"}, {"10.200.", "10.200.1.1"}};
  const std::vector<HostAddress> host = {own("10.1.0.1", 24, 1000), own("10.200.1.1", 30, 100'000)};
  const auto paths = paths_to({1, {offer("10.1.0.2", 1000), offer("10.200.1.5", 100'000)}}, host, route);
  ASSERT_EQ(paths.size(), 2U);
  EXPECT_EQ(paths[0].to.text(), "10.200.1.5");
  EXPECT_FALSE(paths[0].direct);
  EXPECT_EQ(reason_of(paths[0]), "100000 Mb/s, through a router");
  EXPECT_EQ(text_of(paths[0].to, paths[0].own, host), "if10.200.1.1 10.200.1.1 to 10.200.1.5");
  EXPECT_TRUE(paths[1].direct);
  EXPECT_EQ(paths[1].to.port, 4000);
}

TEST(TcpAddress, but_not_where_the_way_to_it_leaves_over_the_slow_one) {
  routes() = {{"10.1.0.", "10.1.0.1"}, {"10.200.", "10.1.0.1"}};
  EXPECT_EQ(order({offer("10.200.1.5", 100'000), offer("10.1.0.2", 1000)}, {own("10.1.0.1", 24, 1000)}), (Texts{"10.1.0.2", "10.200.1.5"}));
}

TEST(TcpAddress, what_can_hardly_lead_there_comes_last_but_comes) {
  routes() = {{"10.1.0.", "10.1.0.1"}, {"10.2.0.", "10.2.0.1"}, {"10.4.0.", "10.4.0.1"}, {"172.17.", "172.17.0.1"}};
  const std::vector<HostAddress> host = {own("10.1.0.1", 24, 100), own("10.2.0.1", 24, 100'000, true, false), own("10.4.0.1", 24, 100'000, false),
                                         own("172.17.0.1", 16, 100'000)};
  EXPECT_EQ(order({offer("10.5.0.2", 9), offer("172.17.0.1", 100'000), offer("10.2.0.2", 100'000), offer("10.4.0.2", 100'000), offer("10.1.0.3", 100, false),
                   offer("10.1.0.2", 10)}, host),
            (Texts{"10.1.0.2", "10.4.0.2", "10.2.0.2", "10.1.0.3", "172.17.0.1", "10.5.0.2"}))
      << "good; not on HEDDLE_NET; without a link; an address of both hosts; no route";
}

TEST(TcpAddress, ipv4_comes_first_among_equals_and_then_the_order_of_the_peer) {
  routes() = {{"fd00:", "fd00::1"}, {"10.", "10.1.0.1"}};
  EXPECT_EQ(order({offer("fd00::2", 10), offer("10.1.0.3", 10), offer("10.1.0.2", 10)}, {own("fd00::1", 64, 10), own("10.1.0.1", 24, 10)}),
            (Texts{"10.1.0.3", "10.1.0.2", "fd00::2"}));
}

TEST(TcpAddress, where_a_search_was_in_vain_the_next_one_comes_last) {
  routes() = {{"10.1.0.", "10.1.0.1"}, {"10.2.0.", "10.2.0.1"}};
  const std::vector<HostAddress> host = {own("10.1.0.1", 24, 1000), own("10.2.0.1", 24, 100)};
  Experience experience;
  const auto ways = [&](const std::string& number) {
    auto paths = paths_to({1, {offer("10.1.0." + number, 1000), offer("10.2.0." + number, 1000)}}, host, route);
    experience.sort(paths);
    return paths;
  };
  const auto first = [&](const std::string& number) { return ways(number)[0].to.text(); };
  const auto fails = [&](const std::string& number) {
    auto paths = ways(number);
    std::sort(paths.begin(), paths.end(), [](const Path& a, const Path& b) { return a.own < b.own; });
    experience.learn({paths[0]}, paths[1]);
  };
  EXPECT_EQ(first("7"), "10.1.0.7");
  fails("7");
  EXPECT_EQ(first("7"), "10.2.0.7") << "to the same host";
  EXPECT_EQ(first("8"), "10.1.0.8") << "one host may be at fault itself";
  fails("7");
  EXPECT_EQ(first("8"), "10.1.0.8") << "one host may have many ranks";
  fails("8");
  EXPECT_EQ(first("9"), "10.2.0.9") << "two are not";
  EXPECT_EQ(reason_of(ways("9")[1]), "has led nowhere before");
  experience.learn({}, ways("9")[1]);
  EXPECT_EQ(first("9"), "10.1.0.9") << "it works after all";
  EXPECT_EQ(first("8"), "10.2.0.8");
}

TEST(TcpAddress, a_name_arrives_as_it_was_sent) {
  Name name{0x123456789abcdef0, {offer("10.1.0.2", 1000), offer("fd00:9::7", 400'000, false), offer("192.168.255.1", 0)}}, read;
  ASSERT_TRUE(decode(encode(name), read));
  EXPECT_EQ(read.identity, name.identity);
  ASSERT_EQ(read.addresses.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(read.addresses[i].address.text(), name.addresses[i].address.text());
    EXPECT_EQ(read.addresses[i].address.port, 4000);
    EXPECT_EQ(read.addresses[i].megabits, name.addresses[i].megabits);
    EXPECT_EQ(read.addresses[i].linked, name.addresses[i].linked);
  }
}

TEST(TcpAddress, of_too_many_addresses_the_first_ones_are_told) {
  Name name{1, {}};
  std::vector<HostAddress> host;
  for (int i = 0; i < 200; ++i) {
    const std::string text = i % 2 ? "10.0.1." + std::to_string(i) : "fd00::" + std::to_string(i);
    name.addresses.push_back(offer(text, 1));
    host.push_back(own(text, 24, 1));
  }
  const std::string bytes = encode(name);
  EXPECT_LE(bytes.size(), largest_name);
  Name read;
  ASSERT_TRUE(decode(bytes, read));
  EXPECT_EQ(read.addresses.size(), most_offered(host));
  EXPECT_GT(read.addresses.size(), 24U);
  for (std::size_t i = 0; i < read.addresses.size(); ++i) EXPECT_EQ(read.addresses[i].address.text(), name.addresses[i].address.text());
}

TEST(TcpAddress, bytes_that_are_no_name_are_refused_and_none_beyond_them_is_read) {
  const std::string good = encode({7, {offer("10.1.0.2", 1000), offer("fd00:9::7", 400'000)}});
  Name name;
  for (std::size_t n = 0; n < good.size(); ++n) {
    const std::vector<char> part(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n));  // its end is where a sanitizer looks
    EXPECT_FALSE(decode({part.data(), part.size()}, name)) << n;
  }
  std::mt19937 random(5);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<char> bytes(good.begin(), good.end());
    for (unsigned n = 1 + random() % 4; n; --n) bytes[random() % bytes.size()] = static_cast<char>(random());
    bytes.resize(random() % (bytes.size() + 1));
    const bool good = decode({bytes.data(), bytes.size()}, name);
    EXPECT_TRUE(!good || name.addresses.size() <= bytes.size() / 12);
  }
}

}  // namespace
}  // namespace heddle::tcp
