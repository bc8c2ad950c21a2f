#include "sys/bootstrap/process_mapping.hpp"

#include <gtest/gtest.h>

namespace heddle::sys {
namespace {

using Ranks = std::vector<int>;

ProcessMapping parsed(std::string_view text) {
  ProcessMapping mapping;
  EXPECT_TRUE(mapping.parse(text)) << text;
  return mapping;
}

TEST(ProcessMapping, PlacesTheRanksOfOneBlockNodeByNode) {
  const ProcessMapping mapping = parsed("(vector,(0,2,3))");
  EXPECT_EQ(mapping.ranks_on(0, 6), (Ranks{0, 1, 2}));
  EXPECT_EQ(mapping.ranks_on(1, 6), (Ranks{3, 4, 5}));
  EXPECT_EQ(mapping.node_of(5), 1);
}

TEST(ProcessMapping, WalksSeveralBlocksInOrder) {
  const ProcessMapping mapping = parsed("(vector,(0,1,2),(1,2,1),(0,1,1))");
  const Ranks nodes{0, 0, 1, 2, 0};
  for (int rank = 0; rank < 5; ++rank) EXPECT_EQ(mapping.node_of(rank), nodes[static_cast<std::size_t>(rank)]);
  EXPECT_EQ(mapping.ranks_on(0, 5), (Ranks{0, 1, 4}));
}

TEST(ProcessMapping, RepeatsThePatternUntilEveryRankHasAPlace) {
  const ProcessMapping mapping = parsed("(vector,(0,2,1))");
  EXPECT_EQ(mapping.ranks_on(0, 5), (Ranks{0, 2, 4}));
  EXPECT_EQ(mapping.ranks_on(1, 5), (Ranks{1, 3}));
}

TEST(ProcessMapping, StopsAtTheSizeOfTheJob) {
  EXPECT_EQ(parsed("(vector,(0,1,1000000))").ranks_on(0, 3), (Ranks{0, 1, 2}));
}

TEST(ProcessMapping, SurvivesNumbersWhoseProductsDoNotFitAnInt) {
  const ProcessMapping mapping = parsed("(vector,(0,2000000000,2000000000))");
  EXPECT_EQ(mapping.node_of(1999999999), 0);
}

TEST(ProcessMapping, AllowsSpaces) { EXPECT_EQ(parsed("(vector, ( 0, 1, 2 ) )").node_of(1), 0); }

TEST(ProcessMapping, RefusesWhatItCannotMeanAndStaysEmpty) {
  for (const char* text : {"", "(", "vector", "(vector)", "(vector,)", "(vector,())", "(vector,(0,1))",
                           "(vector,(0,1,1)", "(vector,(0,0,1))", "(vector,(0,1,0))", "(vector,(-1,1,1))",
                           "(vector,(a,b,c))", "(vector,(0,1,99999999999999999999))", "(matrix,(0,1,1))"}) {
    ProcessMapping mapping = parsed("(vector,(0,1,1))");
    EXPECT_FALSE(mapping.parse(text)) << text;
    EXPECT_TRUE(mapping.empty()) << text;
    EXPECT_EQ(mapping.node_of(0), -1);
    EXPECT_TRUE(mapping.ranks_on(0, 4).empty());
  }
}

TEST(ProcessMapping, CompressesAListOfNodes) {
  ProcessMapping mapping;
  mapping.assign({0, 0, 0, 1, 1, 0});
  EXPECT_EQ(mapping.blocks().size(), 3u);
  EXPECT_EQ(mapping.ranks_on(0, 6), (Ranks{0, 1, 2, 5}));
  EXPECT_EQ(mapping.node_of(4), 1);
}

}  // namespace
}  // namespace heddle::sys
