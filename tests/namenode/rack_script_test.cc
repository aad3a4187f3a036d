#include "namenode/replicas/rack_script.h"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/sim_world.h"

namespace cairn::namenode {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RackScriptTest : public ::testing::Test {
 protected:
  void Start(size_t most_arguments = 100, std::shared_ptr<const RackTable> table = nullptr) {
    RackScript::Options options;
    options.program = "/racks";
    options.most_arguments = most_arguments;
    script_.emplace(
        options, std::move(table),
        [this](const std::vector<std::string>& words, absl::Duration timeout) -> absl::StatusOr<std::string> {
          EXPECT_EQ(timeout, absl::Seconds(10));
          calls_.push_back(words);
          if (answers_.empty()) return absl::UnavailableError("/racks: it ended with code 1");
          std::string answer = answers_.front();
          answers_.pop_front();
          return answer;
        },
        executor_.get(), [this](std::shared_ptr<const RackTable> racks) { racks_ = std::move(racks); });
  }
  std::string RackOf(const std::string& host) { return script_->racks()->RackOf(host); }
  void Settle() { world_.RunFor(absl::Seconds(1)); }

  testing::SimWorld world_{{}};
  std::unique_ptr<Executor> executor_ = world_.executors().NewExecutor("topology");
  std::vector<std::vector<std::string>> calls_;
  std::deque<std::string> answers_;
  std::shared_ptr<const RackTable> racks_;  // As last told.
  std::optional<RackScript> script_;
};

TEST_F(RackScriptTest, AsksForManyHostsAtOnceAndKeepsTheAnswers) {
  Start(/*most_arguments=*/2);
  answers_ = {"/r1\n/r2\n", "/r3 "};
  for (const char* host : {"b", "A.example.com", "c", "a.EXAMPLE.com"}) script_->Ask(host);
  EXPECT_EQ(RackOf("b"), kDefaultRack);  // Nobody waits.
  Settle();
  EXPECT_THAT(calls_, ElementsAre(ElementsAre("/racks", "a.example.com", "b"), ElementsAre("/racks", "c")));
  EXPECT_EQ(RackOf("a.example.com"), "/r1");
  EXPECT_EQ(RackOf("b"), "/r2");
  EXPECT_EQ(RackOf("c"), "/r3");
  ASSERT_NE(racks_, nullptr);
  EXPECT_EQ(racks_->RackOf("c"), "/r3");
  script_->Ask("b");
  Settle();
  EXPECT_THAT(calls_, SizeIs(2));
}

TEST_F(RackScriptTest, FailuresLeaveHostsOnTheDefaultRackAndAreTriedAgain) {
  Start();
  script_->Ask("a");
  EXPECT_FALSE(script_->racks()->Answers("a"));
  Settle();
  EXPECT_EQ(RackOf("a"), kDefaultRack);
  EXPECT_TRUE(script_->racks()->Answers("a"));  // As far as anybody can say.
  for (const char* wrong : {"", "/r1 /r2", "/", "r2"}) {
    answers_ = {wrong};
    world_.RunFor(absl::Minutes(1));
    EXPECT_EQ(RackOf("a"), kDefaultRack) << wrong;
    EXPECT_THAT(answers_, IsEmpty()) << wrong;
  }
  answers_ = {"/r1"};
  world_.RunFor(absl::Minutes(1));
  EXPECT_EQ(RackOf("a"), "/r1");
  EXPECT_EQ(racks_->RackOf("a"), "/r1");
  EXPECT_THAT(calls_, SizeIs(6));
}

TEST_F(RackScriptTest, HostThatTheProgramDoesNotKnowKeepsNoOtherFromItsRack) {
  Start(/*most_arguments=*/2);
  answers_ = {"bad", "/c", "bad", "/b"};
  for (const char* host : {"a", "b", "c"}) script_->Ask(host);
  Settle();
  EXPECT_THAT(calls_, ElementsAre(ElementsAre("/racks", "a", "b"), ElementsAre("/racks", "c"), ElementsAre("/racks", "a"),
                                  ElementsAre("/racks", "b")));
  EXPECT_EQ(racks_->RackOf("a"), kDefaultRack);
  EXPECT_EQ(racks_->RackOf("b"), "/b");
  EXPECT_EQ(racks_->RackOf("c"), "/c");
  answers_ = {"/d"};
  script_->Ask("d");  // It does not wait for the other's pause.
  Settle();
  EXPECT_EQ(racks_->RackOf("d"), "/d");
  answers_ = {"/a"};
  world_.RunFor(absl::Minutes(1));
  EXPECT_EQ(racks_->RackOf("a"), "/a");
  EXPECT_THAT(calls_, SizeIs(6));
}

TEST_F(RackScriptTest, TableGoesFirstAndWhatIsKnownHoldsUntilThereIsANewAnswer) {
  Start(100, std::make_shared<const RackTable>(RackTable::Of({{"a", "/table"}})));
  answers_ = {"/r1"};
  for (const char* host : {"a", "b", "-rf", ""}) script_->Ask(host);  // What looks like an option is no host.
  Settle();
  EXPECT_THAT(calls_, ElementsAre(ElementsAre("/racks", "b")));
  EXPECT_EQ(RackOf("a"), "/table");
  script_->AskAgain(nullptr);
  EXPECT_EQ(RackOf("b"), "/r1");
  EXPECT_FALSE(script_->racks()->Answers("a"));  // The table does not say any more.
  answers_ = {"/r8 /r9"};
  Settle();
  EXPECT_EQ(RackOf("b"), "/r9");
  EXPECT_EQ(RackOf("a"), "/r8");
}

}  // namespace
}  // namespace cairn::namenode
