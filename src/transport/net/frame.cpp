#include "transport/net/frame.hpp"

#include <cstring>

#include "transport/net/control.hpp"

namespace heddle::net {
Verdict check_frame(const std::byte* data, std::size_t bytes, std::uint64_t key, std::uint32_t ranks) noexcept {
  FrameHead head;
  if (bytes < sizeof head) return Verdict::truncated;
  std::memcpy(&head, data, sizeof head);
  if (head.key != key) return Verdict::foreign;
  if (head.bytes > bytes) return Verdict::truncated;
  if (head.version != frame_version || head.rank >= ranks || head.bytes < sizeof head || head.bytes % 8 || head.bytes != bytes)
    return Verdict::malformed;
  for (std::size_t at = sizeof head; at < bytes;) {
    if (bytes - at < record_head_bytes) return Verdict::malformed;
    std::uint32_t payload;
    RecordKind kind;
    std::memcpy(&payload, data + at + offsetof(Record, bytes) - sizeof(std::uint64_t), sizeof payload);
    std::memcpy(&kind, data + at + offsetof(Record, kind) - sizeof(std::uint64_t), sizeof kind);
    if (payload > bytes - at - record_head_bytes || record_room(payload) > bytes - at) return Verdict::malformed;
    const RecordOperation* const operation = find_operation(kind);
    if (!operation || !operation->over_network || payload < operation->least_payload) return Verdict::malformed;
    if (kind == Control::hello || kind == Control::here) {
      NetworkName name;
      std::memcpy(&name, data + at + record_head_bytes, sizeof name);
      if (name.length > payload - sizeof name) return Verdict::malformed;
    }
    at += record_room(payload);
  }
  return Verdict::good;
}

const Module& control() noexcept {
  static constexpr RecordOperation operations[] = {
      {"hello", sizeof(NetworkName), true, nullptr},       {"where", sizeof(std::uint32_t), true, nullptr},
      {"here", sizeof(NetworkName), true, nullptr},        {"credit", sizeof(std::uint64_t), true, nullptr},
      {"closing", sizeof(std::uint64_t), true, nullptr},   {"probe", sizeof(std::uint64_t), true, nullptr},
      {"farewell", sizeof(std::uint64_t), true, nullptr},
  };
  static constexpr Module module{Control::module, "network control", operations};
  return module;
}

const char* verdict_text(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::good: return "in order";
    case Verdict::truncated: return "cut short";
    case Verdict::foreign: return "without this job's key";
    case Verdict::malformed: return "not in this library's format";
  }
  return "unknown";
}

}  // namespace heddle::net
