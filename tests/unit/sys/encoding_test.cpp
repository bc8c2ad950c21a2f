#include "sys/bootstrap/encoding.hpp"

#include <gtest/gtest.h>

namespace heddle::sys::bootstrap {
namespace {

std::string every_byte(std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes.push_back(static_cast<char>(i * 37));
  return bytes;
}

TEST(Base64, GivesBackEveryLength) {
  for (std::size_t size = 0; size < 600; ++size)
    EXPECT_EQ(decode_base64(encode_base64(every_byte(size))), every_byte(size));
}

TEST(Base64, HoldsNothingThatALineProtocolMinds) {
  EXPECT_EQ(encode_base64(every_byte(256)).find_first_of(" =\n\r%;"), std::string::npos);
}

TEST(Base64, RefusesWhatItCannotHaveMade) {
  for (const char* text : {"A", "AAAAA", "AA=", "A A", "A\n"}) EXPECT_FALSE(decode_base64(text)) << text;
}

TEST(Percent, GivesBackEveryByteInOneWord) {
  const std::string text = encode_percent(every_byte(256));
  EXPECT_EQ(text.find_first_of(" \n="), std::string::npos);
  EXPECT_EQ(decode_percent(text), every_byte(256));
}

TEST(Percent, LeavesPortNamesReadable) { EXPECT_EQ(encode_percent("tag#0$host:10.0.0.1/x"), "tag#0$host:10.0.0.1/x"); }

TEST(Percent, TakesForeignTextAsItIs) {
  for (const char* text : {"100%", "%", "%z1", "%1", "a%%b"}) EXPECT_EQ(decode_percent(text), text);
}

}  // namespace
}  // namespace heddle::sys::bootstrap
