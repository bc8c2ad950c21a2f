// Fuzzes what a tcp::Context makes of what arrives (tcp_peer.hpp says what is checked): the input is a list of steps, in which strangers and
// peers connect, greet, send packets, good ones and others, in pieces of any size, while the context sends and reads.
//
// With clang this is a libFuzzer target (tcp_fuzz, with AddressSanitizer). Without, and always in the tests, a driver of its own changes
// good lists: tcp_fuzz_driver [SECONDS [SEED]] FILES…, each file being one list of the corpus.
#include <cstdio>
#include <cstdlib>

#include "fuzz_corpus.hpp"
#include "tcp_peer.hpp"

using namespace heddle;
using namespace heddle::test;

namespace {

enum class Step : std::uint8_t {
  connect,   ///< peer, options
  message,   ///< line, size, how many
  request,   ///< line, region, what is wrong with it, offset, size
  reply,     ///< line, read, what is wrong with it
  refusal,   ///< line, read
  packet,    ///< line, kind, version, length said, bytes there, id: as they come
  rubbish,   ///< line, bytes: as they come
  damage,    ///< line, place, bit
  send,      ///< line, how much, whether to wait
  read,      ///< peer, size
  post,      ///< peer, size
  lend,      ///< size
  withdraw,  ///< region
  stall,     ///< line
  close,     ///< line, reset
  look,      ///< times
  answer,    ///< line, what is wrong with it: a welcome, or a choice
  write,     ///< line, region, what is wrong with it, offset, size: a peer's
  ask,       ///< line, how far back or ahead: whether writes are in place
  confirm,   ///< line, which: the answer to what the context asks
  put,       ///< peer, size, how: the context's write
  settle_puts,  ///< peer: the context asks whether its writes are in place
  count
};

/// Takes numbers from the front of an input; 0 at its end.
struct Input {
  const std::uint8_t* at;
  const std::uint8_t* end;
  std::uint8_t byte() { return at < end ? *at++ : 0; }
  std::uint16_t two() { return static_cast<std::uint16_t>(byte() | byte() << 8); }
  std::uint64_t number(int bytes) {
    std::uint64_t n = 0;
    for (int i = 0; i < bytes; ++i) n |= std::uint64_t{byte()} << 8 * i;
    return n;
  }
  /// Mostly small, and at all the borders that the context knows.
  std::size_t size() {
    const std::uint8_t kind = byte();
    switch (kind % 8) {
      case 0: return 0;
      case 1: return kind / 8;
      case 2: return byte();
      case 3: return two();
      case 4: return largest - kind / 8;
      case 5: return 4096 - 16 + kind / 8;
      case 6: return (64 << 10) - 16 + kind / 8;
      default: return 1000 * std::size_t{byte()};
    }
  }
};

class Play {
 public:
  Play(const std::uint8_t* data, std::size_t size) : in_{data, data + size}, other_(1 + in_.byte() % 16) {
    other_.register_region(1000);
    names_ = {Stranger::listener_name(0), Stranger::listener_name(1), name_of(2, {place_of(loopback + 1, 1)}),
              name_of(~std::uint64_t{1}, {place_of(loopback + 1, 65'535)}), Stranger::searched_name(0), Stranger::searched_name(1),
              name_of(6, {place_of(loopback + 1, 1), place_of(loopback + 2, 1)}), std::string(other_.context.name())};
  }

  void run() {
    for (int steps = 0; in_.at < in_.end && steps < 200; ++steps) step(static_cast<Step>(in_.byte() % static_cast<unsigned>(Step::count)));
    for (std::size_t i = 0; i < other_.lines.size(); ++i) {
      settle();
      other_.send(*other_.lines[i], ~std::size_t{0});
      unsettled_ = other_.lines[i].get();
    }
    other_.finish();
  }

 private:
  Line* line() {
    const std::size_t which = in_.byte();
    return other_.lines.empty() ? nullptr : other_.lines[which % other_.lines.size()].get();
  }
  const std::string& peer() { return names_[in_.byte() % (names_.size() - 1)]; }  // not oneself

  void settle() {
    if (unsettled_) other_.settle();
    unsettled_ = nullptr;
  }

  void step(Step what) {
    if (what == Step::connect) return connect();
    if (what == Step::put || what == Step::settle_puts) {
      settle();
      const std::string& to = peer();
      const std::size_t bytes = what == Step::put ? in_.size() : 0;
      const bool uncopied = what == Step::put && in_.byte() % 2;
      if (other_.posted.size() > 64) return;
      if (what == Step::put) other_.post_write(to, bytes, uncopied);
      else other_.post_confirm(to);
      return other_.settle();
    }
    if (what == Step::read || what == Step::post) {
      settle();
      const std::string& to = peer();
      const std::size_t bytes = in_.size();
      if (other_.posted.size() > 64) return;
      if (what == Step::read) other_.post_read(to, bytes);
      else other_.post_message(to, std::min(bytes, largest));
      return other_.settle();
    }
    if (what == Step::lend) {
      const std::size_t bytes = in_.size();
      if (other_.regions.size() < 8) other_.register_region(bytes, other_.regions.size() % 2 == 0);
      return;
    }
    if (what == Step::withdraw) {
      const std::size_t which = in_.byte() % other_.regions.size();
      settle();
      if (which) other_.withdraw_region(which);
      return other_.settle();
    }
    if (what == Step::look) {
      for (int n = in_.byte() % 8; n; --n) other_.look();
      return;
    }
    if (Line* const at = line()) on_line(what, *at);
  }

  void connect() {
    const std::uint8_t who = in_.byte(), how = in_.byte();
    if (other_.lines.size() >= 8) return;
    settle();
    Line& line = other_.connect();
    if (how & 1) return;  // says nothing yet
    const std::uint64_t from = identity_of(names_[who % names_.size()]);
    other_.greet(line, from, how & 2 ? job ^ in_.byte() : job, how & 8);
    if (!(how & 4)) other_.send(line, ~std::size_t{0});
    other_.settle();
  }

  void on_line(Step what, Line& line) {
    if (line.pending.size() > std::size_t{1} << 20) return other_.send(line, 0);
    switch (what) {
      case Step::message: {
        const std::size_t bytes = in_.size();
        for (unsigned n = 1 + in_.byte() % 16; n && line.pending.size() < std::size_t{1} << 19; --n) {
          const auto body = some(std::min(bytes, std::size_t{100'000}));
          other_.add(line, tcp::PacketKind::message, in_.byte(), body.data(), body.size());
        }
        break;
      }
      case Step::request: {
        const std::uint64_t key = other_.keys[in_.byte() % other_.keys.size()];
        const std::uint8_t fault = in_.byte();
        tcp::ReadRequest request{key, in_.size(), in_.size()};
        if (fault % 8 == 1) request.key ^= std::uint64_t{1} << in_.byte() % 64;
        if (fault % 8 == 2) request.offset = -request.offset;
        if (fault % 8 == 3) request.bytes = -request.bytes;
        if (fault % 8 == 4) request.bytes = std::uint64_t{1} << in_.byte() % 64;
        for (unsigned n = 1 + fault / 64; n; --n) other_.add(line, tcp::PacketKind::request, next_id_++, &request, sizeof request);
        break;
      }
      case Step::reply:
      case Step::refusal: {
        const std::uint8_t which = in_.byte(), fault = what == Step::reply ? in_.byte() : 0;
        const Posted* read = other_.waiting_read(which);
        if (!read) break;
        std::size_t bytes = what == Step::reply ? read->bytes : 0;
        if (fault % 16 == 1) ++bytes;
        if (fault % 16 == 2) bytes = in_.size();
        const auto body = some(bytes);
        other_.add(line, what == Step::reply ? tcp::PacketKind::reply : tcp::PacketKind::refusal, read->id + (fault % 16 == 3), body.data(), bytes);
        break;
      }
      case Step::write: {
        const std::uint64_t key = other_.keys[in_.byte() % other_.keys.size()];
        const std::uint8_t fault = in_.byte();
        tcp::WriteHead where{key, in_.size()};
        std::size_t bytes = std::min(in_.size(), std::size_t{100'000});
        std::uint64_t id = ++other_.last_number(line);
        auto kind = tcp::PacketKind::write;
        if (fault % 16 == 1) where.key ^= std::uint64_t{1} << in_.byte() % 64;
        if (fault % 16 == 2) where.offset = -where.offset;
        if (fault % 16 == 3) id = in_.two();
        if (fault % 16 == 4) id = static_cast<std::uint32_t>(id - in_.byte() % 4);
        if (fault % 16 == 5) where.offset += std::uint64_t{1} << in_.byte() % 64;
        if (fault & 16) {
          kind = tcp::PacketKind::write_with_data;
          id |= std::uint64_t{in_.byte()} << 32;
        }
        auto body = some(sizeof where + bytes);
        std::memcpy(body.data(), &where, sizeof where);
        const std::size_t said = fault % 16 == 6 ? sizeof where + in_.size() : body.size();
        if (fault % 16 == 7) body.resize(in_.byte() % sizeof where);
        other_.add(line, kind, id, body.data(), body.size(), static_cast<std::uint32_t>(fault % 16 == 7 ? body.size() : said), tcp::packet_version);
        break;
      }
      case Step::ask: {
        const tcp::WriteAwaited question{static_cast<std::uint32_t>(other_.last_number(line) - in_.byte() % 4 + in_.byte() % 2), 0};
        other_.add(line, tcp::PacketKind::confirm, next_id_++, &question, sizeof question);
        break;
      }
      case Step::confirm:
        if (const Posted* read = other_.waiting_read(in_.byte(), true)) other_.add(line, tcp::PacketKind::confirmed, read->id, nullptr, 0);
        break;
      case Step::packet: {
        const auto kind = static_cast<tcp::PacketKind>(in_.byte() % 16 ? in_.byte() % 11 : in_.two());
        const auto version = static_cast<std::uint16_t>(in_.byte() % 16 ? tcp::packet_version : in_.two());
        const auto said = static_cast<std::uint32_t>(in_.byte() % 2 ? in_.size() : -in_.size());
        const std::uint64_t id = in_.number(in_.byte() % 9);
        const auto body = some(std::min<std::size_t>(said, in_.size()));
        other_.add(line, kind, id, body.data(), body.size(), said, version);
        break;
      }
      case Step::rubbish:
        for (unsigned n = in_.byte(); n && in_.at < in_.end; --n) line.pending.push_back(static_cast<std::byte>(in_.byte()));
        break;
      case Step::damage:
        if (const std::size_t where = in_.size(); where < line.pending.size()) line.pending[where] ^= static_cast<std::byte>(1U << in_.byte() % 8);
        break;
      case Step::send: {
        if (unsettled_ && unsettled_ != &line) settle();
        const std::size_t bytes = in_.byte() % 4 ? in_.size() : ~std::size_t{0};
        other_.send(line, bytes);
        unsettled_ = &line;
        if (in_.byte() % 2) settle();
        break;
      }
      case Step::answer: {
        const std::uint64_t key = in_.byte() % 8 == 1 ? job + 1 : job;
        if (line.meant) other_.welcome(line, key);
        else if (line.greeter) other_.choose(line, key);
        break;
      }
      case Step::stall:
        settle();
        other_.stall(line, !line.stalled);
        break;
      case Step::close:
        settle();
        other_.shut(line, in_.byte() % 2);
        other_.settle();
        break;
      default: break;
    }
  }

  std::vector<std::byte> some(std::size_t bytes) {
    std::vector<std::byte> body(bytes);
    fill(body.data(), bytes, ++seed_);
    return body;
  }

  Input in_;
  Stranger other_;
  std::vector<std::string> names_;
  Line* unsettled_ = nullptr;  ///< something was sent there, and not awaited
  std::uint64_t next_id_ = 100'000;
  std::size_t seed_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static unsigned trials = 0;
  // Closed connections keep their addresses busy for a minute.
  tcp::set_address(place_of(loopback + 100 + trials++ % 50'000, 0));
  tcp::set_key(job);
  Play(data, size).run();
  return 0;
}

#ifndef FUZZ_DRIVER
namespace heddle::ofi {  // of what libFuzzer's program leaves out
void ask_when_silent(int, int) noexcept {}
bool is_silent(int, int) noexcept { return false; }
}  // namespace heddle::ofi
#else
#include <chrono>
#include <random>
#include <string>

namespace {

using List = std::vector<std::uint8_t>;

std::uint8_t of(Step step) { return static_cast<std::uint8_t>(step); }
constexpr std::uint8_t everything = 0, wait = 1;                 // of Step::send
constexpr std::uint8_t small_size(unsigned n) { return static_cast<std::uint8_t>(n * 8 + 1); }  // up to 31 bytes
constexpr std::uint8_t thousands = 7, greatest = 4, none = 0;

List join(std::initializer_list<List> parts) {
  List all{7};
  for (const List& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::vector<List> seeds() {
  const List hello{of(Step::connect), 2, 0}, high{of(Step::connect), 3, 0}, silent{of(Step::connect), 2, 1}, asks{of(Step::connect), 2, 8};
  const auto send = [](std::uint8_t line) { return List{of(Step::send), line, everything, wait}; };
  const auto send_some = [](std::uint8_t line, std::uint8_t n) { return List{of(Step::send), line, 1, small_size(n), wait}; };
  const auto messages = [](std::uint8_t line, std::uint8_t size, std::uint8_t n) { return List{of(Step::message), line, size, n}; };
  const auto chooses = [](std::uint8_t line) { return List{of(Step::answer), line, 0}; };
  const auto write = [](std::uint8_t region, auto... place) { return List{of(Step::write), 0, region, 0, static_cast<std::uint8_t>(place)...}; };
  const auto asks_for = [](std::uint8_t line) { return List{of(Step::ask), line, 0, 0}; };
  const List lends{of(Step::lend), thousands, 250, of(Step::lend), thousands, 250};
  const List read{of(Step::read), 2, thousands, 90}, reply{of(Step::reply), 0, 0, 0};
  return {
      join({hello, messages(0, small_size(9), 3), send(0)}),
      join({hello, messages(0, small_size(9), 0), send_some(0, 5), send_some(0, 17), send(0)}),
      join({hello, messages(0, greatest, 15), send_some(0, 9), send(0), messages(0, greatest, 15), send_some(0, 30), send(0)}),
      join({hello, {of(Step::request), 0, 0, 0, small_size(3), small_size(20)}, send(0)}),
      join({hello, {of(Step::lend), thousands, 250, of(Step::stall), 0, of(Step::request), 0, 1, 192, 0, thousands, 200}, send(0), {of(Step::withdraw), 1}}),
      join({hello, {of(Step::lend), thousands, 250, of(Step::stall), 0, of(Step::request), 0, 1, 192, 0, thousands, 200}, send(0),
            {of(Step::post), 2, greatest, of(Step::stall), 0, of(Step::look), 7}}),
      join({hello, {of(Step::lend), thousands, 250, of(Step::lend), 1, of(Step::stall), 0, of(Step::request), 0, 1, 0, 0, thousands, 200,
            of(Step::request), 0, 2, 64, 0, 0}, send(0), {of(Step::withdraw), 2, of(Step::post), 2, greatest, of(Step::read), 2, greatest}, send(0)}),
      join({hello, {of(Step::lend), thousands, 250, of(Step::stall), 0, of(Step::request), 0, 1, 0, 0, thousands, 200}, send(0),
            {of(Step::post), 2, greatest, of(Step::rubbish), 0, 16}, List(16, 9), send(0)}),
      join({hello, read, reply, send_some(0, 24), send_some(0, 30), send(0)}),
      join({hello, {of(Step::read), 2, small_size(5)}, reply, send_some(0, 21), send(0)}),
      join({hello, read, {of(Step::refusal), 0, 0}, send(0)}),
      join({hello, read, read, messages(0, small_size(8), 2), reply, messages(0, small_size(8), 2), {of(Step::reply), 0, 1, 0}, send(0)}),
      join({hello, hello, read, reply, send_some(0, 20), {of(Step::reply), 1, 0, 0}, send(1), send(0)}),
      join({hello, hello, read, reply, send_some(0, 20), {of(Step::rubbish), 1, 20}, List(20, 9), send(1), send(0)}),
      join({high, {of(Step::connect), 3, 0}, {of(Step::post), 3, greatest}, {of(Step::close), 0, 0}, {of(Step::post), 3, greatest}}),
      join({{of(Step::post), 0, greatest, of(Step::connect), 0, 0, of(Step::post), 0, 7, 3, of(Step::close), 0, 0, of(Step::read), 0, thousands, 5}}),
      join({{of(Step::post), 1, greatest, of(Step::connect), 1, 0, of(Step::post), 1, 7, 3, of(Step::read), 1, thousands, 5, of(Step::reply), 1, 0, 0}, send(1)}),
      join({silent, {of(Step::rubbish), 0, 16}, List(16, 1), send(0)}),
      join({asks, chooses(0), messages(0, small_size(9), 3), send(0), {of(Step::post), 2, greatest}}),
      join({asks, asks, chooses(1), messages(1, small_size(9), 3), send(1), {of(Step::close), 0, 1, of(Step::post), 2, greatest}}),
      join({asks, messages(0, small_size(9), 3), send(0)}),
      join({asks, {of(Step::answer), 0, 1}, messages(0, small_size(9), 3), send(0)}),
      join({asks, {of(Step::rubbish), 0, 16}, List(16, 9), send(0)}),
      join({{of(Step::post), 4, greatest, of(Step::answer), 0, 0}, send(0), {of(Step::read), 4, thousands, 5, of(Step::reply), 0, 0, 0}, send(0)}),
      join({{of(Step::read), 5, thousands, 90, of(Step::post), 5, 7, 3, of(Step::answer), 0, 0}, send_some(0, 7), send(0), reply, send(0)}),
      join({{of(Step::post), 4, greatest, of(Step::answer), 0, 1}, send(0), {of(Step::post), 4, 7, 3}}),
      join({{of(Step::post), 5, greatest, of(Step::connect), 5, 0, of(Step::answer), 0, 0}, send(0), {of(Step::post), 5, 7, 3}, messages(1, greatest, 3), send(1)}),
      join({{of(Step::post), 4, greatest, of(Step::connect), 4, 8}, chooses(1), messages(1, greatest, 3), {of(Step::answer), 0, 0}, send(0), send(1), {of(Step::post), 4, 7, 3}}),
      join({{of(Step::post), 4, greatest, of(Step::close), 0, 0, of(Step::read), 6, greatest}}),
      join({hello, lends, write(2, small_size(3), small_size(20)), write(1, small_size(23), small_size(9)), asks_for(0), send(0)}),
      join({hello, lends, write(2, none, thousands, 200), asks_for(0), send_some(0, 20), send_some(0, 30), send(0)}),
      join({hello, lends, write(2, none, thousands, 200), send_some(0, 30), {of(Step::send), 0, 1, thousands, 100, wait}, {of(Step::withdraw), 2}, send(0)}),
      join({hello, lends, write(2, thousands, thousands, 200), send(0)}),
      join({hello, hello, lends, write(2, none, thousands, 90), send_some(0, 30), {of(Step::write), 1, 2, 4, none, small_size(8), 1}, send(1), send(0)}),
      join({hello, lends, write(2, thousands, 249, 3, 1000 % 256, 1000 / 256), send(0)}),
      join({hello, lends, write(2, thousands, 249, 3, 1001 % 256, 1001 / 256), send(0)}),
      join({hello, lends, {of(Step::write), 0, 0, 0, small_size(1), small_size(8)}, send(0)}),
      join({hello, lends, {of(Step::write), 0, 2, 16, small_size(1), small_size(8), 77}, send(0), {of(Step::write), 0, 2, 16, none, thousands, 90, 78}, send(0)}),
      join({hello, hello, lends, write(2, none, small_size(8)), {of(Step::write), 1, 2, 0, small_size(9), small_size(8)}, {of(Step::ask), 1, 0, 0}, send(1), send(0)}),
      join({{of(Step::put), 0, small_size(9), 0, of(Step::put), 0, thousands, 90, 1, of(Step::settle_puts), 0, of(Step::confirm), 0, 0}, send(0)}),
      join({hello, {of(Step::put), 2, small_size(9), 0, of(Step::settle_puts), 2, of(Step::settle_puts), 2, of(Step::confirm), 0, 1}, send(0),
            {of(Step::confirm), 0, 0}, send(0), {of(Step::reply), 0, 0, 0}, send(0)}),
      join({{of(Step::put), 1, small_size(20), 1, of(Step::connect), 1, 0, of(Step::put), 1, thousands, 9, 0, of(Step::settle_puts), 1, of(Step::confirm), 1, 0}, send(1)}),
      join({hello, {of(Step::packet), 0, 1, 1, 1, 0, small_size(5), 0, small_size(30)}, send(0)}),
      join({hello, messages(0, small_size(9), 3), {of(Step::damage), 0, small_size(6), 0}, send(0)}),
  };
}

void mutate(List& list, std::mt19937_64& random, const std::vector<List>& corpus) {
  for (auto n = random() % 4 + 1; n; --n) {
    const std::size_t at = list.empty() ? 0 : random() % list.size();
    const auto place = list.begin() + static_cast<std::ptrdiff_t>(at);
    switch (random() % 7) {
      case 0: if (!list.empty()) list[at] ^= static_cast<std::uint8_t>(1U << random() % 8); break;
      case 1: if (!list.empty()) list[at] = static_cast<std::uint8_t>(random()); break;
      case 2: if (!list.empty()) list.erase(place); break;
      case 3: list.insert(place, static_cast<std::uint8_t>(random())); break;
      case 4: list.insert(place, static_cast<std::uint8_t>(random() % static_cast<unsigned>(Step::count))); break;
      case 5: {  // what another one does
        const List& other = corpus[random() % corpus.size()];
        const std::size_t from = random() % (other.size() + 1);
        list.insert(place, other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
        break;
      }
      default:  // the same once more
        list.insert(list.end(), list.begin() + static_cast<std::ptrdiff_t>(at), list.end());
    }
    if (list.size() > 300) list.resize(300);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 5;
  std::mt19937_64 random(argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 1);
  auto corpus = seeds();
  heddle::test::read_corpus(argc, argv, 1 << 12, corpus);
  heddle::test::write_corpus("steps", corpus);
  const auto play = [](const List& list) {
    // What failed is to be found again: by giving this file to the driver.
    if (const char* path = std::getenv("FUZZ_KEEP")) heddle::test::write_input(path, list);
    LLVMFuzzerTestOneInput(list.data(), list.size());
  };
  for (const auto& list : corpus) play(list);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  unsigned long runs = 0;
  for (; std::chrono::steady_clock::now() < end; ++runs) {
    List list = corpus[random() % corpus.size()];
    mutate(list, random, corpus);
    play(list);
  }
  std::printf("%lu lists of steps\n", runs);
  return 0;
}
#endif
