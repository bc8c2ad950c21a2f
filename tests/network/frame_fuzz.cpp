// Fuzzes the check of frames and the walk over their records: no byte outside may be read, and what is accepted must be whole.
//
// With clang this is a libFuzzer target (frame_fuzz, with AddressSanitizer). Without, and always in the tests, a driver of its own
// mutates good frames: frame_fuzz_driver [SECONDS [SEED]] FILES…, each file being one frame of the corpus.
#include <cstdio>
#include <cstdlib>

#include "frames.hpp"
#include "fuzz_corpus.hpp"

using namespace heddle;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static test::GuardedBytes memory(1 << 16);
  [[maybe_unused]] static const bool registered = (test::register_modules(), true);
  size &= ~std::size_t{7};
  if (size > memory.room()) return 0;
  std::byte* at = memory.end() - size;
  if (size) std::memcpy(at, data, size);
  if (net::check_frame(at, size, test::key, test::processes) != net::Verdict::good) return 0;
  // As the receiver goes over it.
  unsigned sum = 0;
  std::size_t place = sizeof(net::FrameHead);
  while (place < size) {
    const Record& record = *net::record_at(at + place);
    const std::byte* const payload = record.payload;  // which goes on after the array of the type
    if (record.bytes < test::least_payload(record.kind) || payload + record.bytes > memory.end()) std::abort();
    for (std::uint32_t i = 0; i < record.bytes; ++i) sum += static_cast<unsigned>(payload[i]);
    if (record.kind == net::Control::hello || record.kind == net::Control::here) {
      net::NetworkName name;
      std::memcpy(&name, record.payload, sizeof name);
      if (sizeof name + name.length > record.bytes) std::abort();
    }
    place += net::record_room(record.bytes);
  }
  if (place != size) std::abort();
  volatile unsigned sink = 0;  // or the reads would be left out
  sink = sink + sum;
  return 0;
}

#ifdef FUZZ_DRIVER
#include <chrono>
#include <random>
#include <string>

namespace {

std::vector<std::vector<std::byte>> seeds() {
  std::vector<std::vector<std::byte>> all;
  for (const RecordKind kind : test::all_kinds) {
    all.push_back(test::make_frame({{kind, test::least_payload(kind)}}));
    all.push_back(test::make_frame({{net::Control::hello, 24}, {kind, 40}, {test::whole, 8}, {test::whole, 3}}));
  }
  return all;
}

void mutate(std::vector<std::byte>& frame, std::mt19937_64& random) {
  for (auto n = random() % 4 + 1; n; --n) {
    if (frame.empty()) return;
    const std::size_t at = random() % frame.size();
    switch (random() % 6) {
      case 0: frame[at] ^= static_cast<std::byte>(1U << random() % 8); break;
      case 1: frame[at] = static_cast<std::byte>(random()); break;
      case 2: frame.resize(at); break;
      case 3: frame.resize(frame.size() + random() % 64); break;
      case 4: {  // a length of its own, at a place where lengths are
        const std::uint32_t value = random() % 3 ? static_cast<std::uint32_t>(random() % 300) : static_cast<std::uint32_t>(random());
        const std::size_t place = at & ~std::size_t{3};
        if (place + 4 <= frame.size()) std::memcpy(&frame[place], &value, 4);
        break;
      }
      default: {  // the head's length says what there is, so that the records are looked at
        const auto bytes = static_cast<std::uint32_t>(frame.size() & ~std::size_t{7});
        if (frame.size() >= sizeof(net::FrameHead)) std::memcpy(&frame[offsetof(net::FrameHead, bytes)], &bytes, 4);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 5;
  std::mt19937_64 random(argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 1);
  auto corpus = seeds();
  test::read_corpus(argc, argv, 1 << 16, corpus);
  test::write_corpus("frame", corpus);
  for (const auto& frame : corpus) LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(frame.data()), frame.size());
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  unsigned long runs = 0;
  do {
    for (int i = 0; i < 1000; ++i, ++runs) {
      auto frame = corpus[random() % corpus.size()];
      mutate(frame, random);
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(frame.data()), frame.size());
    }
  } while (std::chrono::steady_clock::now() < end);
  std::printf("%lu frames\n", runs);
  return 0;
}
#endif
