#include "namenode/frontdoor/group_mapping.h"

#include <gmock/gmock.h>

#include "namenode/frontdoor/caller_resolver.h"
#include "tests/namenode/hand_clock.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: matchers of this test.
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class GroupMappingTest : public ::testing::Test {
 protected:
  std::unique_ptr<GroupMapping> Make(GroupMapping::Options options = {}) {
    return std::make_unique<GroupMapping>(
        options,
        [this](const std::string& user) {
          asked_.push_back(user);
          return answer_;
        },
        &clock_);
  }

  HandClock clock_;
  absl::StatusOr<std::vector<std::string>> answer_ = std::vector<std::string>{"staff", "ops"};
  std::vector<std::string> asked_;
};

TEST_F(GroupMappingTest, TheSystemIsAskedOnceWhileItsWordIsFresh) {
  const auto groups = Make();
  EXPECT_THAT(*groups->GroupsOf("ada"), ElementsAre("staff", "ops"));
  clock_.now = clock_.now + absl::Seconds(299);
  EXPECT_THAT(*groups->GroupsOf("ada"), ElementsAre("staff", "ops"));
  EXPECT_THAT(asked_, ElementsAre("ada"));
  clock_.now = clock_.now + absl::Seconds(1);
  answer_ = std::vector<std::string>{"ops"};
  EXPECT_THAT(*groups->GroupsOf("ada"), ElementsAre("ops"));
  EXPECT_EQ(asked_.size(), 2u);
}

TEST_F(GroupMappingTest, OverridesAreNotAsked) {
  GroupMapping::Options options;
  options.overrides = *ParseGroupOverrides("ada=red,blue;dr.who=");
  const auto groups = Make(options);
  EXPECT_THAT(*groups->GroupsOf("ada"), ElementsAre("red", "blue"));
  EXPECT_THAT(*groups->GroupsOf("dr.who"), IsEmpty());
  EXPECT_THAT(*groups->GroupsOf(""), IsEmpty());
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(GroupMappingTest, AnUnknownUserIsInNoGroupForAShorterWhile) {
  const auto groups = Make();
  answer_ = MakeError(ErrorKind::kNotFound, "no such user");
  EXPECT_THAT(*groups->GroupsOf("eve"), IsEmpty());
  answer_ = std::vector<std::string>{"new"};
  clock_.now = clock_.now + absl::Seconds(29);
  EXPECT_THAT(*groups->GroupsOf("eve"), IsEmpty());
  clock_.now = clock_.now + absl::Seconds(1);
  EXPECT_THAT(*groups->GroupsOf("eve"), ElementsAre("new"));
}

TEST_F(GroupMappingTest, WhileTheServiceIsAwayTheOldGroupsHold) {
  const auto groups = Make();
  static_cast<void>(groups->GroupsOf("ada"));
  answer_ = absl::UnavailableError("directory service");
  clock_.now = clock_.now + absl::Seconds(300);
  EXPECT_THAT(*groups->GroupsOf("ada"), ElementsAre("staff", "ops"));
  EXPECT_THAT(*groups->GroupsOf("new"), IsEmpty());
  // A user who is gone has no groups any more.
  answer_ = MakeError(ErrorKind::kNotFound, "no such user");
  clock_.now = clock_.now + absl::Seconds(30);
  EXPECT_THAT(*groups->GroupsOf("ada"), IsEmpty());
}

TEST_F(GroupMappingTest, OneAsksAgainAndTheOthersGoOnMeanwhile) {
  std::unique_ptr<GroupMapping> groups;
  std::vector<std::string> others;
  int asked = 0;
  const auto lookup = [&](const std::string& user) -> absl::StatusOr<std::vector<std::string>> {
    // Another caller while this one is waiting for the answer.
    if (++asked == 2) others.assign(groups->GroupsOf(user)->begin(), groups->GroupsOf(user)->end());
    return std::vector<std::string>{"answer" + std::to_string(asked)};
  };
  groups = std::make_unique<GroupMapping>(GroupMapping::Options(), lookup, &clock_);
  EXPECT_THAT(*groups->GroupsOf("ada"), ElementsAre("answer1"));
  clock_.now = clock_.now + absl::Seconds(300);
  EXPECT_THAT(*groups->GroupsOf("ada"), ElementsAre("answer2"));
  EXPECT_THAT(others, ElementsAre("answer1"));
  EXPECT_EQ(asked, 2);
}

TEST_F(GroupMappingTest, NoMoreUsersAreKeptThanTheBound) {
  GroupMapping::Options options;
  options.max_users = 2;
  const auto groups = Make(options);
  for (const char* user : {"a", "b", "a", "c", "a", "b"}) static_cast<void>(groups->GroupsOf(user));
  EXPECT_EQ(groups->kept(), 2u);
  EXPECT_THAT(asked_, ElementsAre("a", "b", "c", "b"));  // b went for c, not a, which was used in between.
}

TEST_F(GroupMappingTest, ForgettingAsksAgain) {
  const auto groups = Make();
  static_cast<void>(groups->GroupsOf("ada"));
  groups->Forget();
  static_cast<void>(groups->GroupsOf("ada"));
  EXPECT_EQ(asked_.size(), 2u);
}

TEST(GroupOverrides, AreParsedAsHadoopWritesThem) {
  const auto overrides = ParseGroupOverrides(" user1 = g1 , g2 ; user2=;user3=g2;");
  ASSERT_THAT(overrides, IsOk());
  EXPECT_THAT(*overrides, ElementsAre(Pair("user1", ElementsAre("g1", "g2")), Pair("user2", IsEmpty()), Pair("user3", ElementsAre("g2"))));
  EXPECT_THAT(*ParseGroupOverrides(""), IsEmpty());
  EXPECT_THAT(ParseGroupOverrides("user1"), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(ParseGroupOverrides("=g1"), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(ParseGroupOverrides("a=g1;a=g2"), HasKind(ErrorKind::kInvalidArgument));
}

TEST_F(GroupMappingTest, SuperusersAreTheOneThatRunsTheNameNodeAndTheSupergroup) {
  GroupMapping::Options options;
  options.overrides = *ParseGroupOverrides("root2=wheel,supers;ada=staff");
  const auto groups = Make(options);
  const CallerResolver callers({"hdfs", "supers", true}, groups.get());
  EXPECT_TRUE(callers.Resolve("hdfs").superuser);
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_TRUE(callers.Resolve("root2").superuser);
  EXPECT_FALSE(callers.Resolve("").superuser);
  const ResolvedCaller ada = callers.Resolve("ada");
  EXPECT_FALSE(ada.superuser);
  EXPECT_TRUE(ada.caller().IsInGroup("staff"));
  EXPECT_FALSE(ada.caller().IsInGroup("supers"));
  v1::Mutation mutation;
  ada.Fill(&mutation);
  EXPECT_EQ(mutation.user(), "ada");
  EXPECT_THAT(mutation.groups(), ElementsAre("staff"));
  EXPECT_FALSE(mutation.superuser());
  // Without a mapping and without names nobody is a superuser, not even a user without a name.
  const CallerResolver nobody({"", "", true}, nullptr);
  EXPECT_FALSE(nobody.Resolve("").superuser);
  EXPECT_FALSE(nobody.Resolve("ada").superuser);
}

}  // namespace
}  // namespace cairn::namenode
