#include "datanode/recovery/recovery_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "cairn/types.pb.h"
#include "common/error.h"
#include "common/status.h"

namespace cairn::datanode {
namespace {

// One attempt to plan: the answers sorted out, step by step.
class Planner {
 public:
  Planner(const RecoveryQuestion& question, const std::vector<ReplicaAnswer>& answers) : question_(question), answers_(answers) {
    for (size_t i = 0; i < answers.size(); ++i) {
      const ReplicaAnswer& answer = answers[i];
      if (!answer.status.ok()) {
        ++silent_;
        continue;
      }
      if (!answer.found) continue;
      if (answer.length > 0 || answer.corrupt) some_byte_ = true;
      if (!answer.corrupt) highest_ = std::max(highest_, answer.stamp);
    }
    for (size_t i = 0; i < answers.size(); ++i) {
      const ReplicaAnswer& answer = answers[i];
      const bool usable = answer.status.ok() && answer.found && !answer.corrupt && answer.stamp == highest_;
      if (usable && (answer.length > 0 || !some_byte_)) usable_.push_back(i);
    }
  }

  absl::StatusOr<RecoveryPlan> Plan() const {
    if (question_.new_length) return Truncation(*question_.new_length);
    if (!some_byte_) return Nothing();
    uint64_t length = 0;
    if (std::any_of(usable_.begin(), usable_.end(), [this](size_t i) { return answers_[i].sure; })) {
      ASSIGN_OR_RETURN(length, SureLength());
    } else {
      ASSIGN_OR_RETURN(length, UnsureLength());
    }
    if (length < question_.known_length) {
      return Refuse(fmt::format("{} bytes can be had, and clients were told that {} are safe", length, question_.known_length));
    }
    return At(length);
  }

 private:
  bool AllAnswered() const { return silent_ == 0 && question_.unreachable == 0; }

  absl::Status Refuse(const std::string& why) const {
    return MakeError(AllAnswered() ? ErrorKind::kReplicaNotFound : ErrorKind::kRetriable,
                     fmt::format("{}; {}{}", why, DescribeAnswers(answers_),
                                 question_.unreachable == 0 ? "" : fmt::format("; {} more cannot be asked", question_.unreachable)));
  }

  RecoveryPlan At(uint64_t length) const {
    RecoveryPlan plan;
    plan.length = length;
    for (const size_t i : usable_) {
      if (answers_[i].length >= length) plan.update.push_back(i);
    }
    return plan;
  }

  absl::StatusOr<RecoveryPlan> Nothing() const {
    if (!AllAnswered()) return Refuse("no replica with a byte was found, and not all have answered");
    if (question_.known_length > 0) return Refuse(fmt::format("nobody has any of the {} bytes that are safe", question_.known_length));
    RecoveryPlan plan;
    plan.drop = true;
    return plan;
  }

  absl::StatusOr<RecoveryPlan> Truncation(uint64_t new_length) const {
    RecoveryPlan plan = At(new_length);
    if (plan.update.empty()) return Refuse(fmt::format("no replica has the {} bytes that are to stay", new_length));
    return plan;
  }

  absl::StatusOr<uint64_t> SureLength() const {
    std::optional<uint64_t> finalized;
    std::optional<uint64_t> least;
    for (const size_t i : usable_) {
      const ReplicaAnswer& answer = answers_[i];
      if (!answer.sure) continue;
      least = std::min(least.value_or(answer.length), answer.length);
      if (answer.state != ReplicaState::kFinalized) continue;
      if (finalized && *finalized != answer.length) return Refuse("finalized replicas of one stamp differ in length");
      finalized = answer.length;
    }
    return finalized ? *finalized : *least;
  }

  absl::StatusOr<uint64_t> UnsureLength() const {
    uint64_t longest = 0;
    for (const size_t i : usable_) longest = std::max(longest, answers_[i].length);
    if (usable_.empty()) return Refuse("no replica is good");
    const bool only_long_dead = silent_ == 0 && question_.unreachable == question_.long_dead;
    if (AllAnswered() || (only_long_dead && longest >= question_.known_length)) return longest;
    return Refuse("no replica is sure to have all acknowledged bytes, and not all have answered");
  }

  const RecoveryQuestion& question_;
  const std::vector<ReplicaAnswer>& answers_;
  size_t silent_ = 0;
  bool some_byte_ = false;
  GenerationStamp highest_;
  std::vector<size_t> usable_;
};

}  // namespace

absl::StatusOr<RecoveryPlan> PlanRecovery(const RecoveryQuestion& question, const std::vector<ReplicaAnswer>& answers) {
  return Planner(question, answers).Plan();
}

std::string DescribeAnswers(const std::vector<ReplicaAnswer>& answers) {
  std::string text;
  size_t answered = 0;
  for (const ReplicaAnswer& answer : answers) {
    if (answer.status.ok()) ++answered;
    text += fmt::format("; storage {}: ", answer.storage_uuid);
    if (!answer.status.ok()) {
      text += std::string(answer.status.message());
    } else if (!answer.found) {
      text += "no replica";
    } else {
      text += fmt::format("{} stamp {} length {}, {}{}", v1::ReplicaState_Name(static_cast<int>(answer.state)), answer.stamp.value(),
                          answer.length, answer.sure ? "sure" : "not sure", answer.corrupt ? ", corrupt" : "");
    }
  }
  return fmt::format("{} of {} answered{}", answered, answers.size(), text);
}

}  // namespace cairn::datanode
