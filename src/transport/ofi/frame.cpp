#include "transport/ofi/frame.hpp"

#include <cstring>

namespace heddle::ofi {
namespace {

/// The fewest payload bytes that a record of `kind` has; SIZE_MAX for kinds that do not exist.
std::size_t least_payload(RecordKind kind) noexcept {
  switch (kind) {
    case RecordKind::eager: return 0;
    case RecordKind::eager_sync: return sizeof(AckTo);
    case RecordKind::ack:
    case RecordKind::finished: return sizeof(RequestToken);
    case RecordKind::cancel:
    case RecordKind::cancelled: return sizeof(Cancel);
    case RecordKind::offer: return sizeof(Offer);
    case RecordKind::accept:
    case RecordKind::pull: return sizeof(Accept);
    case RecordKind::data: return sizeof(DataFor);
    case RecordKind::hello:
    case RecordKind::here: return sizeof(NetworkName);
    case RecordKind::where: return sizeof(std::uint32_t);
    case RecordKind::credit:
    case RecordKind::closing:
    case RecordKind::probe:
    case RecordKind::farewell: return sizeof(std::uint64_t);
    case RecordKind::placed: break;  // between processes of one node only
  }
  return SIZE_MAX;
}

}  // namespace

Verdict check_frame(const std::byte* data, std::size_t bytes, std::uint64_t key, std::uint32_t processes) noexcept {
  FrameHead head;
  if (bytes < sizeof head) return Verdict::truncated;
  std::memcpy(&head, data, sizeof head);
  if (head.key != key) return Verdict::foreign;
  if (head.bytes > bytes) return Verdict::truncated;
  if (head.version != frame_version || head.process >= processes || head.bytes < sizeof head || head.bytes % 8 || head.bytes != bytes)
    return Verdict::malformed;
  for (std::size_t at = sizeof head; at < bytes;) {
    if (bytes - at < record_head_bytes) return Verdict::malformed;
    std::uint32_t payload;
    RecordKind kind;
    std::memcpy(&payload, data + at + offsetof(Record, bytes) - sizeof(std::uint64_t), sizeof payload);
    std::memcpy(&kind, data + at + offsetof(Record, kind) - sizeof(std::uint64_t), sizeof kind);
    if (payload > bytes - at - record_head_bytes || record_room(payload) > bytes - at) return Verdict::malformed;
    if (payload < least_payload(kind)) return Verdict::malformed;
    if (kind == RecordKind::hello || kind == RecordKind::here) {
      NetworkName name;
      std::memcpy(&name, data + at + record_head_bytes, sizeof name);
      if (name.length > payload - sizeof name) return Verdict::malformed;
    }
    at += record_room(payload);
  }
  return Verdict::good;
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

}  // namespace heddle::ofi
