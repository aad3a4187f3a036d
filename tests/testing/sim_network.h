#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "common/env/network.h"
#include "common/env/random.h"

namespace cairn::testing {

class SimMachine;
class SimProcess;
class SimWorld;
class SimListener;
class SimFlow;

struct SimLinkOptions {
  absl::Duration latency = absl::Microseconds(100);  // One way, constant.
  absl::Duration jitter = absl::ZeroDuration();      // Up to this is added, from the seed. Order within a connection stays.
  uint64_t bytes_per_second = 0;                     // 0: unlimited.
  uint64_t cut_one_in = 0;                           // One message in so many cuts its connection; 0: never.
};

// The links between machines, and what attackers do to them. A machine reaches itself without delay. One thread.
//
// Delay, never loss inside a connection: what is sent over a blocked link waits, in order, until it is unblocked, as TCP sends again.
// Loss is a cut: connections break at both ends and what was under way is gone.
class SimNetwork {
 public:
  explicit SimNetwork(SimWorld* world);
  ~SimNetwork();

  void SetDefaultLink(const SimLinkOptions& options) { default_link_ = options; }
  void SetLink(SimMachine* a, SimMachine* b, const SimLinkOptions& options);  // Both ways.

  void Block(SimMachine* from, SimMachine* to);  // One way.
  void Unblock(SimMachine* from, SimMachine* to);
  void Partition(SimMachine* a, SimMachine* b);  // Both ways.
  void Isolate(SimMachine* machine);             // From all others there are, both ways.
  void Heal();                                   // Unblocks every link.
  // Breaks every connection and call between the two (or of one machine); new ones can be made at once.
  void Cut(SimMachine* a, SimMachine* b);
  void CutAll(SimMachine* machine);

  // Bytes that may be on their way or unread at the other end of one direction of a connection.
  void SetWindow(uint64_t bytes) { window_bytes_ = bytes; }
  uint64_t window_bytes() const { return window_bytes_; }

  uint64_t messages() const { return messages_; }
  uint64_t broken_flows() const { return broken_flows_; }

  // For the transports: a new pair of directions between a process and what will answer on `to`.
  std::shared_ptr<SimFlow> OpenFlow(SimProcess* from, SimMachine* to);
  std::unique_ptr<Network> NewView(SimProcess* process);

 private:
  friend class SimFlow;
  friend class SimListener;
  friend class SimNetworkView;
  using Direction = std::pair<std::string, std::string>;  // Names, so that order repeats.
  const SimLinkOptions& LinkOf(SimMachine* from, SimMachine* to) const;
  bool Blocked(SimMachine* from, SimMachine* to) const;
  void Pump();  // After links were unblocked.
  SteadyTime Arrival(SimMachine* from, SimMachine* to, uint64_t bytes);
  template <class Predicate>
  void BreakFlows(Predicate predicate);

  SimWorld* const world_;
  Random random_;
  SimLinkOptions default_link_;
  std::map<Direction, SimLinkOptions> links_;
  std::map<Direction, bool> blocked_;
  std::map<Direction, SteadyTime> busy_until_;  // Of links with a bandwidth.
  uint64_t window_bytes_ = 256 << 10;
  uint64_t messages_ = 0;
  uint64_t broken_flows_ = 0;
  // Flows unregister when they end, which may be after the network has.
  std::shared_ptr<std::map<uint64_t, std::weak_ptr<SimFlow>>> flows_;
  uint64_t last_flow_ = 0;
  std::map<std::pair<std::string, uint16_t>, SimListener*> listeners_;  // Machine and port.
  uint16_t next_port_ = 40000;
};

// Two ordered directions of messages between two processes, with the fate of one TCP connection: it delays with the link, waits while that
// is blocked, and breaks when it is cut or a process dies. Side 0 opened it. Everything runs in the world's thread; deliveries in tasks of
// their own.
class SimFlow : public std::enable_shared_from_this<SimFlow> {
 public:
  ~SimFlow();

  // The process at side 1, once one has answered.
  void Attach(SimProcess* process);
  // `deliver` runs at the other end, unless the flow breaks before. `bytes` is for the bandwidth.
  void Send(int side, uint64_t bytes, Task deliver);
  // Called once when the flow breaks, as seen from that side; at once if it is broken already. Replaces the one before.
  void OnBroken(int side, Task on_broken);
  // This side is gone: nothing more reaches it; the other side sees the break after what was sent before.
  void Abandon(int side);
  // Both sides see a break now; what is under way is lost.
  void Cut();
  bool broken(int side) const { return sides_[side].broken; }
  SimProcess* process(int side) const { return sides_[side].process; }
  SimMachine* machine(int side) const { return sides_[side].machine; }

 private:
  friend class SimNetwork;
  struct Message {
    SteadyTime due;
    Task deliver;
  };
  struct Side {
    SimMachine* machine = nullptr;
    SimProcess* process = nullptr;
    uint64_t on_death = 0;
    std::deque<Message> inbound;
    SteadyTime last_due;
    Task on_broken;
    bool broken = false;
  };
  SimFlow(SimNetwork* network, uint64_t id, SimProcess* from, SimMachine* to);
  void WatchDeath(int side);
  void Deliver(int to_side);
  void BreakSide(int side);

  SimNetwork* const network_;
  const uint64_t id_;
  std::shared_ptr<std::map<uint64_t, std::weak_ptr<SimFlow>>> registry_;
  Side sides_[2];
};

}  // namespace cairn::testing
