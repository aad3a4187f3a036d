#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/env/wait.h"
#include "common/transfer/ops.h"
#include "common/transfer/packet.h"

namespace cairn::datanode {

// The packets of one stream between receipt and acknowledgement, in order.
//
// It is the stream's bound on memory: a packet's bytes count from Add until they are both written and forwarded, and the receiver takes
// no further packet while they exceed the bound. What TCP then leaves in the sender's hands pushes back on it, hop by hop. Packets
// without their bytes stay until acknowledged; their number is bounded too.
//
// Belongs to one executor.
class PacketWindow {
 public:
  struct InFlight {
    transfer::PacketHeader header;
    uint64_t end = 0;  // Offset in the block behind its data.
    size_t bytes = 0;  // Still held.
    bool written = false;
    bool forwarded = false;
    absl::Status own;                                     // Of the write.
    std::optional<std::vector<hdfs::Status>> downstream;  // Replies of the nodes behind us.
    SteadyTime received;
    SteadyTime forwarding;           // Since when it is on its way to the node downstream.
    bool alone = false;              // Nothing else of this stream was then.
    uint64_t slow_downstream = 0;    // Of the nodes behind us, as in PipelineAck.
    absl::Duration downstream_time;  // From forwarding to the acknowledgement.
  };

  static constexpr size_t kMaxPackets = 8192;

  // What all streams of the node may hold together; each has an equal part of it, if that is less than its own bound.
  struct Share {
    size_t total_bytes;
    const std::atomic<uint64_t>* active_streams;  // Outlives the window.
  };

  // `mirrored`: there is a node downstream, so packets are also forwarded and acknowledged there.
  PacketWindow(Executor* executor, size_t max_bytes, const Share& share, bool mirrored);

  // True as soon as another packet may be taken; false once closed.
  Awaitable<bool> WaitForRoom();
  // The number by which the packet is spoken of afterwards, from 0.
  uint64_t Add(const transfer::Packet& packet, SteadyTime now);
  void Written(uint64_t number, absl::Status status);
  void Forwarding(uint64_t number, SteadyTime now);
  void Forwarded(uint64_t number);
  // The reply for the oldest packet that has none, which is returned: valid until the next Add or Pop; null if nobody waits for it.
  // kInvalidArgument if the acknowledgement is for another.
  absl::StatusOr<const InFlight*> Acknowledged(const transfer::PipelineAck& ack, SteadyTime now);
  // What the nodes downstream say of every packet that they have not acknowledged: nothing good. Packets added later too.
  void DownstreamFailed(absl::Status why);
  // From now on nothing waits for the nodes downstream (they went, and it does not matter), or it never did.
  void ForgetDownstream();

  // The oldest packet if all that its acknowledgement waits for is there, or if its write failed; else nullptr. Valid until the next
  // Add or Pop.
  InFlight* Ready();
  void Pop();

  // The stream is over, whatever is in flight.
  void Close();
  bool closed() const { return closed_; }
  bool empty() const { return packets_.empty(); }
  size_t held_bytes() const { return held_bytes_; }
  const absl::Status& downstream_failure() const { return downstream_failure_; }
  // When the oldest packet that the nodes downstream owe a reply for was received; nothing if they owe none.
  std::optional<SteadyTime> OldestOwed() const;
  // Set whenever something of the above changed; whoever waits resets it.
  Event* changed() { return &changed_; }

 private:
  InFlight* Find(uint64_t number);
  void ReleaseIfDone(InFlight* packet);

  size_t MaxBytes() const;

  const size_t max_bytes_;
  const Share share_;
  const bool mirrored_;
  std::deque<InFlight> packets_;
  uint64_t first_ = 0;         // Number of packets_.front().
  uint64_t acknowledged_ = 0;  // Packets below this number have their downstream reply.
  size_t held_bytes_ = 0;
  absl::Status downstream_failure_;
  bool downstream_ignored_ = false;
  bool closed_ = false;
  Event changed_;
  Event room_;
};

}  // namespace cairn::datanode
