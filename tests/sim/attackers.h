#pragma once

// Attackers of a simulated run, chosen from the seed. At most one daemon of the data path is down
// at a time: what replication 3 has to survive.
//
//   Attackers attackers(&cluster, cluster.world().NewRandom());
//   attackers.Start();
//   ... the workload ...
//   attackers.Stop();   // And all links are as they were; daemons come back by themselves.

#include <functional>
#include <memory>
#include <utility>

#include "tests/testing/sim_cluster.h"
#include "tests/testing/sim_network.h"

namespace cairn::testing {

struct AttackOptions {
  absl::Duration mean_interval = absl::Seconds(2);
  absl::Duration longest_down = absl::Seconds(8);
  std::function<void(size_t datanode)> on_power_cut = {};
};

class Attackers {
 public:
  Attackers(SimCluster* cluster, Random random, AttackOptions options = {})
      : cluster_(cluster), random_(random), options_(std::move(options)) {}
  ~Attackers() { *alive_ = false; }
  Attackers(const Attackers&) = delete;
  Attackers& operator=(const Attackers&) = delete;

  void Start() {
    // One of each kind for certain, soon; then by chance.
    At(absl::Milliseconds(20 + random_.Below(60)), &Attackers::Crash);
    At(absl::Milliseconds(10 + random_.Below(200)), &Attackers::Cut);
    At(absl::Milliseconds(5 + random_.Below(50)), &Attackers::Slow);
    Next();
  }
  void Stop() {
    stopped_ = true;
    SimNetwork& network = cluster_->world().network();
    network.Heal();
    network.SetDefaultLink({});
    for (size_t i = 0; i < cluster_->datanode_count(); ++i) network.SetLink(cluster_->client_machine(), cluster_->datanode_machine(i), {});
  }

  int crashes() const { return crashes_; }
  int cuts() const { return cuts_; }
  int delays() const { return delays_; }

 private:
  using Attack = void (Attackers::*)();

  void At(absl::Duration delay, Attack attack) {
    SimWorld& world = cluster_->world();
    world.executor().PostAt(world.Now() + delay, [this, attack, alive = alive_] {
      if (*alive && !stopped_) (this->*attack)();
    });
  }
  void Next() {
    const auto most = static_cast<uint64_t>(absl::ToInt64Milliseconds(options_.mean_interval)) * 2;
    At(absl::Milliseconds(random_.Below(most) + 1), &Attackers::Any);
  }
  void Any() {
    static constexpr Attack kAttacks[] = {&Attackers::Crash, &Attackers::Crash, &Attackers::Cut, &Attackers::Slow};
    (this->*kAttacks[random_.Below(std::size(kAttacks))])();
    Next();
  }
  void Crash() {
    if (!cluster_->AllUp()) return;
    const absl::Duration down =
        absl::Seconds(1) + absl::Milliseconds(random_.Below(static_cast<uint64_t>(absl::ToInt64Milliseconds(options_.longest_down))));
    const bool power = random_.OneIn(2);
    if (random_.OneIn(3)) {
      power ? cluster_->PowerCutNamenode(down) : cluster_->KillNamenode(down);
    } else {
      const size_t victim = random_.Below(cluster_->datanode_count());
      power ? cluster_->PowerCutDatanode(victim, down) : cluster_->KillDatanode(victim, down);
      if (power && options_.on_power_cut) options_.on_power_cut(victim);
    }
    ++crashes_;
  }
  SimMachine* AnyDatanode() { return cluster_->datanode_machine(random_.Below(cluster_->datanode_count())); }
  void Cut() {
    SimNetwork& network = cluster_->world().network();
    if (random_.OneIn(2))
      network.Cut(cluster_->client_machine(), AnyDatanode());
    else
      network.Cut(cluster_->namenode_machine(), random_.OneIn(2) ? AnyDatanode() : cluster_->client_machine());
    ++cuts_;
  }
  void Slow() {
    SimLinkOptions link;
    link.latency = absl::Milliseconds(1 + random_.Below(30));
    link.jitter = absl::Milliseconds(random_.Below(20));
    cluster_->world().network().SetLink(cluster_->client_machine(), AnyDatanode(), link);
    ++delays_;
  }

  SimCluster* const cluster_;
  Random random_;
  const AttackOptions options_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // For attacks that are due after the end.
  bool stopped_ = false;
  int crashes_ = 0;
  int cuts_ = 0;
  int delays_ = 0;
};

}  // namespace cairn::testing
