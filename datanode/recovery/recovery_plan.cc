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
    for (const ReplicaAnswer& answer : answers) {
      if (!answer.status.ok()) {
        ++silent_;
      } else if (answer.found) {
        some_byte_ = some_byte_ || answer.length > 0 || answer.corrupt;
        some_corrupt_ = some_corrupt_ || answer.corrupt;
      }
    }
    for (size_t i = 0; i < answers.size(); ++i) {
      const ReplicaAnswer& answer = answers[i];
      const bool usable = answer.status.ok() && answer.found && !answer.corrupt && answer.stamp >= question.oldest_stamp;
      if (!usable || (answer.length == 0 && some_byte_)) continue;
      usable_.push_back(i);
      highest_ = std::max(highest_, answer.stamp);
      if (answer.sure) highest_sure_ = std::max(highest_sure_.value_or(answer.stamp), answer.stamp);
    }
    // Without a word on what is older, a lower stamp may be of a node that its pipeline has left behind.
    if (question.oldest_stamp == GenerationStamp()) {
      std::erase_if(usable_, [&](size_t i) { return answers[i].stamp < highest_; });
      if (highest_sure_ && *highest_sure_ < highest_) highest_sure_.reset();
    }
  }

  absl::StatusOr<RecoveryPlan> Plan() const {
    if (question_.new_length) return Truncation(*question_.new_length);
    if (!some_byte_) return Nothing();
    if (usable_.empty()) return Refuse("no replica is good");
    if (highest_sure_) return SurePlan(*highest_sure_);
    return UnsurePlan();
  }

 private:
  bool AllAnswered() const { return silent_ == 0 && question_.unreachable == 0; }

  absl::Status Refuse(const std::string& why) const {
    return MakeError(AllAnswered() ? ErrorKind::kReplicaNotFound : ErrorKind::kRetriable,
                     fmt::format("{}; {}{}", why, DescribeAnswers(answers_),
                                 question_.unreachable == 0 ? "" : fmt::format("; {} more cannot be asked", question_.unreachable)));
  }
  absl::Status TooShort(uint64_t length) const {
    return Refuse(fmt::format("{} bytes can be had, and clients were told that {} are safe, {} of them on disk", length,
                              std::max(question_.known_length, question_.kept_length), question_.kept_length));
  }

  // All of these stamps or above that reach.
  RecoveryPlan At(uint64_t length, GenerationStamp from) const {
    RecoveryPlan plan;
    plan.length = length;
    for (const size_t i : usable_) {
      if (answers_[i].length >= length && answers_[i].stamp >= from) plan.update.push_back(i);
    }
    return plan;
  }

  absl::StatusOr<RecoveryPlan> Nothing() const {
    if (!AllAnswered()) return Refuse("no replica with a byte was found, and not all have answered");
    if (question_.kept_length > 0) return TooShort(0);
    RecoveryPlan plan;
    plan.drop = true;
    return plan;
  }

  absl::StatusOr<RecoveryPlan> Truncation(uint64_t new_length) const {
    RecoveryPlan plan = At(new_length, question_.oldest_stamp);
    if (plan.update.empty()) return Refuse(fmt::format("no replica has the {} bytes that are to stay", new_length));
    return plan;
  }

  absl::StatusOr<RecoveryPlan> SurePlan(GenerationStamp stamp) const {
    std::optional<uint64_t> finalized;
    std::optional<uint64_t> least;
    for (const size_t i : usable_) {
      const ReplicaAnswer& answer = answers_[i];
      if (!answer.sure || answer.stamp != stamp) continue;
      least = std::min(least.value_or(answer.length), answer.length);
      if (answer.state != ReplicaState::kFinalized) continue;
      if (finalized && *finalized != answer.length) return Refuse("finalized replicas of one stamp differ in length");
      finalized = answer.length;
    }
    const uint64_t length = finalized ? *finalized : *least;
    if (length < std::max(question_.known_length, question_.kept_length)) return TooShort(length);
    return At(length, stamp);
  }

  absl::StatusOr<RecoveryPlan> UnsurePlan() const {
    // A pipeline that never came to stand may have the highest stamp, and lost what the one before it still has.
    uint64_t longest = 0;
    GenerationStamp from = highest_;
    for (const size_t i : usable_) longest = std::max(longest, answers_[i].length);
    for (const size_t i : usable_)
      if (answers_[i].length == longest) from = std::min(from, answers_[i].stamp);
    const bool reaches = longest >= std::max(question_.known_length, question_.kept_length);
    const bool only_long_dead = silent_ == 0 && question_.unreachable == question_.long_dead;
    if (!AllAnswered() && !only_long_dead) return Refuse("no replica is sure to have all acknowledged bytes, and not all have answered");
    // What a corrupt replica holds may be what is missing.
    const bool nobody_has_more = AllAnswered() && !some_corrupt_ && longest >= question_.kept_length;
    if (!reaches && !nobody_has_more) return TooShort(longest);
    return At(longest, from);
  }

  const RecoveryQuestion& question_;
  const std::vector<ReplicaAnswer>& answers_;
  size_t silent_ = 0;
  bool some_byte_ = false;
  bool some_corrupt_ = false;
  GenerationStamp highest_;
  std::optional<GenerationStamp> highest_sure_;
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
