#include "rma/volley.hpp"

#include <gtest/gtest.h>

namespace heddle::rma {
namespace {

struct Nobody : Held {};

class VolleysTest : public testing::Test {
 protected:
  /// As the engine does when an operation is done.
  void done(net::Pending& pending) {
    if (!--pending.under_way) pending.done(pending, held);
  }
  Nobody held;
  Volleys volleys;
};

TEST_F(VolleysTest, nothing_to_wait_for_has_ended) {
  EXPECT_TRUE(volleys.has_ended(volleys.close()));
  ++volleys.open().under_way;
  done(volleys.open());
  EXPECT_TRUE(volleys.has_ended(volleys.close()));
}

TEST_F(VolleysTest, a_flush_waits_for_what_was_started_before_it_and_for_nothing_after_it) {
  Volley& first = volleys.open();
  first.under_way = 2;
  const std::uint64_t flushed = volleys.close();
  Volley& second = volleys.open();
  ASSERT_NE(&first, &second);
  second.under_way = 1;
  done(first);
  EXPECT_FALSE(volleys.has_ended(flushed));
  done(first);
  EXPECT_TRUE(volleys.has_ended(flushed));
  EXPECT_FALSE(volleys.has_ended(volleys.close()));
  done(second);
  EXPECT_TRUE(volleys.has_ended(2));
}

TEST_F(VolleysTest, a_later_volley_that_is_done_first_ends_with_those_before_it) {
  Volley& first = volleys.open();
  first.under_way = 1;
  const std::uint64_t one = volleys.close();
  Volley& second = volleys.open();
  second.under_way = 1;
  const std::uint64_t two = volleys.close();
  done(second);
  EXPECT_FALSE(volleys.has_ended(two));
  EXPECT_FALSE(volleys.has_ended(one));
  done(first);
  EXPECT_TRUE(volleys.has_ended(two));
}

TEST_F(VolleysTest, a_call_with_a_request_ends_when_it_is_over_and_its_operations_are) {
  Volley& call = volleys.begin(nullptr);
  const std::uint64_t flushed = volleys.close();
  ++call.under_way;
  done(call);
  EXPECT_FALSE(volleys.has_ended(flushed)) << "it may start more";
  volleys.one_less(call, held);
  EXPECT_TRUE(volleys.has_ended(flushed));
}

TEST_F(VolleysTest, volleys_are_used_again) {
  Volley* const first = &volleys.open();
  first->under_way = 1;
  volleys.close();
  done(*first);
  EXPECT_EQ(&volleys.begin(nullptr), first);
  volleys.one_less(*first, held);
}

}  // namespace
}  // namespace heddle::rma
