#include "sync/record_ring.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace heddle::sync {
namespace {

/// A ring in ordinary memory, zeroed as a fresh shared page is.
template <std::uint32_t Lines>
struct TestRing {
  RingControl control{};
  std::unique_ptr<RingLine[]> lines = std::make_unique<RingLine[]>(Lines);
  RingProducer producer{&control, lines.get(), Lines};
  RingConsumer consumer{&control, lines.get(), Lines};
};

/// The user's part of a record: `n` words, the first two are who and which, the rest depend on them.
struct Header {
  std::uint64_t stamp;
  std::uint32_t producer, sequence, words;
};

std::uint32_t word_of(std::uint32_t producer, std::uint32_t sequence, std::uint32_t i) {
  return (producer * 2654435761U) ^ (sequence * 40503U) ^ (i * 97U);
}

std::uint32_t lines_of(std::uint32_t words) {
  return static_cast<std::uint32_t>((sizeof(Header) + words * 4 + cache_line - 1) / cache_line);
}

bool push(RingProducer& ring, std::uint32_t producer, std::uint32_t sequence, std::uint32_t words) {
  const std::uint32_t n = lines_of(words);
  const auto reservation = ring.reserve(n);
  if (!reservation.line) return false;
  auto* bytes = reinterpret_cast<std::byte*>(reservation.line);
  const std::uint32_t head[3] = {producer, sequence, words};
  std::memcpy(bytes + 8, head, sizeof head);
  for (std::uint32_t i = 0; i < words; ++i) {
    const std::uint32_t word = word_of(producer, sequence, i);
    std::memcpy(bytes + sizeof(Header) + i * 4, &word, 4);
  }
  RingProducer::publish(reservation, n);
  return true;
}

/// Pops one record and checks its content. False when there is none.
bool pop(RingConsumer& ring, Header& head) {
  RingLine* line = ring.front();
  if (!line) return false;
  const auto* bytes = reinterpret_cast<const std::byte*>(line);
  std::memcpy(&head.producer, bytes + 8, 12);
  for (std::uint32_t i = 0; i < head.words; ++i) {
    std::uint32_t word;
    std::memcpy(&word, bytes + sizeof(Header) + i * 4, 4);
    EXPECT_EQ(word, word_of(head.producer, head.sequence, i)) << "word " << i << " of " << head.words;
  }
  ring.pop(line);
  return true;
}

TEST(RecordRing, IsEmptyWhenAllZero) {
  TestRing<64> ring;
  EXPECT_FALSE(ring.consumer.pending());
  EXPECT_EQ(ring.consumer.front(), nullptr);
}

TEST(RecordRing, RefusesWhenFullAndLosesNothing) {
  TestRing<64> ring;
  std::uint32_t pushed = 0;
  while (push(ring.producer, 0, pushed, 2)) ++pushed;
  EXPECT_EQ(pushed, 64u);
  Header head;
  for (std::uint32_t i = 0; i < pushed; ++i) {
    ASSERT_TRUE(pop(ring.consumer, head));
    EXPECT_EQ(head.sequence, i);
  }
  EXPECT_FALSE(pop(ring.consumer, head));
  EXPECT_TRUE(push(ring.producer, 0, pushed, 2));
}

TEST(RecordRing, ReservedButUnpublishedRecordHidesLaterOnes) {
  TestRing<64> ring;
  const auto gap = ring.producer.reserve(1);
  ASSERT_NE(gap.line, nullptr);
  EXPECT_TRUE(push(ring.producer, 1, 0, 2));
  EXPECT_FALSE(ring.consumer.pending());
  std::memset(reinterpret_cast<std::byte*>(gap.line) + 8, 0, 12);
  RingProducer::publish(gap, 1);
  Header head;
  EXPECT_TRUE(pop(ring.consumer, head));
  EXPECT_TRUE(pop(ring.consumer, head));
  EXPECT_EQ(head.producer, 1u);
}

TEST(RecordRing, RecordsOfEveryLengthStayWholeAcrossTheEdge) {
  TestRing<64> ring;
  Header head;
  std::uint32_t sequence = 0;
  for (int lap = 0; lap < 50; ++lap)
    for (std::uint32_t words = 0; lines_of(words) <= ring.producer.max_lines(); words += 3) {
      ASSERT_TRUE(push(ring.producer, 7, sequence, words));
      ASSERT_TRUE(pop(ring.consumer, head));
      ASSERT_EQ(head.sequence, sequence++);
      ASSERT_EQ(head.words, words);
    }
}

// Payload bytes are chosen by users: they must never be taken for the stamp of a later record.
TEST(RecordRing, PayloadThatLooksLikeAStampIsNotARecord) {
  TestRing<64> ring;
  for (std::uint64_t lap = 0; lap < 8; ++lap) {
    const auto reservation = ring.producer.reserve(8);
    ASSERT_NE(reservation.line, nullptr);
    for (std::uint64_t i = 1; i < 8; ++i) {
      const std::uint64_t forged = ring_detail::stamp_of(reservation.index + i + 64, 1);
      std::memcpy(static_cast<void*>(&reservation.line[i]), &forged, sizeof forged);
    }
    RingProducer::publish(reservation, 8);
    ASSERT_NE(ring.consumer.front(), nullptr);
    ring.consumer.pop(ring.consumer.front());
    EXPECT_FALSE(ring.consumer.pending());
    for (std::uint64_t i = 0; i < 8 && lap; ++i) {  // walk single records over the forged lines of the lap before
      ASSERT_TRUE(push(ring.producer, 0, 0, 2));
      Header head;
      ASSERT_TRUE(pop(ring.consumer, head));
      EXPECT_FALSE(ring.consumer.pending());
    }
  }
}

TEST(RecordRing, KeepsEachProducersOrderAndContentUnderContention) {
  constexpr std::uint32_t producers = 3, records = 60'000;
  auto ring = std::make_unique<TestRing<256>>();
  std::vector<std::thread> threads;
  for (std::uint32_t p = 0; p < producers; ++p)
    threads.emplace_back([&, p] {
      for (std::uint32_t i = 0; i < records; ++i)
        while (!push(ring->producer, p, i, (i * 7 + p) % 200)) std::this_thread::yield();
    });
  std::vector<std::uint32_t> expected(producers, 0);
  for (std::uint32_t received = 0; received < producers * records;) {
    Header head;
    if (pop(ring->consumer, head)) {
      ASSERT_EQ(head.sequence, expected[head.producer]++);
      ++received;
    } else {
      std::this_thread::yield();
    }
  }
  for (auto& thread : threads) thread.join();
  EXPECT_FALSE(ring->consumer.pending());
}

TEST(RecordRing, AnyoneMayAskForWorkWhileRecordsPass) {
  constexpr std::uint32_t records = 20'000;
  auto ring = std::make_unique<TestRing<64>>();
  std::atomic<bool> over{false};
  std::thread asker([&] {
    while (!over.load(std::memory_order_relaxed)) (void)ring->consumer.pending();  // true or false: nothing depends on it
  });
  std::thread producer([&] {
    for (std::uint32_t i = 0; i < records; ++i)
      while (!push(ring->producer, 0, i, i * 7 % 80)) std::this_thread::yield();
  });
  for (std::uint32_t received = 0; received < records;) {
    Header head;
    if (!pop(ring->consumer, head)) {
      std::this_thread::yield();
      continue;
    }
    EXPECT_EQ(head.sequence, received++);
  }
  producer.join();
  over.store(true, std::memory_order_relaxed);
  asker.join();
  EXPECT_FALSE(ring->consumer.pending());
}

TEST(RecordRing, HoldReachesProducers) {
  TestRing<64> ring;
  EXPECT_FALSE(ring.producer.held());
  ring.consumer.set_hold(true);
  EXPECT_TRUE(ring.producer.held());
  ring.consumer.set_hold(false);
  EXPECT_FALSE(ring.producer.held());
}

}  // namespace
}  // namespace heddle::sync
