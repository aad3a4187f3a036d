#include "datanode/lanes/registration_lane.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/log.h"
#include "common/status.h"
#include "datanode/storage/version_file.h"

namespace cairn::datanode {

RegistrationLane::RegistrationLane(Options options, LaneIdentity identity, Executor* executor, api::DatanodeNamenode* namenode,
                                   BlockStore* store, NodeIdentity* node, EpochFence* fence, Random random, Callbacks callbacks,
                                   Watchdog* watchdog)
    : options_(std::move(options)),
      identity_(std::move(identity)),
      executor_(executor),
      namenode_(namenode),
      store_(store),
      node_(node),
      fence_(fence),
      mailbox_(std::make_shared<LaneMailbox>(executor)),
      watchdog_(watchdog),
      callbacks_(std::move(callbacks)),
      backoff_(options_.first_retry, options_.last_retry, std::move(random)) {}

void RegistrationLane::Start() {
  mailbox_->Post([this] { Register(); });
}

void RegistrationLane::RegisterAgain(std::string why) {
  mailbox_->Post([this, why = std::move(why)] {
    if (!under_way_ && retry_ == 0) log::Info("registering again: {}", why);
    Register();
  });
}

void RegistrationLane::MeetEpoch(Epoch epoch) {
  if (epoch <= fence_->current()) return;
  mailbox_->Post([this, epoch] {
    if (epoch <= marked_) return;
    const Watchdog::Step step(watchdog_, "registration", "epoch");
    log::Info("met epoch {}: the NameNode has restarted", epoch.value());
    if (const absl::Status adopted = AdoptEpoch(epoch); !adopted.ok()) {
      log::Error("epoch {} could not be adopted: {}", epoch.value(), std::string(adopted.message()));
      return;  // Nothing of that epoch is obeyed.
    }
    Register();  // A new NameNode start has new keys, and has forgotten our addresses.
  });
}

void RegistrationLane::HearIds(BlockId next_block, GenerationStamp next_stamp) {
  mailbox_->Post([this, next_block, next_stamp] {
    const Watchdog::Step step(watchdog_, "registration", "ids");
    if (const absl::Status remembered = node_->RememberIds(next_block, next_stamp); !remembered.ok()) {
      log::Error("highest ids could not be written: {}", std::string(remembered.message()));
    }
  });
}

void RegistrationLane::NeedKey(uint32_t key_id) {
  mailbox_->Post([this, key_id] {
    if (key_id <= newest_key_ || under_way_ || retry_ != 0) return;
    const SteadyTime earliest = last_attempt_ + options_.least_between;
    const SteadyTime now = executor_->clock().Now();
    if (now < earliest) return RetryAfter(earliest - now);
    Register();
  });
}

void RegistrationLane::RetryAfter(absl::Duration delay) {
  if (retry_ != 0) return;
  retry_ = executor_->PostAt(executor_->clock().Now() + delay, [this] {
    retry_ = 0;
    Register();
  });
}

void RegistrationLane::Register() {
  if (under_way_) {
    again_ = true;
    return;
  }
  if (retry_ != 0) return;  // Soon anyway; whoever asks meanwhile must not outrun the back-off.
  const Watchdog::Step step(watchdog_, "registration", "register");
  under_way_ = true;
  last_attempt_ = executor_->clock().Now();
  const VersionRecord node = node_->Get();
  v1::RegisterRequest request;
  request.set_datanode_uuid(identity_.datanode_uuid);
  request.set_incarnation(identity_.incarnation.value());
  *request.mutable_info() = options_.info;
  request.mutable_info()->set_uuid(identity_.datanode_uuid);
  named_.clear();
  for (v1::StorageStatistics& storage : store_->Statistics()) {
    named_.push_back(storage.storage_uuid());
    *request.add_storages() = std::move(storage);
  }
  request.set_cluster_id(node.cluster_id);
  request.set_pool_id(node.pool_id);
  request.set_highest_block_id(node.highest_block_id);
  request.set_highest_generation_stamp(node.highest_generation_stamp);
  request.set_highest_epoch(node.highest_epoch);
  request.set_software_version(options_.software_version);
  request.set_layout_version(kVolumeLayout);
  api::CallContext context;
  context.deadline = last_attempt_ + options_.answer_deadline;
  namenode_->Register(std::move(context), std::move(request), [this, mailbox = mailbox_](absl::StatusOr<v1::RegisterResponse> answer) {
    mailbox->Post([this, answer = std::move(answer)]() mutable { OnAnswer(std::move(answer)); });
  });
}

void RegistrationLane::OnAnswer(absl::StatusOr<v1::RegisterResponse> answer) {
  const Watchdog::Step step(watchdog_, "registration", "answer");
  under_way_ = false;
  absl::Status outcome = answer.status();
  if (outcome.ok()) outcome = Adopt(*answer);
  if (!outcome.ok()) return OnFailure(outcome);
  backoff_.Reset();
  failing_since_.reset();
  registered_.store(true, std::memory_order_release);
  registrations_.fetch_add(1, std::memory_order_relaxed);
  store_->NoteRegistered(named_);
  if (callbacks_.on_registered) callbacks_.on_registered(*answer);
  if (std::exchange(again_, false)) RetryAfter(options_.least_between);
}

void RegistrationLane::OnFailure(const absl::Status& why) {
  again_ = false;
  const SteadyTime now = executor_->clock().Now();
  if (!failing_since_) failing_since_ = now;
  const bool refused = KindOf(why) == ErrorKind::kInvalidArgument;
  if (refused && ReasonOf(why) == api::kOtherCluster && !registered() && callbacks_.on_other_cluster)
    return callbacks_.on_other_cluster(why);
  const absl::Duration delay = backoff_.Next();
  RetryAfter(delay);
  if (refused && callbacks_.on_refused) return callbacks_.on_refused(why);
  const std::string line =
      fmt::format("registration failed, trying again in {}: {}", absl::FormatDuration(delay), std::string(why.message()));
  if (now - *failing_since_ < options_.patience) {
    log::Info("{}", line);
  } else {
    log::Warning("{}", line);
  }
}

absl::Status RegistrationLane::Adopt(const v1::RegisterResponse& answer) {
  RETURN_IF_ERROR(node_->AdoptCluster(answer.cluster_id(), answer.pool_id()));
  const Epoch epoch(answer.epoch());
  if (const uint64_t highest = node_->Get().highest_epoch; epoch.value() < highest) {
    return MakeError(ErrorKind::kRetriable,
                     fmt::format("a NameNode of epoch {} answered, and epoch {} has been met: it is an old one", epoch.value(), highest));
  }
  RETURN_IF_ERROR(AdoptEpoch(epoch));
  for (const v1::BlockTokenKey& key : answer.keys()) newest_key_ = std::max(newest_key_, key.id());
  if (callbacks_.on_keys) callbacks_.on_keys({answer.keys().begin(), answer.keys().end()});
  return absl::OkStatus();
}

absl::Status RegistrationLane::AdoptEpoch(Epoch epoch) {
  if (epoch <= marked_) return absl::OkStatus();
  RETURN_IF_ERROR(node_->RememberEpoch(epoch));
  marked_ = epoch;
  fence_->Raise(epoch);  // Before the mark: no older command may be found good after it.
  store_->MarkEpoch(epoch);
  if (callbacks_.on_epoch) callbacks_.on_epoch();
  return absl::OkStatus();
}

}  // namespace cairn::datanode
