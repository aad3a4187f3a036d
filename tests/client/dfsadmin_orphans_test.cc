#include "client/cli/dfsadmin_orphans.h"

#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"

namespace cairn::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OrphansVerbTest : public ::testing::Test {
 protected:
  OrphansVerbTest() {
    verbs_.push_back(OrphansVerb([this](const v1::ListOrphansRequest& request) -> absl::StatusOr<v1::ListOrphansResponse> {
      asked_.push_back(request);
      now_ += page_takes_;
      if (!error_.ok()) return error_;
      return pages_.at(asked_.size() - 1);
    }));
    shell_.out = &out_;
    shell_.err = &err_;
    shell_.user = "ann";
    shell_.now = [this] { return now_; };
  }
  int Run(const std::vector<std::string>& words) { return RunVerb("cairn dfsadmin", verbs_, words, &shell_); }
  void AddPage(const std::string& next, uint64_t seen) {
    v1::ListOrphansResponse& page = pages_.emplace_back();
    page.set_next(next);
    page.set_inodes_seen(seen);
  }
  void AddFile(const std::string& path, v1::OrphanFile::State state, uint64_t length) {
    v1::OrphanFile& file = *pages_.back().add_files();
    file.set_path(path);
    file.set_state(state);
    file.set_since_ms(1'772'373'900'000);
    file.set_length_bytes(length);
  }

  std::vector<v1::ListOrphansRequest> asked_;
  std::vector<v1::ListOrphansResponse> pages_;
  absl::Status error_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  absl::Duration page_takes_;
  std::ostringstream out_, err_;
  Shell shell_;
  std::vector<Verb> verbs_;
};

TEST_F(OrphansVerbTest, ListsAllPagesWithTheirStates) {
  AddPage("/b", 20'000);
  AddFile("/d/a", v1::OrphanFile::ABANDONED, 0);
  AddFile("/d/b", v1::OrphanFile::SILENT, 1024);
  AddPage("", 7);
  AddFile("/d/c/d", v1::OrphanFile::WRITING, 5);
  EXPECT_EQ(Run({"-orphans", "-older", "1m", "/d"}), kSuccess);
  EXPECT_EQ(out_.str(),
            "ABANDONED 2026-03-01 14:05:00            0 /d/a\n"
            "SILENT    2026-03-01 14:05:00         1024 /d/b\n"
            "WRITING   2026-03-01 14:05:00            5 /d/c/d\n"
            "3 files of 1029 bytes that no writer has closed, among 20007 files and directories\n");
  EXPECT_THAT(err_.str(), IsEmpty());
  ASSERT_EQ(asked_.size(), 2u);
  EXPECT_EQ(asked_[0].path(), "/d");
  EXPECT_EQ(asked_[0].older_than_ms(), 60'000);
  EXPECT_EQ(asked_[0].start_after(), "");
  EXPECT_EQ(asked_[1].start_after(), "/b");
  EXPECT_EQ(asked_[1].older_than_ms(), 60'000);
}

TEST_F(OrphansVerbTest, PathsAloneAreForOtherCommandsAndTheAgeMayComeLast) {
  AddPage("", 2);
  AddFile("/user/ann/d/a", v1::OrphanFile::ABANDONED, 0);
  EXPECT_EQ(Run({"-orphans", "-C", "d", "--older", "2d"}), kSuccess);
  EXPECT_EQ(out_.str(), "/user/ann/d/a\n");
  EXPECT_EQ(asked_[0].path(), "/user/ann/d");
  EXPECT_EQ(asked_[0].older_than_ms(), 2 * 24 * 3'600'000);
}

TEST_F(OrphansVerbTest, SaysHowFarItIsWhenItTakesLong) {
  page_takes_ = absl::Seconds(3);
  for (const char* next : {"/a/x", "/b/x", "/c/x", "/d/x"}) AddPage(next, 20'000);
  AddPage("", 1);
  EXPECT_EQ(Run({"-orphans", "-older", "1h", "/job"}), kSuccess);
  EXPECT_EQ(err_.str(),
            "orphans: 40000 files and directories looked at, 0 found, at /job/b/x\n"
            "orphans: 80000 files and directories looked at, 0 found, at /job/d/x\n");
}

TEST_F(OrphansVerbTest, AnAgeIsNeeded) {
  EXPECT_EQ(Run({"-orphans", "/d"}), kUsage);
  EXPECT_THAT(err_.str(), HasSubstr("-older"));
  EXPECT_EQ(Run({"-orphans", "-older", "soon", "/d"}), kUsage);
  EXPECT_THAT(err_.str(), HasSubstr("'soon' is no age"));
  EXPECT_EQ(Run({"-orphans", "-older", "60", "/d"}), kUsage);
  EXPECT_EQ(Run({"-orphans", "/d", "/e"}), kUsage);
  EXPECT_EQ(Run({"-orphans"}), kUsage);
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(OrphansVerbTest, ARefusalEndsIt) {
  error_ = MakeError(ErrorKind::kPermission, "Access denied for user ann. Superuser privilege is required");
  EXPECT_EQ(Run({"-orphans", "-older", "1m", "/d"}), kFailure);
  EXPECT_EQ(err_.str(), "orphans: `/d': Access denied for user ann. Superuser privilege is required\n");
}

}  // namespace
}  // namespace cairn::cli
