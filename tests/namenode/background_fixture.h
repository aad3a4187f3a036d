#pragma once

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "tests/testing/fake_replica_plane.h"
#include "tests/testing/matchers.h"
#include "tests/testing/memory_namespace.h"
#include "tests/testing/sim_world.h"

namespace cairn::namenode {

// A namespace in memory with its writer, an executor for what works on it in the background, and time that passes when nobody can run.
class Background : public ::testing::Test {
 protected:
  size_t Rows(Family family) { return space_.view().rows(family).size(); }
  void MakeFiles(const std::string& directory, int count) {
    for (int i = 0; i < count; ++i) space_.Must(cairn::testing::CreateMutation(directory + "/" + std::to_string(i), "me", {1, 2}));
  }
  bool RunUntil(absl::FunctionRef<bool()> done) {
    return world_.RunUntil([&] { return done(); }, absl::Hours(1));
  }
  template <class Part>
  void StopPart(Part& part) {
    bool stopped = false;
    part.Stop([&] { stopped = true; });
    EXPECT_TRUE(RunUntil([&] { return stopped; }));
  }

  cairn::testing::SimWorld world_{cairn::testing::SimOptions{.seed = 1}};
  cairn::testing::SimProcess* process_ = world_.AddMachine("nn")->StartProcess();
  std::unique_ptr<Executor> writer_ = process_->executors().NewExecutor("writer");
  std::unique_ptr<Executor> executor_ = process_->executors().NewExecutor("background");
  cairn::testing::TestNamespace space_;
  cairn::testing::MemoryNamespace access_{&space_, writer_.get()};
  cairn::testing::FakeReplicaPlane replicas_{4};
};

}  // namespace cairn::namenode
