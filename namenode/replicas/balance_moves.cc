#include "namenode/replicas/balance_moves.h"

#include <algorithm>
#include <utility>

namespace cairn::namenode {

void BalanceMoves::Started(BalanceMove move) {
  ++load_[move.source];
  ++load_[move.target];
  by_command_[move.command_id] = move.block;
  const BlockId block = move.block;
  moves_[block] = std::move(move);
}

const BalanceMove* BalanceMoves::Find(BlockId block) const {
  const auto found = moves_.find(block);
  return found == moves_.end() ? nullptr : &found->second;
}

BalanceMove BalanceMoves::Take(BlockId block) {
  const auto found = moves_.find(block);
  BalanceMove move = std::move(found->second);
  moves_.erase(found);
  by_command_.erase(move.command_id);
  for (const std::string* node : {&move.source, &move.target}) {
    const auto load = load_.find(*node);
    if (load != load_.end() && --load->second == 0) load_.erase(load);
  }
  return move;
}

bool BalanceMoves::Outcome(uint64_t command_id, bool ok, SteadyTime report_by, std::vector<BalanceMove>* failed) {
  const auto found = by_command_.find(command_id);
  if (found == by_command_.end()) return false;
  BalanceMove& move = moves_.at(found->second);
  if (ok) {
    if (!move.landed) move.deadline = std::min(move.deadline, report_by);
  } else if (!move.landed) {
    failed->push_back(Abandoned(move.block));
  }
  return true;
}

void BalanceMoves::Landed(BlockId block, SteadyTime now) {
  BalanceMove& move = moves_.at(block);
  if (move.landed) return;
  move.landed = true;
  move.deadline = now + drop_within_;
}

BalanceMove BalanceMoves::Finished(BlockId block) {
  BalanceMove move = Take(block);
  ++moved_blocks_;
  moved_bytes_ += move.length_bytes;
  return move;
}

BalanceMove BalanceMoves::Abandoned(BlockId block) {
  ++failed_;
  return Take(block);
}

template <class IsOver>
std::vector<BalanceMove> BalanceMoves::AbandonAll(IsOver is_over) {
  std::vector<BlockId> over;
  for (const auto& [block, move] : moves_)
    if (is_over(move)) over.push_back(block);
  std::vector<BalanceMove> abandoned;
  for (const BlockId block : over) abandoned.push_back(Abandoned(block));
  return abandoned;
}

std::vector<BalanceMove> BalanceMoves::Expire(SteadyTime now) {
  return AbandonAll([now](const BalanceMove& move) { return !move.landed && move.deadline <= now; });
}

std::vector<BlockId> BalanceMoves::LandedLongAgo(SteadyTime now) const {
  std::vector<BlockId> blocks;
  for (const auto& [block, move] : moves_)
    if (move.landed && move.deadline <= now) blocks.push_back(block);
  return blocks;
}

void BalanceMoves::Extend(BlockId block, SteadyTime now) {
  const auto found = moves_.find(block);
  if (found != moves_.end()) found->second.deadline = now + drop_within_;
}

std::vector<BalanceMove> BalanceMoves::SourceLost(const std::string& datanode_uuid) {
  return AbandonAll([&](const BalanceMove& move) { return !move.landed && move.source == datanode_uuid; });
}

std::vector<BalanceMove> BalanceMoves::NodeLost(const std::string& datanode_uuid) {
  return AbandonAll(
      [&](const BalanceMove& move) { return !move.landed && (move.source == datanode_uuid || move.target == datanode_uuid); });
}

size_t BalanceMoves::LoadOf(const std::string& datanode_uuid) const {
  const auto found = load_.find(datanode_uuid);
  return found == load_.end() ? 0 : found->second;
}

uint64_t BalanceMoves::BytesOnTheWayTo(StorageNumber storage) const {
  uint64_t sum = 0;
  for (const auto& [block, move] : moves_)
    if (!move.landed && move.target_storage == storage) sum += move.length_bytes;
  return sum;
}

size_t BalanceMoves::InFlightOf(uint64_t run) const {
  return static_cast<size_t>(std::count_if(moves_.begin(), moves_.end(), [run](const auto& entry) { return entry.second.run == run; }));
}

}  // namespace cairn::namenode
