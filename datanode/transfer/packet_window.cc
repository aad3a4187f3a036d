#include "datanode/transfer/packet_window.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/check.h"
#include "common/error.h"

namespace cairn::datanode {

PacketWindow::PacketWindow(Executor* executor, size_t max_bytes, const Share& share, bool mirrored)
    : max_bytes_(max_bytes), share_(share), mirrored_(mirrored), changed_(executor), room_(executor) {}

size_t PacketWindow::MaxBytes() const {
  const uint64_t streams = std::max<uint64_t>(share_.active_streams->load(std::memory_order_relaxed), 1);
  return std::min<size_t>(max_bytes_, static_cast<size_t>(share_.total_bytes / streams));
}

Awaitable<bool> PacketWindow::WaitForRoom() {
  // A packet larger than the bound passes alone.
  while (!closed_ && (packets_.size() >= kMaxPackets || (held_bytes_ > 0 && held_bytes_ >= MaxBytes()))) {
    room_.Reset();
    const bool set = co_await room_.Wait(SteadyTime::Infinite());
    static_cast<void>(set);
  }
  co_return !closed_;
}

uint64_t PacketWindow::Add(const transfer::Packet& packet, SteadyTime now) {
  InFlight entry;
  entry.header = packet.header();
  entry.end = static_cast<uint64_t>(packet.header().offset_in_block) + packet.header().data_length;
  entry.bytes = packet.frame().size();
  entry.forwarded = !mirrored_ || !downstream_failure_.ok();
  entry.received = now;
  held_bytes_ += entry.bytes;
  packets_.push_back(std::move(entry));
  return first_ + packets_.size() - 1;
}

PacketWindow::InFlight* PacketWindow::Find(uint64_t number) {
  if (number < first_ || number - first_ >= packets_.size()) return nullptr;  // Popped when its write failed or the stream ended.
  return &packets_[number - first_];
}

void PacketWindow::ReleaseIfDone(InFlight* packet) {
  if (packet->written && packet->forwarded) {
    held_bytes_ -= std::exchange(packet->bytes, 0);
    room_.Set();
  }
  changed_.Set();
}

void PacketWindow::Written(uint64_t number, absl::Status status) {
  InFlight* packet = Find(number);
  if (packet == nullptr) return;
  packet->written = true;
  packet->own = std::move(status);
  ReleaseIfDone(packet);
}

void PacketWindow::Forwarding(uint64_t number, SteadyTime now) {
  InFlight* packet = Find(number);
  if (packet == nullptr) return;
  packet->forwarding = now;
  packet->alone = number == acknowledged_;
}

void PacketWindow::Forwarded(uint64_t number) {
  InFlight* packet = Find(number);
  if (packet == nullptr) return;
  packet->forwarded = true;
  ReleaseIfDone(packet);
}

absl::StatusOr<const PacketWindow::InFlight*> PacketWindow::Acknowledged(const transfer::PipelineAck& ack, SteadyTime now) {
  if (downstream_ignored_) return nullptr;
  InFlight* packet = Find(acknowledged_);
  if (packet == nullptr)
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("acknowledgement of packet {}, but none is owed", ack.seqno));
  if (packet->header.seqno != ack.seqno)
    return MakeError(ErrorKind::kInvalidArgument,
                     fmt::format("acknowledgement of packet {} where {} is next", ack.seqno, packet->header.seqno));
  packet->downstream = ack.replies;
  packet->slow_downstream = ack.slow_nodes;
  packet->downstream_time = now - packet->forwarding;
  ++acknowledged_;
  changed_.Set();
  return packet;
}

void PacketWindow::DownstreamFailed(absl::Status why) {
  CAIRN_CHECK(!why.ok(), "a failure that is none");
  if (downstream_failure_.ok()) downstream_failure_ = std::move(why);
  for (InFlight& packet : packets_) {
    packet.forwarded = true;
    ReleaseIfDone(&packet);
  }
  changed_.Set();
}

void PacketWindow::ForgetDownstream() {
  downstream_ignored_ = true;
  changed_.Set();
}

PacketWindow::InFlight* PacketWindow::Ready() {
  if (packets_.empty()) return nullptr;
  InFlight* packet = &packets_.front();
  if (!packet->written) return nullptr;
  if (!packet->own.ok() || !mirrored_) return packet;
  if (downstream_ignored_) return packet->forwarded ? packet : nullptr;  // Or the bytes would wait for the mirror uncounted.
  if (packet->downstream.has_value() || !downstream_failure_.ok()) return packet;
  return nullptr;
}

void PacketWindow::Pop() {
  CAIRN_CHECK(!packets_.empty(), "no packet is in flight");
  held_bytes_ -= packets_.front().bytes;
  packets_.pop_front();
  ++first_;
  if (acknowledged_ < first_ && (downstream_ignored_ || !mirrored_ || !downstream_failure_.ok())) acknowledged_ = first_;
  room_.Set();
}

void PacketWindow::Close() {
  closed_ = true;
  room_.Set();
  changed_.Set();
}

std::optional<SteadyTime> PacketWindow::OldestOwed() const {
  if (!mirrored_ || acknowledged_ < first_ || acknowledged_ - first_ >= packets_.size()) return std::nullopt;
  return packets_[acknowledged_ - first_].received;
}

}  // namespace cairn::datanode
