#include "weightcast/plan/text.h"

#include <gtest/gtest.h>

namespace weightcast {
namespace {

TEST(Text, EveryWellFormedCharacterIsUtf8) {
  for (const std::string_view text :
       {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "层.ä.😀"}) {
    EXPECT_TRUE(is_utf8(text)) << text;
  }
  EXPECT_TRUE(is_utf8(std::string_view("\0", 1)));
}

TEST(Text, MalformedBytesAreNotUtf8) {
  for (const std::string_view text :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x9f\xbf", "\xe2\x82",
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xf0\x90\x80", "\xff", "abc\xe2\x28\xa1"}) {
    EXPECT_FALSE(is_utf8(text)) << printable(text);
  }
}

TEST(Text, PrintableShowsNoControlCharacter) {
  EXPECT_EQ(printable("layer.ä.😀"), "layer.ä.😀");
  EXPECT_EQ(printable("a\x1b[31m\n\x7f"), "a\\x1b[31m\\x0a\\x7f");
  EXPECT_EQ(printable("\xff\xc2\x9b"), "\\xff\\xc2\\x9b");
}

TEST(Text, PrintableCutsBetweenCharacters) {
  EXPECT_EQ(printable("ääää", 4), "ää…");
  EXPECT_EQ(printable("abcd", 4), "abcd");
  EXPECT_LT(printable(std::string(100'000, '\n')).size(), 210u);
}

}  // namespace
}  // namespace weightcast
