// The check that every frame from the network passes before anything of it is used.
#include "transport/net/frame.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "network/frames.hpp"

namespace heddle::net {
namespace {

using test::GuardedBytes;
using test::make_frame;

class Frame : public testing::Test {
 protected:
  Frame() { test::register_modules(); }
};

TEST_F(Frame, what_the_library_sends_is_accepted) {
  for (const RecordKind kind : test::all_kinds)
    for (std::size_t payload = test::least_payload(kind); payload < 200; ++payload) {
      const auto frame = make_frame({{kind, payload}, {test::whole, 8}});
      EXPECT_EQ(check_frame(frame.data(), frame.size(), test::key, test::processes), Verdict::good);
    }
}

TEST_F(Frame, a_frame_with_another_jobs_key_is_foreign_whatever_else_it_says) {
  auto frame = make_frame({{test::whole, 8}});
  EXPECT_EQ(check_frame(frame.data(), frame.size(), test::key + 1, test::processes), Verdict::foreign);
  std::memset(frame.data(), 0xff, frame.size());
  EXPECT_EQ(check_frame(frame.data(), frame.size(), test::key, test::processes), Verdict::foreign);
}

TEST_F(Frame, every_truncation_is_refused_without_reading_beyond_the_end) {
  const auto frame = make_frame({{Control::hello, 24}, {test::with_offer, 48}, {test::whole, 100}});
  GuardedBytes bytes(frame.size());
  for (std::size_t n = 0; n < frame.size(); n += 8) {  // the network's buffers are aligned, so ends are too
    std::byte* at = bytes.end() - n;
    if (n) std::memcpy(at, frame.data(), n);
    EXPECT_NE(check_frame(at, n, test::key, test::processes), Verdict::good) << n;
  }
}

TEST_F(Frame, a_sender_outside_the_job_is_refused) {
  auto frame = make_frame({{test::whole, 8}});
  const std::uint32_t outside = test::processes;
  std::memcpy(frame.data() + offsetof(FrameHead, rank), &outside, sizeof outside);
  EXPECT_EQ(check_frame(frame.data(), frame.size(), test::key, test::processes), Verdict::malformed);
}

TEST_F(Frame, records_shorter_than_their_kind_needs_are_refused) {
  for (const RecordKind kind : test::all_kinds)
    for (std::size_t payload = 0; payload < test::least_payload(kind); ++payload) {
      const auto frame = make_frame({{kind, payload}});
      EXPECT_EQ(check_frame(frame.data(), frame.size(), test::key, test::processes), Verdict::malformed);
    }
}

TEST_F(Frame, a_payload_longer_than_its_frame_is_refused) {
  for (const std::uint32_t said : {9U, 64U, 0x7fffffffU, 0xfffffff8U, 0xffffffffU}) {
    auto frame = make_frame({{test::whole, 8}});
    std::memcpy(frame.data() + sizeof(FrameHead) + offsetof(Record, bytes) - 8, &said, sizeof said);
    EXPECT_EQ(check_frame(frame.data(), frame.size(), test::key, test::processes), Verdict::malformed) << said;
  }
}

TEST_F(Frame, kinds_that_do_not_exist_are_refused) {
  auto frame = make_frame({{test::whole, 64}});
  for (unsigned word = 0; word < 1U << 16; ++word) {
    const auto kind = std::bit_cast<RecordKind>(static_cast<std::uint16_t>(word));
    if (std::find(std::begin(test::all_kinds), std::end(test::all_kinds), kind) != std::end(test::all_kinds)) continue;
    std::memcpy(frame.data() + sizeof(FrameHead) + offsetof(Record, kind) - 8, &kind, sizeof kind);
    EXPECT_EQ(check_frame(frame.data(), frame.size(), test::key, test::processes), Verdict::malformed) << word;
  }
}

TEST_F(Frame, records_that_are_for_a_node_only_are_refused) {
  const auto frame = make_frame({{test::on_node_only, 64}});
  EXPECT_EQ(check_frame(frame.data(), frame.size(), test::key, test::processes), Verdict::malformed);
}

TEST_F(Frame, an_address_longer_than_its_record_is_refused) {
  auto frame = make_frame({{Control::hello, 24}});
  const NetworkName name{VciIndex{}, 17, 0};
  std::memcpy(frame.data() + sizeof(FrameHead) + record_head_bytes, &name, sizeof name);
  EXPECT_EQ(check_frame(frame.data(), frame.size(), test::key, test::processes), Verdict::malformed);
}

}  // namespace
}  // namespace heddle::net
