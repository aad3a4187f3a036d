#include "client/cli/mode_change.h"

#include <gtest/gtest.h>

namespace cairn::cli {
namespace {

// What becomes of a file's mode; a directory's with `directory`.
uint32_t Changed(const std::string& change, uint32_t mode, bool directory = false) {
  const auto parsed = ModeChange::Parse(change);
  EXPECT_TRUE(parsed.ok()) << change;
  return parsed.ok() ? parsed->Apply(mode, directory) : 0;
}

TEST(ModeChange, OctalReplacesAllBits) {
  EXPECT_EQ(Changed("755", 0), 0755u);
  EXPECT_EQ(Changed("000", 01777), 0u);
  EXPECT_EQ(Changed("0644", 01777), 0644u);
  EXPECT_EQ(Changed("1777", 0), 01777u);
}

TEST(ModeChange, ClausesAddTakeAndSet) {
  EXPECT_EQ(Changed("u+x", 0644), 0744u);
  EXPECT_EQ(Changed("go-r", 0644), 0600u);
  EXPECT_EQ(Changed("g=rw", 0754), 0764u);
  EXPECT_EQ(Changed("+w", 0444), 0666u);  // Nobody named: all.
  EXPECT_EQ(Changed("-w", 0666), 0444u);
  EXPECT_EQ(Changed("a=r", 0777), 0444u);
}

TEST(ModeChange, ClausesCountInOrder) {
  EXPECT_EQ(Changed("u=r,u+w", 0777), 0677u);
  EXPECT_EQ(Changed("a-rwx,u+r,g+w", 0777), 0420u);
}

TEST(ModeChange, CapitalXIsForDirectoriesAndWhatIsExecutable) {
  EXPECT_EQ(Changed("a+X", 0644), 0644u);
  EXPECT_EQ(Changed("a+X", 0744), 0755u);
  EXPECT_EQ(Changed("a+X", 0644, true), 0755u);
  EXPECT_EQ(Changed("go=rX", 0700), 0755u);
  EXPECT_EQ(Changed("go=rX", 0600), 0644u);
}

TEST(ModeChange, TheStickyBitIsTheOthers) {
  EXPECT_EQ(Changed("+t", 0777), 01777u);
  EXPECT_EQ(Changed("o+t", 0777), 01777u);
  EXPECT_EQ(Changed("u+t", 0777), 0777u);
  EXPECT_EQ(Changed("a-t", 01777), 0777u);
  EXPECT_EQ(Changed("u-w", 01777), 01577u);
  EXPECT_EQ(Changed("+x", 01666), 01777u);
  EXPECT_EQ(Changed("o=rx", 01777), 0775u);  // Set, and it was not named.
}

TEST(ModeChange, EverythingElseIsRefused) {
  for (const char* text : {"", "8", "75", "2755", "17777", "789", "x", "u", "u+", "u+q", "u?r", "u+r,", ",u+r", "u+rw g", "rwx"}) {
    const auto refused = ModeChange::Parse(text);
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_EQ(std::string(refused.status().message()), "mode '" + std::string(text) + "' does not match the expected pattern.");
  }
}

}  // namespace
}  // namespace cairn::cli
