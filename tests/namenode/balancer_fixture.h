#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/namenode/replica_cluster.h"

namespace cairn::namenode::testing {

// A run of the balancer over a whole replica plane, with DataNodes that are only a protocol.
class BalancerTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kCapacity = 10'000;  // Of a node; its blocks have 100 bytes.

  BalancerTest() { request_.set_threshold(5); }

  void Start(size_t nodes) {
    cluster_ = std::make_unique<ReplicaCluster>(nodes);
    for (const auto& node : cluster_->nodes) node->capacity_bytes = kCapacity;
    cluster_->options.balancer_moves_per_node = 8;
  }
  void Connect() {
    cluster_->StartNamenode();
    cluster_->ConnectAll();
    cluster_->Settle();
  }
  // Out of the time in which a client's word counts, and with DataNodes' heartbeats behind it.
  void Age() { cluster_->world.RunFor(absl::Seconds(75)); }
  void Write(size_t blocks, const std::vector<size_t>& on) {
    for (size_t i = 0; i < blocks; ++i) {
      blocks_.push_back(cluster_->Write(on, static_cast<uint32_t>(on.size())));
      wanted_.push_back(on.size());
    }
  }

  absl::StatusOr<v1::BalanceResponse> Ask(uint64_t run, bool stop = false) {
    v1::BalanceRequest request = request_;
    request.set_run(run);
    request.set_stop(stop);
    std::optional<absl::StatusOr<v1::BalanceResponse>> answer;
    cluster_->plane->Balance(request, [&](absl::StatusOr<v1::BalanceResponse> got) { answer = std::move(got); });
    EXPECT_TRUE(cluster_->world.RunUntil([&] { return answer.has_value(); }, absl::Seconds(1)));
    return *answer;
  }
  // Asks until the run is over, and looks all the while that no block has fewer copies than it wants.
  v1::BalanceResponse Drive(uint64_t run, absl::Duration limit = absl::Minutes(10)) {
    v1::BalanceResponse last;
    const SteadyTime end = cluster_->process()->clock().Now() + limit;
    while (cluster_->process()->clock().Now() < end) {
      const absl::StatusOr<v1::BalanceResponse> response = Ask(run);
      EXPECT_TRUE(response.ok()) << response.status();
      if (!response.ok()) return last;
      last = *response;
      if (last.outcome() != v1::BalanceResponse::RUNNING) return last;
      Watch(absl::Seconds(1));
    }
    ADD_FAILURE() << "not over after " << limit;
    return last;
  }
  void Watch(absl::Duration time) {
    for (absl::Duration passed; passed < time; passed += absl::Milliseconds(20)) {
      cluster_->world.RunFor(absl::Milliseconds(20));
      for (size_t i = 0; i < blocks_.size(); ++i) ASSERT_GE(cluster_->Copies(blocks_[i]), wanted_[i]) << "block " << i;
    }
  }
  void ExpectWantedCopies() {
    for (size_t i = 0; i < blocks_.size(); ++i) EXPECT_EQ(cluster_->Copies(blocks_[i]), wanted_[i]) << "block " << i;
    EXPECT_EQ(cluster_->plane->figures().under_replicated_blocks, 0u);
    EXPECT_EQ(cluster_->plane->figures().moves_in_flight, 0u);
  }
  double Percent(size_t node) { return 100.0 * 100.0 * static_cast<double>(cluster_->nodes[node]->replicas().size()) / kCapacity; }

  std::unique_ptr<ReplicaCluster> cluster_;
  v1::BalanceRequest request_;
  std::vector<BlockId> blocks_;
  std::vector<size_t> wanted_;
};

}  // namespace cairn::namenode::testing
