#include "datanode/reconfigure_call.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "common/error.h"
#include "datanode/datanode.h"
#include "tests/testing/matchers.h"
#include "tests/testing/sim_world.h"

namespace cairn::datanode {
namespace {

using cairn::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Volumes : public ChangeableVolumes {
 public:
  void ChangeVolumes(std::vector<std::string> directories, std::function<void(absl::Status)> done) override {
    asked.push_back(std::move(directories));
    if (hangs) {
      hanging = std::move(done);
    } else {
      done(result);
    }
  }
  void SetPace(const DeleterOptions& deleter, const ScannerOptions&, const VolumeMoverOptions& mover) override {
    unlinks_per_second = deleter.unlinks_per_second;
    move_threshold_percent = mover.threshold_percent;
  }

  std::vector<std::vector<std::string>> asked;
  bool hangs = false;
  std::function<void(absl::Status)> hanging;
  absl::Status result;
  double unlinks_per_second = 0;
  double move_threshold_percent = 0;
};

class ReconfigureCallTest : public ::testing::Test {
 protected:
  absl::StatusOr<Config> Load() {
    Config config;
    if (absl::Status status = config.AddYaml(file_, "cairn.yaml"); !status.ok()) return status;
    return config;
  }
  v1::ReconfigureResponse Start() {
    v1::ReconfigureRequest request;
    request.set_action(v1::ReconfigureRequest::START);
    std::optional<absl::StatusOr<v1::ReconfigureResponse>> answer;
    call_.Call(std::move(request), [&answer](absl::StatusOr<v1::ReconfigureResponse> response) { answer = std::move(response); });
    EXPECT_TRUE(world_.RunUntil([&answer] { return answer.has_value(); }, absl::Seconds(1)));
    EXPECT_THAT(*answer, IsOk());
    return **answer;
  }

  cairn::testing::SimWorld world_{{.seed = 1}};
  cairn::testing::SimProcess* process_ = world_.AddMachine("datanode")->StartProcess();
  std::string file_ = "dfs.datanode.data.dir: /a\n";
  Volumes volumes_;
  Reconfiguration reconfiguration_{*Load(), [this] { return Load(); }, &process_->clock(), Reconfiguration::Daemon::kDatanode};
  std::vector<size_t> limits_;  // Of streams, as they were taken over.
  ReconfigureCall call_{process_, &reconfiguration_, &volumes_,
                        [this](const DatanodeOptions& options) { limits_.push_back(options.transfer.max_streams); }};
};

TEST_F(ReconfigureCallTest, ChangeThatFailedIsTriedAgainThoughTheFileIsTheSame) {
  file_ =
      "dfs.datanode.data.dir: /a,/b/,/c/../d\ncairn.datanode.delete.unlinks-per-second: "
      "7\ncairn.datanode.volume-balance.threshold-percent: 3\n";
  volumes_.result = MakeError(ErrorKind::kInvalidArgument, "/b: its disk is not mounted");
  const v1::ReconfigureResponse failed = Start();
  EXPECT_THAT(failed.error(), HasSubstr("not mounted"));
  EXPECT_THAT(failed.changes(), SizeIs(3));
  EXPECT_EQ(volumes_.unlinks_per_second, 7);
  EXPECT_EQ(volumes_.move_threshold_percent, 3);
  volumes_.result = absl::OkStatus();
  const v1::ReconfigureResponse again = Start();
  EXPECT_EQ(again.error(), "");
  EXPECT_THAT(again.changes(), IsEmpty());
  EXPECT_THAT(volumes_.asked, ElementsAre(ElementsAre("/a", "/b", "/d"), ElementsAre("/a", "/b", "/d")));
}

TEST_F(ReconfigureCallTest, TheLimitOfStreamsIsTakenOver) {
  file_ += "dfs.datanode.max.transfer.threads: 512\n";
  const v1::ReconfigureResponse done = Start();
  ASSERT_THAT(done.changes(), SizeIs(1));
  EXPECT_EQ(done.changes(0).key(), "dfs.datanode.max.transfer.threads");
  EXPECT_TRUE(done.changes(0).taken());
  EXPECT_THAT(limits_, ElementsAre(512u));
}

TEST_F(ReconfigureCallTest, NothingTouchesTheVolumesOnceItIsClosed) {
  v1::ReconfigureRequest request;
  request.set_action(v1::ReconfigureRequest::START);
  std::optional<absl::StatusOr<v1::ReconfigureResponse>> answer;
  call_.Call(std::move(request), [&answer](absl::StatusOr<v1::ReconfigureResponse> response) { answer = std::move(response); });
  call_.Close();
  ASSERT_TRUE(answer.has_value());
  EXPECT_THAT(*answer, cairn::testing::HasKind(ErrorKind::kCancelled));
  EXPECT_THAT(volumes_.asked, IsEmpty());
}

TEST_F(ReconfigureCallTest, CallThatWaitsForADiskIsAnsweredWhenTheNodeStops) {
  file_ = "dfs.datanode.data.dir: /a,/hangs\n";
  volumes_.hangs = true;
  v1::ReconfigureRequest request;
  request.set_action(v1::ReconfigureRequest::START);
  std::vector<absl::Status> answers;
  const auto note = [&answers](const absl::StatusOr<v1::ReconfigureResponse>& response) { answers.push_back(response.status()); };
  call_.Call(request, note);
  call_.Call(request, note);
  world_.RunFor(absl::Seconds(1));
  EXPECT_THAT(answers, IsEmpty());
  EXPECT_THAT(volumes_.asked, SizeIs(2));
  call_.Close();
  ASSERT_THAT(answers, SizeIs(2));
  for (const absl::Status& answer : answers) EXPECT_THAT(answer, cairn::testing::HasKind(ErrorKind::kCancelled));
  // The disk answers after all: nobody is answered twice.
  volumes_.hanging(absl::OkStatus());
  world_.RunFor(absl::Seconds(1));
  EXPECT_THAT(answers, SizeIs(2));
}

TEST_F(ReconfigureCallTest, FileThatIsRefusedChangesNothing) {
  file_ = "dfs.datanode.data.dir: /b\nno.such.key: 1\n";
  EXPECT_THAT(Start().error(), HasSubstr("no.such.key"));
  EXPECT_THAT(volumes_.asked, IsEmpty());
}

}  // namespace
}  // namespace cairn::datanode
