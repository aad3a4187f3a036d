#include "namenode/replicas/slow_nodes.h"

#include <algorithm>
#include <utility>

namespace cairn::namenode {
namespace {

// Samples are not kept for longer by those who report them.
constexpr absl::Duration kOldestSample = absl::Minutes(10);

double TimesTheLimit(const v1::SlowPeer& what) {
  return static_cast<double>(what.latency_us()) / static_cast<double>(std::max<uint64_t>(what.limit_us(), 1));
}

}  // namespace

void SlowNodes::Heard(const std::string& reporter, const google::protobuf::RepeatedPtrField<v1::SlowPeer>& peers, SteadyTime now) {
  if (peers.empty()) {
    said_.erase(reporter);
    return;
  }
  std::map<std::string, Claim> said;
  for (const v1::SlowPeer& peer : peers) {
    if (peer.datanode_uuid().empty() || peer.datanode_uuid() == reporter) continue;
    const absl::Duration age = std::min(absl::Milliseconds(peer.oldest_sample_ms()), kOldestSample);
    said[peer.datanode_uuid()] = {peer, now - age};
    if (said.size() == kMostOfEach) break;
  }
  said_[reporter] = std::move(said);
}

void SlowNodes::Restarted(const std::string& uuid, SteadyTime now) {
  Forget(uuid);
  started_[uuid] = now;
}

void SlowNodes::Forget(const std::string& uuid) {
  said_.erase(uuid);
  words_.erase(uuid);
  last_found_.erase(uuid);
  slow_.erase(uuid);
  started_.erase(uuid);
}

void SlowNodes::Judge(const std::set<std::string_view>& living, SteadyTime now) {
  std::erase_if(started_, [now](const auto& entry) { return now - entry.second > kOldestSample; });
  words_.clear();
  for (const auto& [reporter, said] : said_) {
    if (!living.contains(reporter)) continue;
    for (const auto& [peer, heard] : said) {
      const auto started = started_.find(peer);
      const bool of_another_process = started != started_.end() && heard.oldest_sample < started->second;
      if (living.contains(peer) && !of_another_process) words_[peer].push_back({reporter, heard.what});
    }
  }
  for (const auto& [peer, words] : words_)
    if (words.size() >= options_.reporters) last_found_[peer] = now;
  std::erase_if(last_found_, [&](const auto& entry) { return now - entry.second > kHold || !living.contains(entry.first); });

  struct Candidate {
    const std::string* uuid;
    size_t reporters;
    double times;
  };
  std::vector<Candidate> candidates;
  for (const auto& [peer, found] : last_found_) {
    Candidate candidate{&peer, 0, 0};
    if (const auto words = words_.find(peer); words != words_.end()) {
      candidate.reporters = words->second.size();
      for (const Word& word : words->second) candidate.times = std::max(candidate.times, TimesTheLimit(word.what));
    }
    candidates.push_back(candidate);
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    if (a.reporters != b.reporters) return a.reporters > b.reporters;
    return a.times != b.times ? a.times > b.times : *a.uuid < *b.uuid;
  });
  const size_t most = std::min(options_.most, std::max<size_t>(living.size() / kShare, 1));
  slow_.clear();
  for (const Candidate& candidate : candidates)
    if (slow_.size() < most) slow_.insert(*candidate.uuid);
}

std::vector<SlowNodes::Word> SlowNodes::WordsOn(const std::string& uuid) const {
  const auto found = words_.find(uuid);
  return found == words_.end() ? std::vector<Word>() : found->second;
}

}  // namespace cairn::namenode
