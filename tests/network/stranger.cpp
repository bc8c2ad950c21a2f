// Sends what does not belong to a job to one of its ports, through the network that the library would choose, as another job's process would:
//
//   stranger ADDRESS PORT
//
// frames with a wrong key, cut ones, random bytes, and nothing at all.
#include <arpa/inet.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "frames.hpp"
#include "transport/net/wires.hpp"
#include "transport/tcp/context.hpp"
#include "transport/tcp/factory.hpp"

using namespace heddle;

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  net::Network network;
  std::string problem;
  tcp::set_key(0x5eed);
  // As the library asks, or ofi_rxm would not even connect.
  if (!net::choose({true, 64 << 10, true}, network, nullptr, problem) || !network.factory->open(problem)) {
    std::fprintf(stderr, "stranger: %s\n", problem.c_str());
    return 1;
  }
  const std::unique_ptr<wire::Context> opened = network.factory->new_context();
  wire::Context& context = *opened;
  if (!context.open(65536, false, problem)) {
    std::fprintf(stderr, "stranger: %s\n", problem.c_str());
    return 1;
  }
  sockaddr_storage any{};
  auto& where = reinterpret_cast<sockaddr_in&>(any);
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<std::uint16_t>(std::atoi(argv[2])));
  inet_pton(AF_INET, argv[1], &where.sin_addr);
  const wire::Address to = context.insert(network.factory != &tcp::factory ? std::string(reinterpret_cast<const char*>(&where), sizeof where)
                                                              : tcp::encode({4711, {{tcp::Endpoint::of(any), 0, true}}}));
  std::mt19937_64 random(7);
  int sent = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(40);
  const auto send = [&](const std::vector<std::byte>& bytes) {
    static wire::Operation operation;
    wire::Event events[8];
    while (std::chrono::steady_clock::now() < deadline) {
      const int code = context.send(to, bytes.data(), bytes.size(), nullptr, operation);
      context.poll(events, 8);
      if (code >= 0) {
        ++sent;
        return;
      }
      if (code != -EAGAIN) return;
    }
  };
  auto frame = test::make_frame({{net::Control::hello, 24}, {test::whole, 64}, {test::with_token, 8}, {test::with_token, 8}});
  send(frame);  // in order, but for the key
  for (const std::size_t n : {1UL, 8UL, 23UL, 24UL, 48UL, frame.size() - 1}) send({frame.begin(), frame.begin() + static_cast<long>(n)});
  for (int i = 0; i < 100; ++i) {
    std::vector<std::byte> noise(random() % 4000);
    for (auto& byte : noise) byte = static_cast<std::byte>(random());
    send(noise);
  }
  wire::Event events[8];
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);  // let them leave
  while (std::chrono::steady_clock::now() < end) context.poll(events, 8);
  std::printf("sent %d\n", sent);
  context.close();
  return sent > 50 ? 0 : 1;
}
