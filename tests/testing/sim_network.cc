#include "tests/testing/sim_network.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "common/check.h"
#include "tests/testing/sim_world.h"

namespace cairn::testing {

SimNetwork::SimNetwork(SimWorld* world)
    : world_(world), random_(world->NewRandom()), flows_(std::make_shared<std::map<uint64_t, std::weak_ptr<SimFlow>>>()) {}

SimNetwork::~SimNetwork() {
  BreakFlows([](const SimFlow&) { return true; });
  // What was sent to a side that had broken before still waits for its time, and may be what keeps its flow alive.
  std::vector<std::shared_ptr<SimFlow>> left;
  for (const auto& [id, weak] : *flows_) {
    if (std::shared_ptr<SimFlow> flow = weak.lock()) left.push_back(std::move(flow));
  }
  for (const std::shared_ptr<SimFlow>& flow : left) {
    for (SimFlow::Side& side : flow->sides_) {
      const std::deque<SimFlow::Message> dropped = std::exchange(side.inbound, {});
    }
  }
}

void SimNetwork::SetLink(SimMachine* a, SimMachine* b, const SimLinkOptions& options) {
  links_[{a->name(), b->name()}] = options;
  links_[{b->name(), a->name()}] = options;
}

const SimLinkOptions& SimNetwork::LinkOf(SimMachine* from, SimMachine* to) const {
  static const SimLinkOptions kLoopback{.latency = absl::ZeroDuration()};
  if (from == to) return kLoopback;
  auto found = links_.find({from->name(), to->name()});
  return found == links_.end() ? default_link_ : found->second;
}

bool SimNetwork::Blocked(SimMachine* from, SimMachine* to) const { return blocked_.contains({from->name(), to->name()}); }

void SimNetwork::Block(SimMachine* from, SimMachine* to) { blocked_[{from->name(), to->name()}] = true; }

void SimNetwork::Unblock(SimMachine* from, SimMachine* to) {
  blocked_.erase({from->name(), to->name()});
  Pump();
}

void SimNetwork::Partition(SimMachine* a, SimMachine* b) {
  Block(a, b);
  Block(b, a);
}

void SimNetwork::Isolate(SimMachine* machine) {
  for (const auto& other : world_->machines()) {
    if (other.get() != machine) Partition(machine, other.get());
  }
}

void SimNetwork::Heal() {
  blocked_.clear();
  Pump();
}

// A copy of the flows, because what is called may open and end others.
template <class Predicate>
void SimNetwork::BreakFlows(Predicate predicate) {
  std::vector<std::shared_ptr<SimFlow>> chosen;
  for (const auto& [id, weak] : *flows_) {
    std::shared_ptr<SimFlow> flow = weak.lock();
    if (flow && predicate(*flow)) chosen.push_back(std::move(flow));
  }
  for (const std::shared_ptr<SimFlow>& flow : chosen) flow->Cut();
}

void SimNetwork::Cut(SimMachine* a, SimMachine* b) {
  BreakFlows([a, b](const SimFlow& flow) {
    return (flow.machine(0) == a && flow.machine(1) == b) || (flow.machine(0) == b && flow.machine(1) == a);
  });
}

void SimNetwork::CutAll(SimMachine* machine) {
  BreakFlows([machine](const SimFlow& flow) { return flow.machine(0) == machine || flow.machine(1) == machine; });
}

// What waited behind a block arrives one latency later.
void SimNetwork::Pump() {
  std::vector<std::shared_ptr<SimFlow>> all;
  for (const auto& [id, weak] : *flows_) {
    if (std::shared_ptr<SimFlow> flow = weak.lock()) all.push_back(std::move(flow));
  }
  for (const std::shared_ptr<SimFlow>& flow : all) {
    for (int to = 0; to < 2; ++to) {
      SimFlow::Side& side = flow->sides_[to];
      if (side.inbound.empty()) continue;
      world_->executor().PostAt(Arrival(flow->machine(1 - to), side.machine, 0), [weak = std::weak_ptr<SimFlow>(flow), to] {
        if (std::shared_ptr<SimFlow> live = weak.lock()) live->Deliver(to);
      });
    }
  }
}

SteadyTime SimNetwork::Arrival(SimMachine* from, SimMachine* to, uint64_t bytes) {
  const SimLinkOptions& link = LinkOf(from, to);
  SteadyTime sent = world_->Now();
  if (link.bytes_per_second > 0) {
    SteadyTime& busy_until = busy_until_[{from->name(), to->name()}];
    sent = std::max(sent, busy_until) + absl::Nanoseconds(static_cast<double>(bytes) * 1e9 / static_cast<double>(link.bytes_per_second));
    busy_until = sent;
  }
  absl::Duration delay = link.latency;
  if (link.jitter > absl::ZeroDuration()) {
    delay += absl::Nanoseconds(random_.Below(static_cast<uint64_t>(absl::ToInt64Nanoseconds(link.jitter)) + 1));
  }
  return sent + delay;
}

std::shared_ptr<SimFlow> SimNetwork::OpenFlow(SimProcess* from, SimMachine* to) {
  std::shared_ptr<SimFlow> flow(new SimFlow(this, ++last_flow_, from, to));
  flows_->emplace(last_flow_, flow);
  flow->WatchDeath(0);
  return flow;
}

// ---- SimFlow

SimFlow::SimFlow(SimNetwork* network, uint64_t id, SimProcess* from, SimMachine* to)
    : network_(network), id_(id), registry_(network->flows_) {
  sides_[0].machine = &from->machine();
  sides_[0].process = from;
  sides_[1].machine = to;
}

SimFlow::~SimFlow() {
  registry_->erase(id_);
  for (Side& side : sides_) {
    if (side.on_death != 0) side.process->ForgetOnDeath(side.on_death);
  }
}

void SimFlow::WatchDeath(int side) {
  sides_[side].on_death = sides_[side].process->OnDeath([weak = weak_from_this(), side] {
    if (std::shared_ptr<SimFlow> flow = weak.lock()) flow->Abandon(side);
  });
}

void SimFlow::Attach(SimProcess* process) {
  CAIRN_CHECK(sides_[1].process == nullptr, "a flow is attached twice");
  sides_[1].process = process;
  WatchDeath(1);
}

void SimFlow::Send(int side, uint64_t bytes, Task deliver) {
  if (sides_[side].broken) return;
  ++network_->messages_;
  Side& to = sides_[1 - side];
  const SimLinkOptions& link = network_->LinkOf(sides_[side].machine, to.machine);
  if (link.cut_one_in > 0 && network_->random_.OneIn(link.cut_one_in)) {
    Cut();
    return;
  }
  const SteadyTime due = std::max(to.last_due, network_->Arrival(sides_[side].machine, to.machine, bytes));
  to.last_due = due;
  to.inbound.push_back(Message{due, std::move(deliver)});
  network_->world_->executor().PostAt(due, [weak = weak_from_this(), other = 1 - side] {
    if (std::shared_ptr<SimFlow> flow = weak.lock()) flow->Deliver(other);
  });
}

void SimFlow::Deliver(int to_side) {
  Side& to = sides_[to_side];
  while (!to.inbound.empty() && to.inbound.front().due <= network_->world_->Now()) {
    if (network_->Blocked(sides_[1 - to_side].machine, to.machine)) return;  // Unblocking delivers.
    Task deliver = std::move(to.inbound.front().deliver);
    to.inbound.pop_front();
    if (!to.broken) deliver();
  }
}

void SimFlow::OnBroken(int side, Task on_broken) {
  if (sides_[side].broken) {
    on_broken();
    return;
  }
  sides_[side].on_broken = std::move(on_broken);
}

void SimFlow::BreakSide(int side) {
  if (std::exchange(sides_[side].broken, true)) return;
  const std::shared_ptr<SimFlow> keep = shared_from_this();
  sides_[side].inbound.clear();
  if (Task on_broken = std::exchange(sides_[side].on_broken, nullptr)) on_broken();
}

void SimFlow::Abandon(int side) {
  if (sides_[side].broken) return;
  const std::shared_ptr<SimFlow> keep = shared_from_this();
  if (!sides_[1 - side].broken) {
    // The break travels behind what was sent; it keeps the flow alive until then.
    Send(side, 0, [keep, other = 1 - side] { keep->BreakSide(other); });
  }
  BreakSide(side);
}

void SimFlow::Cut() {
  if (sides_[0].broken && sides_[1].broken) return;
  ++network_->broken_flows_;
  const std::shared_ptr<SimFlow> keep = shared_from_this();
  BreakSide(0);
  BreakSide(1);
}

}  // namespace cairn::testing
