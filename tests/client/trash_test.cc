// The trash of a user, on a file system in memory.

#include "client/src/trash.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "tests/client/fake_file_system.h"

namespace cairn::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TrashTest : public ::testing::Test {
 protected:
  TrashTest() {
    files_.AddDirectory("/d");
    files_.AddFile("/d/f", "old");
    files_.AddFile("/g", "G");
  }
  std::string Move(const std::string& path) {
    const absl::StatusOr<std::string> moved = trash_.Move(path, now_);
    EXPECT_TRUE(moved.ok()) << moved.status();
    return moved.ok() ? *moved : "";
  }
  bool Has(const std::string& path) { return files_.entries.contains(path); }

  cli::FakeFileSystem files_;
  Trash trash_{&files_, "flink"};
  absl::Time now_ = absl::FromUnixMillis(1'772'000'000'123);  // 2026-02-25 06:13:20 UTC.
};

TEST_F(TrashTest, KeepsThePathUnderCurrent) {
  EXPECT_EQ(Move("/d/f"), "/user/flink/.Trash/Current/d/f");
  EXPECT_EQ(files_.entries["/user/flink/.Trash/Current/d/f"].data, "old");
  EXPECT_FALSE(Has("/d/f"));
  EXPECT_EQ(Move("/g"), "/user/flink/.Trash/Current/g");
  EXPECT_EQ(Move("//d//"), "/user/flink/.Trash/Current/d1772000000123");  // There is a /d in the trash by now.
}

TEST_F(TrashTest, ANameThatIsTakenGetsTheTime) {
  EXPECT_EQ(Move("/g"), "/user/flink/.Trash/Current/g");
  files_.AddFile("/g", "second");
  EXPECT_EQ(Move("/g"), "/user/flink/.Trash/Current/g1772000000123");
  files_.AddFile("/g", "third");
  EXPECT_EQ(Move("/g"), "/user/flink/.Trash/Current/g1772000000124");  // In the same millisecond.
  EXPECT_EQ(files_.entries["/user/flink/.Trash/Current/g"].data, "G");
  EXPECT_EQ(files_.entries["/user/flink/.Trash/Current/g1772000000123"].data, "second");
}

TEST_F(TrashTest, AFileInTheWayOfADirectoryStays) {
  EXPECT_EQ(Move("/g"), "/user/flink/.Trash/Current/g");
  files_.AddDirectory("/g");
  files_.AddDirectory("/g/h");
  files_.AddFile("/g/h/x", "X");
  EXPECT_EQ(Move("/g/h/x"), "/user/flink/.Trash/Current/g1772000000123/h/x");
  EXPECT_EQ(files_.entries["/user/flink/.Trash/Current/g"].data, "G");
}

TEST_F(TrashTest, WhatIsInTheTrashIsNotMoved) {
  Move("/g");
  EXPECT_EQ(Move("/user/flink/.Trash/Current/g"), "");
  EXPECT_EQ(Move("/user/flink/.Trash"), "");
  EXPECT_TRUE(Has("/user/flink/.Trash/Current/g"));
  files_.AddDirectory("/user/flink/.Trash2");
  EXPECT_EQ(Move("/user/flink/.Trash2"), "/user/flink/.Trash/Current/user/flink/.Trash2");
  files_.AddDirectory("/user/other");
  files_.AddDirectory("/user/other/.Trash");
  EXPECT_EQ(Move("/user/other/.Trash"), "/user/flink/.Trash/Current/user/other/.Trash");  // Another's.
}

TEST_F(TrashTest, WhatContainsTheTrashIsRefused) {
  Move("/g");
  for (const char* path : {"/", "/user", "/user/flink", "/user/flink/"}) {
    const absl::Status status = trash_.Move(path, now_).status();
    EXPECT_EQ(KindOf(status), ErrorKind::kInvalidArgument) << path;
    EXPECT_EQ(ReasonOf(status), "CONTAINS_TRASH") << path;
  }
  EXPECT_EQ(trash_.Move("/user", now_).status().message(), "Cannot move \"/user\" to the trash, as it contains the trash");
}

TEST_F(TrashTest, WhatIsNotThereIsNotFound) { EXPECT_EQ(KindOf(trash_.Move("/no", now_).status()), ErrorKind::kNotFound); }

TEST_F(TrashTest, ExpungeDeletesWhatIsOldAndThenMakesACheckpoint) {
  Move("/g");
  const ExpungedTrash first = trash_.Expunge(now_, absl::Hours(1), false).value();
  EXPECT_EQ(first.made, "/user/flink/.Trash/260225061320");
  EXPECT_THAT(first.deleted, IsEmpty());
  EXPECT_TRUE(Has("/user/flink/.Trash/260225061320/g"));
  EXPECT_FALSE(Has("/user/flink/.Trash/Current"));

  Move("/d/f");
  files_.AddDirectory("/user/flink/.Trash/mine");
  const ExpungedTrash same_second = trash_.Expunge(now_, absl::Hours(1), false).value();
  EXPECT_EQ(same_second.made, "/user/flink/.Trash/260225061320-1");
  EXPECT_THAT(same_second.deleted, IsEmpty());

  const ExpungedTrash later = trash_.Expunge(now_ + absl::Minutes(61), absl::Hours(1), false).value();
  EXPECT_EQ(later.made, "");
  EXPECT_THAT(later.deleted, ElementsAre("/user/flink/.Trash/260225061320", "/user/flink/.Trash/260225061320-1"));
  EXPECT_FALSE(Has("/user/flink/.Trash/260225061320/g"));
  EXPECT_TRUE(Has("/user/flink/.Trash/mine"));
}

TEST_F(TrashTest, ExpungedAtOnceLeavesNothing) {
  Move("/g");
  const ExpungedTrash expunged = trash_.Expunge(now_, absl::Hours(1), true).value();
  EXPECT_EQ(expunged.made, "/user/flink/.Trash/260225061320");
  EXPECT_THAT(expunged.deleted, ElementsAre("/user/flink/.Trash/260225061320"));
  EXPECT_FALSE(Has("/user/flink/.Trash/260225061320/g"));
}

TEST_F(TrashTest, WithoutTrashThereIsNothingToExpunge) {
  const ExpungedTrash expunged = trash_.Expunge(now_, absl::Hours(1), true).value();
  EXPECT_EQ(expunged.made, "");
  EXPECT_THAT(expunged.deleted, IsEmpty());
}

}  // namespace
}  // namespace cairn::client
