// Whatever decodes as an acknowledgement means the same after it was encoded and decoded again.

#include "common/check.h"
#include "common/transfer/ops.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using cairn::transfer::PipelineAck;
  const absl::StatusOr<PipelineAck> ack = cairn::transfer::DecodeAck(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!ack.ok()) return 0;
  CAIRN_CHECK(!ack->replies.empty() && ack->replies.size() <= cairn::transfer::kMaxPipelineNodes,
              "a number of replies that no pipeline has");
  const std::string wire = cairn::transfer::EncodeAck(*ack);
  CAIRN_CHECK(wire.size() >= cairn::transfer::kMinAnswerBytes, "an acknowledgement too short");
  const size_t length_bytes = wire.size() < 129 ? 1 : 2;
  const absl::StatusOr<PipelineAck> again = cairn::transfer::DecodeAck(std::string_view(wire).substr(length_bytes));
  CAIRN_CHECK(again.ok() && *again == *ack, "another acknowledgement after a round trip");
  return 0;
}

std::vector<std::string> FuzzSeeds() {
  cairn::transfer::PipelineAck good;
  good.seqno = 7;
  good.replies = {cairn::hdfs::SUCCESS, cairn::hdfs::SUCCESS, cairn::hdfs::ERROR_CHECKSUM};
  cairn::transfer::PipelineAck slow = good;
  slow.slow_nodes = 5;
  slow.downstream_time = absl::Milliseconds(3);
  cairn::transfer::PipelineAck single;
  single.seqno = -2;
  single.replies = {cairn::hdfs::OOB_RESTART};
  return {cairn::transfer::EncodeAck(good).substr(1), cairn::transfer::EncodeAck(slow).substr(1),
          cairn::transfer::EncodeAck(single).substr(1), std::string("\x08\x01\x10\x00", 4)};
}
