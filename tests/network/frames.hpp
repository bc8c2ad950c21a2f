// Frames as the library sends them, for the tests and the fuzzer of their check.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "transport/ofi/frame.hpp"

namespace heddle::test {

inline constexpr std::uint64_t key = 0x1122334455667788;
inline constexpr std::uint32_t processes = 4;

inline constexpr RecordKind all_kinds[] = {RecordKind::eager, RecordKind::eager_sync, RecordKind::ack, RecordKind::offer,
                                           RecordKind::accept, RecordKind::pull, RecordKind::data, RecordKind::finished,
                                           RecordKind::cancel, RecordKind::cancelled,
                                           RecordKind::hello, RecordKind::where, RecordKind::here, RecordKind::credit,
                                           RecordKind::closing, RecordKind::probe, RecordKind::farewell};

inline std::size_t least_payload(RecordKind kind) {
  switch (kind) {
    case RecordKind::eager: return 0;
    case RecordKind::eager_sync: return sizeof(AckTo);
    case RecordKind::cancel:
    case RecordKind::cancelled: return sizeof(Cancel);
    case RecordKind::offer: return sizeof(Offer);
    case RecordKind::accept:
    case RecordKind::pull: return sizeof(Accept);
    case RecordKind::data: return sizeof(DataFor);
    case RecordKind::where: return 4;
    default: return 8;
  }
}

struct Part {
  RecordKind kind;
  std::size_t payload;
};

/// A good frame with zero payloads (also for names: their length is 0).
inline std::vector<std::byte> make_frame(std::initializer_list<Part> parts) {
  std::size_t bytes = sizeof(ofi::FrameHead);
  for (const Part& part : parts) bytes += ofi::record_room(part.payload);
  std::vector<std::byte> frame(bytes);
  const ofi::FrameHead head{key, 1, 0, static_cast<std::uint32_t>(bytes), 0, ofi::frame_version, 0};
  std::memcpy(frame.data(), &head, sizeof head);
  std::size_t at = sizeof head;
  for (const Part& part : parts) {
    Record* record = ofi::record_at(frame.data() + at);
    record->context = 2;
    record->tag = 7;
    record->bytes = static_cast<std::uint32_t>(part.payload);
    record->kind = part.kind;
    at += ofi::record_room(part.payload);
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
