// Frames as the library sends them, for the tests and the fuzzer of their check.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "transport/module.hpp"
#include "transport/net/control.hpp"
#include "transport/net/frame.hpp"

namespace heddle::test {

inline constexpr std::uint64_t key = 0x1122334455667788;
inline constexpr std::uint32_t processes = 4;

/// A module as the protocols have one; the last of its operations is for a node only.
inline constexpr std::uint8_t module_number = 0;
inline constexpr RecordKind whole{module_number, 0}, with_token{module_number, 1}, with_offer{module_number, 2}, on_node_only{module_number, 3};
inline constexpr RecordOperation operations[] = {
    {"whole", 0, true, nullptr}, {"with_token", 8, true, nullptr}, {"with_offer", 48, true, nullptr}, {"on_node_only", 0, false, nullptr}};
inline constexpr Module module{module_number, "of a test", operations};

/// What a frame may have.
inline constexpr RecordKind all_kinds[] = {whole, with_token, with_offer,
                                           net::Control::hello, net::Control::where, net::Control::here, net::Control::credit,
                                           net::Control::closing, net::Control::probe, net::Control::farewell};

inline void register_modules() {
  register_module(module);
  register_module(net::control());
}

inline std::size_t least_payload(RecordKind kind) {
  if (kind.module == module_number) return operations[kind.operation].least_payload;
  return kind == net::Control::where ? 4 : 8;
}

struct Part {
  RecordKind kind;
  std::size_t payload;
};

/// A good frame with zero payloads (also for names: their length is 0).
inline std::vector<std::byte> make_frame(std::initializer_list<Part> parts) {
  std::size_t bytes = sizeof(net::FrameHead);
  for (const Part& part : parts) bytes += net::record_room(part.payload);
  std::vector<std::byte> frame(bytes);
  const net::FrameHead head{key, 1, 0, static_cast<std::uint32_t>(bytes), VciIndex{}, net::frame_version, 0};
  std::memcpy(frame.data(), &head, sizeof head);
  std::size_t at = sizeof head;
  for (const Part& part : parts) {
    Record* record = net::record_at(frame.data() + at);
    record->context = 2;
    record->tag = 7;
    record->bytes = static_cast<std::uint32_t>(part.payload);
    record->kind = part.kind;
    at += net::record_room(part.payload);
  }
  return frame;
}

/// Memory that ends where the next page may not be touched.
class GuardedBytes {
 public:
  explicit GuardedBytes(std::size_t bytes) : room_((bytes + 4095) & ~std::size_t{4095}) {
    base_ = static_cast<std::byte*>(mmap(nullptr, room_ + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + room_, 4096, PROT_NONE);
  }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  ~GuardedBytes() { munmap(base_, room_ + 4096); }
  [[nodiscard]] std::byte* end() const { return base_ + room_; }
  [[nodiscard]] std::size_t room() const { return room_; }

 private:
  std::size_t room_;
  std::byte* base_;
};

}  // namespace heddle::test
