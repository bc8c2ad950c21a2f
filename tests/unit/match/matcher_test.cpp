#include "match/matcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <list>
#include <memory>
#include <random>
#include <vector>

namespace heddle::match {
namespace {

constexpr int any_src = MPI_ANY_SOURCE, any_t = MPI_ANY_TAG;

struct Receive : Posted {
  int id = 0;
  Receive(std::uint64_t context, int source, int tag, int number) : id(number) { pattern = {context, source, tag}; }
};
struct Message : Arrival {
  int id = 0;
  Message(std::uint64_t context, int source, int tag, int number) : id(number) { key = {context, source, tag}; }
};

int take(Matcher& m, std::uint64_t context, int source, int tag) {
  auto* found = static_cast<Receive*>(m.take_posted({context, source, tag}));
  return found ? found->id : -1;
}

int take_message(Matcher& m, std::uint64_t context, int source, int tag) {
  auto* found = static_cast<Message*>(m.find_arrival({context, source, tag}));
  if (found) m.remove_arrival(*found);
  return found ? found->id : -1;
}

TEST(Matcher, EarliestPostedReceiveWinsWhateverItsForm) {
  Matcher m;
  Receive a(8, any_src, any_t, 0), b(8, 1, 5, 1), c(8, any_src, 5, 2), d(8, 1, any_t, 3);
  for (auto* r : {&a, &b, &c, &d}) m.post(*r);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(take(m, 8, 1, 5), i);
  EXPECT_EQ(take(m, 8, 1, 5), -1);
}

TEST(Matcher, EarliestMessageWinsWhateverTheReceivesForm) {
  for (auto [source, tag] : {std::pair{1, 5}, {any_src, 5}, {1, any_t}, {any_src, any_t}}) {
    Matcher m;
    Message other(9, 1, 5, 99), a(8, 1, 5, 0), b(8, 1, 5, 1);
    for (auto* message : {&other, &a, &b}) m.keep(*message);
    EXPECT_EQ(take_message(m, 8, source, tag), 0);
    EXPECT_EQ(take_message(m, 8, source, tag), 1);
    EXPECT_EQ(take_message(m, 8, source, tag), -1);
    EXPECT_EQ(m.unexpected(), 1u);
  }
}

TEST(Matcher, AMessageOfAKeyIsFoundWhereverItStands) {
  for (int n = 0; n < 8; ++n) {
    Matcher m;
    std::deque<Message> messages;
    Message other(8, 1, 6, 3);
    m.keep(other);
    for (int i = 0; i < n; ++i) m.keep(messages.emplace_back(8, 1, 5, i));
    for (int wanted = 0; wanted <= n; ++wanted) {
      int looks = 0;
      Arrival* found = m.find_arrival_if({8, 1, 5}, [&](Arrival& a) { return ++looks, static_cast<Message&>(a).id == wanted; });
      EXPECT_EQ(found, wanted < n ? &messages[static_cast<std::size_t>(wanted)] : nullptr);
      EXPECT_LE(looks, n + 1);
    }
  }
}

TEST(Matcher, AwaitsWhatAPostedReceiveWouldTake) {
  Matcher m;
  EXPECT_FALSE(m.awaits({8, 1, 5}));
  Receive exact(8, 1, 5, 0), wild(8, any_src, 6, 1);
  m.post(exact);
  EXPECT_TRUE(m.awaits({8, 1, 5}));
  EXPECT_FALSE(m.awaits({8, 2, 5}));
  EXPECT_FALSE(m.awaits({9, 1, 5}));
  m.post(wild);
  EXPECT_TRUE(m.awaits({8, 2, 6}));
  m.remove_posted(wild);
  EXPECT_EQ(take(m, 8, 1, 5), 0);
  EXPECT_FALSE(m.awaits({8, 1, 5}));
  EXPECT_FALSE(m.awaits({8, 2, 6}));
}

TEST(Matcher, ContextsDoNotMix) {
  Matcher m;
  Receive r(8, any_src, any_t, 0);
  m.post(r);
  EXPECT_EQ(take(m, 9, 0, 0), -1);
  EXPECT_EQ(take(m, 8, 0, 0), 0);
}

TEST(Matcher, WithdrawnReceiveIsNotMatched) {
  Matcher m;
  Receive a(8, 1, 5, 0), b(8, 1, 5, 1);
  m.post(a);
  m.post(b);
  m.remove_posted(a);
  EXPECT_EQ(take(m, 8, 1, 5), 1);
  EXPECT_EQ(m.posted(), 0u);
}

TEST(Matcher, IndexOfAWildcardFormMadeLateSeesEarlierMessages) {
  Matcher m;
  std::deque<Message> messages;
  for (int i = 0; i < 100; ++i) m.keep(messages.emplace_back(8, i % 7, i % 11, i));
  EXPECT_EQ(take_message(m, 8, any_src, 3), 3);
  EXPECT_EQ(take_message(m, 8, 4, any_t), 4);
  EXPECT_EQ(take_message(m, 8, any_src, any_t), 0);
  EXPECT_EQ(m.unexpected(), 97u);
}

// Against the obvious implementation: two lists searched from the front.
TEST(Matcher, AgreesWithLinearSearchOnRandomTraffic) {
  std::mt19937 random(12345);
  Matcher m;
  std::list<Receive> receives;
  std::list<Message> messages;
  std::list<Receive*> posted;
  std::list<Message*> kept;
  const auto matches = [](const Pattern& want, const Pattern& have) {
    return want.context == have.context && (want.source == any_src || want.source == have.source) &&
           (want.tag == any_t || want.tag == have.tag);
  };
  for (int step = 0; step < 200'000; ++step) {
    const std::uint64_t context = 2 * (random() % 3);
    const int source = static_cast<int>(random() % 5), tag = static_cast<int>(random() % 6);
    const unsigned action = random() % 10;
    if (action < 5) {  // a message arrives
      const auto expected = std::find_if(posted.begin(), posted.end(), [&](Receive* r) { return matches(r->pattern, {context, source, tag}); });
      const int got = take(m, context, source, tag);
      ASSERT_EQ(got, expected == posted.end() ? -1 : (*expected)->id) << "step " << step;
      if (expected != posted.end()) posted.erase(expected);
      else {
        auto& message = messages.emplace_back(context, source, tag, step);
        m.keep(message);
        kept.push_back(&message);
      }
    } else if (action < 9) {  // a receive is posted
      const Pattern want{context, random() % 3 ? source : any_src, random() % 3 ? tag : any_t};
      const auto expected = std::find_if(kept.begin(), kept.end(), [&](Message* k) { return matches(want, k->key); });
      const int got = take_message(m, want.context, want.source, want.tag);
      ASSERT_EQ(got, expected == kept.end() ? -1 : (*expected)->id) << "step " << step;
      if (expected != kept.end()) kept.erase(expected);
      else {
        auto& receive = receives.emplace_back(want.context, want.source, want.tag, step);
        m.post(receive);
        posted.push_back(&receive);
      }
    } else if (step % 2 && !kept.empty()) {  // a message is cancelled
      auto victim = std::next(kept.begin(), static_cast<long>(random() % std::min<std::size_t>(kept.size(), 20)));
      Arrival* found = m.find_arrival_if((*victim)->key, [&](Arrival& a) { return static_cast<Message&>(a).id == (*victim)->id; });
      ASSERT_EQ(found, *victim) << "step " << step;
      m.remove_arrival(*found);
      kept.erase(victim);
    } else if (!posted.empty()) {  // a receive is cancelled
      auto victim = std::next(posted.begin(), static_cast<long>(random() % std::min<std::size_t>(posted.size(), 20)));
      m.remove_posted(**victim);
      posted.erase(victim);
    }
    ASSERT_EQ(m.posted(), posted.size());
    ASSERT_EQ(m.unexpected(), kept.size());
  }
}

// 100,000 distinct patterns outstanding, matched newest first: quadratic cost would not end within the test's limit.
TEST(Matcher, ManyOutstandingPatternsMatchInAnyOrder) {
  constexpr int n = 100'000;
  Matcher m;
  std::deque<Receive> receives;
  for (int i = 0; i < n; ++i) m.post(receives.emplace_back(8, i % 64, i, i));
  for (int i = n - 1; i >= 0; --i) ASSERT_EQ(take(m, 8, i % 64, i), i);
  std::deque<Message> messages;
  for (int i = 0; i < n; ++i) m.keep(messages.emplace_back(8, i % 64, i, i));
  for (int i = n - 1; i >= 0; i -= 2) ASSERT_EQ(take_message(m, 8, i % 64, i), i);
  for (int i = 0; i < n; i += 2) ASSERT_EQ(take_message(m, 8, any_src, any_t), i);
  EXPECT_EQ(m.unexpected(), 0u);
}

}  // namespace
}  // namespace heddle::match
