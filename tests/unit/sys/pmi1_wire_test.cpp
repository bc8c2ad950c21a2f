#include "sys/bootstrap/pmi1_wire.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace heddle::sys::bootstrap {
namespace {

TEST(WireValue, FindsKeysInAnyOrder) {
  EXPECT_EQ(wire_value("cmd=get_result rc=0 value=v", "value"), "v");
  EXPECT_EQ(wire_value("value=v rc=0 cmd=get_result", "value"), "v");
  EXPECT_EQ(wire_value("rc=0", "rc"), "0");
}

TEST(WireValue, MatchesWholeKeysOnly) {
  EXPECT_FALSE(wire_value("cmd=x subport=1 ports=2", "port"));
  EXPECT_FALSE(wire_value("port", "port"));
  EXPECT_FALSE(wire_value("", "port"));
}

TEST(WireValue, KeepsEqualsSignsAndEmptyValues) {
  EXPECT_EQ(wire_value("value=a=b= rc=", "value"), "a=b=");
  EXPECT_EQ(wire_value("value=a=b= rc=", "rc"), "");
}

TEST(WireNumber, TakesWholeNumbersInRangeOnly) {
  EXPECT_EQ(wire_number("rc=-1", "rc"), -1);
  for (const char* line : {"rc=", "rc=x", "rc=1x", "rc=99999999999", "rc=0x10", "rd=1"})
    EXPECT_FALSE(wire_number(line, "rc"));
}

class WirePair : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    wire.attach(ends[0]);
  }
  void TearDown() override {
    close(ends[0]);
    if (ends[1] >= 0) close(ends[1]);
  }
  void peer_sends(std::string_view text) {
    ASSERT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  int ends[2] = {-1, -1};
  Wire wire;
  std::string line;
};

TEST_F(WirePair, CutsLinesWhereverTheBytesWereCut) {
  peer_sends("one\ntwo\nthr");
  EXPECT_TRUE(wire.read_line(line) && line == "one");
  EXPECT_TRUE(wire.read_line(line) && line == "two");
  peer_sends("ee\n\n");
  EXPECT_TRUE(wire.read_line(line) && line == "three");
  EXPECT_TRUE(wire.read_line(line) && line.empty());
}

TEST_F(WirePair, ReadsALineLongerThanItsBuffer) {
  const std::string text(10000, 'x');
  peer_sends(text + "\n");
  EXPECT_TRUE(wire.read_line(line) && line == text);
}

TEST_F(WirePair, ReportsAPeerThatIsGoneInsteadOfDying) {
  peer_sends("unfinished");
  close(ends[1]);
  ends[1] = -1;
  EXPECT_FALSE(wire.read_line(line));
  EXPECT_FALSE(wire.send_line("anybody?\n"));
}

}  // namespace
}  // namespace heddle::sys::bootstrap
