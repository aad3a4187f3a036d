#include "common/log.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Log : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/log.XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  void TearDown() override {
    log::Options quiet;
    quiet.level = log::Level::kWarning;
    EXPECT_TRUE(log::SetUp(quiet).ok());
    std::filesystem::remove_all(directory_);
  }

  log::Options ToFile(log::Level level) const {
    log::Options options;
    options.level = level;
    options.directory = directory_;
    options.program = "test";
    options.to_standard_error = false;
    return options;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(directory_ + "/" + name);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  std::string directory_;
};

TEST_F(Log, WritesLinesOfTheLevelAndAbove) {
  ASSERT_TRUE(log::SetUp(ToFile(log::Level::kInfo)).ok());
  log::Debug("hidden {}", 1);
  log::Info("seen {}", 2);
  log::Error("loud");
  EXPECT_THAT(Read("test.log"),
              AllOf(HasSubstr(" I "), HasSubstr("seen 2\n"), HasSubstr(" E "), HasSubstr("loud\n"), Not(HasSubstr("hidden"))));
  EXPECT_FALSE(log::Enabled(log::Level::kDebug));
  log::SetLevel(log::Level::kDebug);
  log::Debug("now {}", 3);
  EXPECT_THAT(Read("test.log"), HasSubstr("now 3\n"));
}

TEST_F(Log, AMessageFromOutsideCannotForgeALine) {
  ASSERT_TRUE(log::SetUp(ToFile(log::Level::kInfo)).ok());
  log::Info("peer said {}", "a\nb\x1b[0m\x7f");
  const std::string text = Read("test.log");
  EXPECT_THAT(text, HasSubstr("peer said a\\nb\\x1b[0m\\x7f\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST_F(Log, BracesInAMessageAreNotAFormat) {
  ASSERT_TRUE(log::SetUp(ToFile(log::Level::kInfo)).ok());
  log::Write(log::Level::kInfo, "{} %s {0}");
  EXPECT_THAT(Read("test.log"), HasSubstr("{} %s {0}\n"));
}

TEST_F(Log, FilesRotateAndTheirNumberIsBounded) {
  log::Options options = ToFile(log::Level::kInfo);
  options.max_file_bytes = 1000;
  options.max_files = 2;
  ASSERT_TRUE(log::SetUp(options).ok());
  for (int i = 0; i < 100; ++i) log::Info("line {} of a hundred", i);
  EXPECT_THAT(Read("test.log"), HasSubstr("line 99 of"));
  EXPECT_LE(Read("test.log").size(), 1000u);
  EXPECT_FALSE(Read("test.1.log").empty());
  EXPECT_FALSE(Read("test.2.log").empty());
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/test.3.log"));
}

TEST_F(Log, ADirectoryThatCannotBeMadeIsAnErrorThatNamesTheFile) {
  std::ofstream(directory_ + "/file") << "x";
  log::Options options = ToFile(log::Level::kInfo);
  options.directory = directory_ + "/file/logs";
  const absl::Status status = log::SetUp(options);
  EXPECT_EQ(KindOf(status), ErrorKind::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/file/logs/test.log"));
}

TEST_F(Log, LevelsHaveNames) {
  EXPECT_EQ(log::LevelFromName("warning"), log::Level::kWarning);
  EXPECT_EQ(log::LevelFromName("debug"), log::Level::kDebug);
  EXPECT_EQ(log::LevelFromName("loud"), std::nullopt);
}

}  // namespace
}  // namespace cairn
