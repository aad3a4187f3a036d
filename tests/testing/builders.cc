#include "tests/testing/builders.h"

#include <gtest/gtest.h>

#include "common/check.h"
#include "common/error.h"

namespace cairn::testing {

v1::Block MakeBlock(uint64_t id, uint64_t stamp, uint64_t length_bytes) {
  v1::Block block;
  block.set_id(id);
  block.set_generation_stamp(stamp);
  block.set_length_bytes(length_bytes);
  return block;
}

v1::Mutation::Commit MakeCommit(const v1::Block& block, uint64_t length_bytes, std::vector<uint32_t> acknowledged) {
  v1::Mutation::Commit commit;
  *commit.mutable_block() = MakeBlock(block.id(), block.generation_stamp(), length_bytes);
  for (const uint32_t storage : acknowledged) commit.add_acknowledged(storage);
  return commit;
}

v1::Mutation::Limits DefaultLimits() {
  v1::Mutation::Limits limits;
  limits.set_max_component_bytes(255);
  limits.set_max_path_bytes(8000);
  limits.set_max_depth(1000);
  limits.set_max_directory_entries(16 << 20);
  limits.set_min_replication(1);
  limits.set_max_replication(512);
  limits.set_min_block_size_bytes(1);
  limits.set_max_block_size_bytes(1 << 30);
  limits.set_max_blocks_per_file(10'000);
  return limits;
}

v1::Mutation MutationOf(std::string_view client_name) {
  v1::Mutation mutation;
  mutation.set_user("ada");
  mutation.set_client_id(std::string(kTestClientId));
  mutation.set_client_name(std::string(client_name));
  *mutation.mutable_limits() = DefaultLimits();
  return mutation;
}

v1::Mutation CreateMutation(std::string_view path, std::string_view client_name, std::vector<uint32_t> targets) {
  v1::Mutation mutation = MutationOf(client_name);
  v1::Mutation::Create& create = *mutation.mutable_create();
  create.set_path(std::string(path));
  create.set_create_parent(true);
  create.set_replication(3);
  create.set_block_size_bytes(1 << 20);
  create.set_mode(0644);
  create.set_parent_mode(0755);
  create.set_with_first_block(!targets.empty());
  for (const uint32_t target : targets) create.add_targets(target);
  return mutation;
}

v1::Mutation AddBlockMutation(const v1::MutationResult& file, std::string_view client_name, std::vector<uint32_t> targets) {
  v1::Mutation mutation = MutationOf(client_name);
  v1::Mutation::AddBlock& add = *mutation.mutable_add_block();
  add.set_path(file.path());
  add.set_inode_id(file.inode().id());
  for (const uint32_t target : targets) add.add_targets(target);
  return mutation;
}

v1::Mutation CompleteMutation(const v1::MutationResult& file, std::string_view client_name) {
  v1::Mutation mutation = MutationOf(client_name);
  mutation.mutable_complete()->set_path(file.path());
  mutation.mutable_complete()->set_inode_id(file.inode().id());
  return mutation;
}

v1::Mutation MkdirsMutation(std::string_view path) {
  v1::Mutation mutation = MutationOf("");
  mutation.mutable_mkdirs()->set_path(std::string(path));
  mutation.mutable_mkdirs()->set_create_parent(true);
  mutation.mutable_mkdirs()->set_mode(0755);
  mutation.mutable_mkdirs()->set_parent_mode(0711);
  return mutation;
}

v1::Mutation RenameMutation(std::string_view source, std::string_view destination, bool overwrite) {
  v1::Mutation mutation = MutationOf("");
  mutation.mutable_rename()->set_source(std::string(source));
  mutation.mutable_rename()->set_destination(std::string(destination));
  mutation.mutable_rename()->set_overwrite(overwrite);
  return mutation;
}

namespace {

template <class Operation>
void FillHeld(std::string_view path, const v1::Block& block, const std::vector<uint32_t>& holding, Operation* op) {
  op->set_path(std::string(path));
  op->set_block_id(block.id());
  op->set_generation_stamp(block.generation_stamp());
  for (const uint32_t storage : holding) op->add_holding(storage);
}

}  // namespace

v1::Mutation AppendMutation(std::string_view path, std::string_view client, const v1::Block& block, const std::vector<uint32_t>& holding) {
  v1::Mutation mutation = MutationOf(client);
  FillHeld(path, block, holding, mutation.mutable_append());
  return mutation;
}

v1::Mutation TruncateMutation(std::string_view path, uint64_t length, const v1::Block& block, const std::vector<uint32_t>& holding) {
  v1::Mutation mutation = MutationOf("cutter");
  FillHeld(path, block, holding, mutation.mutable_truncate());
  mutation.mutable_truncate()->set_new_length_bytes(length);
  return mutation;
}

v1::Mutation RecoverLeaseMutation(std::string_view path, bool by_force) {
  v1::Mutation mutation = MutationOf("taker");
  mutation.mutable_recover_lease()->set_path(std::string(path));
  mutation.mutable_recover_lease()->set_by_force(by_force);
  return mutation;
}

v1::Mutation RecoveredMutation(uint64_t block, uint64_t recovery_id, uint64_t length, const std::vector<uint32_t>& storages) {
  v1::Mutation mutation;
  v1::Mutation::CommitBlockRecovery& op = *mutation.mutable_commit_block_recovery();
  op.set_recovery_id(recovery_id);
  *op.mutable_block() = MakeBlock(block, recovery_id, length);
  for (const uint32_t storage : storages) {
    op.add_storages(storage);
    op.add_answered(storage);
  }
  return mutation;
}

v1::Mutation DeleteMutation(std::string_view path, bool recursive) {
  v1::Mutation mutation = MutationOf("");
  mutation.mutable_delete_()->set_path(std::string(path));
  mutation.mutable_delete_()->set_recursive(recursive);
  return mutation;
}

v1::Mutation WithRetry(v1::Mutation mutation, uint32_t slot, uint64_t sequence, uint64_t request_hash) {
  mutation.set_slot(slot);
  mutation.set_sequence(sequence);
  mutation.set_request_hash(request_hash);
  return mutation;
}

TestNamespace::TestNamespace() {
  MemoryTransaction txn(&state_);
  namenode::WriteEmptyNamespace("cluster", kTestPoolId, "root", "staff", kTestStartMs, txn);
  txn.Commit();
}

absl::StatusOr<v1::MutationResult> TestNamespace::Apply(const v1::Mutation& given) {
  v1::Mutation mutation = given;
  if (mutation.time_ms() == 0) mutation.set_time_ms(now_ms);
  MemoryTransaction txn(&state_);
  absl::StatusOr<v1::MutationResult> result = namenode::Apply(mutation, txn);
  if (tamper && result.ok() && !result->has_error() && txn.writes() > 0) tamper(mutation, *result, txn, state_);
  rows_written_ = txn.rows_written();
  RETURN_IF_ERROR(result.status());
  if (result->has_error()) {
    EXPECT_EQ(txn.writes(), 0u) << "a refused mutation wrote: " << result->error().message();
    return FromDetail(result->error());
  }
  txn.Commit();
  return result;
}

v1::MutationResult TestNamespace::Must(const v1::Mutation& mutation) {
  absl::StatusOr<v1::MutationResult> result = Apply(mutation);
  CAIRN_CHECK(result.ok(), result.status().ToString() + " of " + mutation.ShortDebugString());
  return *std::move(result);
}

v1::MutationResult TestNamespace::WriteFile(const std::string& path, std::vector<uint64_t> block_lengths) {
  const v1::MutationResult file = Must(CreateMutation(path, "writer"));
  v1::Mutation complete = CompleteMutation(file, "writer");
  v1::Mutation add = AddBlockMutation(file, "writer", {1, 2, 3});
  for (const uint64_t length : block_lengths) {
    const v1::Mutation::Commit commit = MakeCommit(Must(add).block(), length, {1, 2, 3});
    *add.mutable_add_block()->mutable_previous() = commit;
    *complete.mutable_complete()->mutable_last() = commit;
  }
  return Must(complete);
}

}  // namespace cairn::testing
