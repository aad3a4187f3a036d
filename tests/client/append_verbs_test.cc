// `cairn dfs -appendToFile`, `-truncate`, and `cairn debug recoverLease`.

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/debug_verbs.h"
#include "client/cli/dfs_append.h"
#include "common/error.h"
#include "tests/client/fake_file_system.h"
#include "tests/testing/temporary_directory.h"

namespace cairn::cli {
namespace {

using ::testing::HasSubstr;

class AppendVerbsTest : public ::testing::Test {
 protected:
  AppendVerbsTest() {
    shell_.files = &files_;
    shell_.out = &out_;
    shell_.err = &err_;
    shell_.user = "flink";
    shell_.wait = [this](absl::Duration duration) { waited_ += duration; };
    shell_.read_input = [this](std::span<char> into) {
      return static_cast<long>(input_.readsome(into.data(), static_cast<long>(into.size())));
    };
  }
  int Run(const std::vector<Verb>& verbs, std::vector<std::string> words) {
    out_.str("");
    err_.str("");
    return RunVerb("cairn", verbs, words, &shell_);
  }
  int Dfs(std::vector<std::string> words) { return Run(AppendVerbs(), std::move(words)); }
  int Debug(std::vector<std::string> words) { return Run(DebugVerbs(), std::move(words)); }
  std::string WriteLocal(const std::string& name, const std::string& data) {
    std::ofstream(local_.path() + "/" + name, std::ios::binary) << data;
    return local_.path() + "/" + name;
  }

  testing::TemporaryDirectory local_;
  FakeFileSystem files_;
  std::ostringstream out_;
  std::ostringstream err_;
  std::istringstream input_;
  absl::Duration waited_;
  Shell shell_;
};

TEST_F(AppendVerbsTest, AppendsLocalFilesAndInputToAFileThatIsMadeIfNeeded) {
  const std::string one = WriteLocal("one", "11"), two = WriteLocal("two", "22");
  EXPECT_EQ(Dfs({"-appendToFile", one, two, "/f"}), 0);
  EXPECT_EQ(files_.entries["/f"].data, "1122");
  input_.str("33");
  EXPECT_EQ(Dfs({"-appendToFile", "-n", "-", "/f"}), 0);
  EXPECT_EQ(files_.entries["/f"].data, "112233");
}

TEST_F(AppendVerbsTest, AppendTouchesNothingIfASourceIsMissing) {
  files_.AddFile("/f", "x");
  files_.AddDirectory("/d");
  const std::string one = WriteLocal("one", "11");
  EXPECT_EQ(Dfs({"-appendToFile", one, local_.path() + "/none", "/f"}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("No such file or directory"));
  EXPECT_EQ(files_.entries["/f"].data, "x");
  EXPECT_EQ(Dfs({"-appendToFile", local_.path(), "/f"}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("Is a directory"));
  EXPECT_EQ(Dfs({"-appendToFile", one, "/d"}), 1);
  EXPECT_EQ(err_.str(), "appendToFile: `/d': Is a directory\n");
  files_.fail_append = MakeError(ErrorKind::kDiskFull, "no room");
  EXPECT_EQ(Dfs({"-appendToFile", one, "/f"}), 1);
  EXPECT_EQ(files_.aborted, 1);
}

TEST_F(AppendVerbsTest, TruncateSaysWhetherItIsDone) {
  files_.AddFile("/f", "123456");
  EXPECT_EQ(Dfs({"-truncate", "4", "/f"}), 0);
  EXPECT_EQ(out_.str(), "Truncated /f to length: 4\n");
  files_.recoveries_to_wait_for = 5;
  EXPECT_EQ(Dfs({"-truncate", "3", "/f"}), 0);
  EXPECT_EQ(out_.str(), "Truncating /f to length: 3. Wait for block recovery to complete before further updating this file.\n");
  files_.recoveries_to_wait_for = 4;  // Of these one for the look before.
  EXPECT_EQ(Dfs({"-truncate", "-w", "2", "/f"}), 0);
  EXPECT_EQ(out_.str(), "Waiting for /f ...\nTruncated /f to length: 2\n");
  EXPECT_EQ(waited_, absl::Seconds(3));
  EXPECT_EQ(files_.entries["/f"].data, "12");
}

TEST_F(AppendVerbsTest, TruncateRefusesWhatMakesNoSense) {
  files_.AddFile("/f", "12");
  files_.AddDirectory("/d");
  EXPECT_EQ(Dfs({"-truncate", "x", "/f"}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("Illegal length"));
  EXPECT_EQ(Dfs({"-truncate", "1", "/none"}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("/none"));
  EXPECT_EQ(Dfs({"-truncate", "1", "/d"}), 1);
  EXPECT_EQ(err_.str(), "truncate: `/d': Is a directory\n");
  EXPECT_EQ(Dfs({"-truncate", "3", "/f"}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("Cannot truncate to a larger file size"));
}

TEST_F(AppendVerbsTest, RecoverLeaseTriesAsOftenAsItIsTold) {
  files_.AddFile("/f", "12");
  EXPECT_EQ(Debug({"-recoverLease", "-path", "/f"}), 0);
  EXPECT_EQ(out_.str(), "recoverLease SUCCEEDED on /f\n");
  files_.recoveries_to_wait_for = 2;
  EXPECT_EQ(Debug({"-recoverLease", "-retries", "3", "-path", "/f"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("Retrying in 5000 ms...\nRetry #2\nrecoverLease SUCCEEDED on /f\n"));
  EXPECT_EQ(waited_, absl::Seconds(10));
  files_.recoveries_to_wait_for = 9;
  EXPECT_EQ(Debug({"-recoverLease", "-path", "/f", "-retries", "2"}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("Giving up on recoverLease for /f after 2 tries"));
  EXPECT_EQ(Debug({"-recoverLease", "-retries", "2"}), 1);
  EXPECT_EQ(err_.str(), "You must supply a -path argument to recoverLease.\n");
  EXPECT_EQ(Debug({"-recoverLease", "-path", "/f", "-retries", "0"}), 1);
  EXPECT_EQ(Debug({"-recoverLease", "-path", "/none"}), 1);
}

}  // namespace
}  // namespace cairn::cli
