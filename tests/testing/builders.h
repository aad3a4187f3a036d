#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/namespace.pb.h"
#include "common/status.h"
#include "namenode/namespace/apply.h"
#include "namenode/namespace/namespace_queries.h"
#include "tests/testing/memory_store.h"

namespace cairn::testing {

inline constexpr std::string_view kTestClientId = "0123456789abcdef";
inline constexpr std::string_view kTestPoolId = "pool-pool-pool-1";
inline constexpr int64_t kTestStartMs = 1'700'000'000'000;

v1::Block MakeBlock(uint64_t id, uint64_t stamp, uint64_t length_bytes);
v1::Mutation::Commit MakeCommit(const v1::Block& block, uint64_t length_bytes, std::vector<uint32_t> acknowledged);

// Mutations as a front door makes them, with the limits of a default configuration; the caller changes what its test is about.
v1::Mutation::Limits DefaultLimits();
v1::Mutation MutationOf(std::string_view client_name);
v1::Mutation CreateMutation(std::string_view path, std::string_view client_name, std::vector<uint32_t> targets = {});
v1::Mutation AddBlockMutation(const v1::MutationResult& file, std::string_view client_name, std::vector<uint32_t> targets);
v1::Mutation CompleteMutation(const v1::MutationResult& file, std::string_view client_name);
v1::Mutation MkdirsMutation(std::string_view path);
v1::Mutation RenameMutation(std::string_view source, std::string_view destination, bool overwrite = false);
v1::Mutation DeleteMutation(std::string_view path, bool recursive);
// Of `block`, which the front door found on these storages.
v1::Mutation AppendMutation(std::string_view path, std::string_view client, const v1::Block& block = {},
                            const std::vector<uint32_t>& holding = {1, 2, 3});
v1::Mutation TruncateMutation(std::string_view path, uint64_t length, const v1::Block& block = {},
                              const std::vector<uint32_t>& holding = {1, 2, 3});
v1::Mutation RecoverLeaseMutation(std::string_view path, bool by_force = true);
// What a primary says of a block under this recovery id: all of these storages have answered, and have it.
v1::Mutation RecoveredMutation(uint64_t block, uint64_t recovery_id, uint64_t length, const std::vector<uint32_t>& storages = {1, 2, 3});
// Gives it a retry id.
v1::Mutation WithRetry(v1::Mutation mutation, uint32_t slot, uint64_t sequence, uint64_t request_hash = 1);

// A namespace in memory: applies one mutation after another, each in a transaction of its own.
class TestNamespace {
 public:
  TestNamespace();

  // The result with a refusal as its Status; fails the test if a refused mutation has written anything.
  absl::StatusOr<v1::MutationResult> Apply(const v1::Mutation& mutation);
  // Apply that must succeed.
  v1::MutationResult Must(const v1::Mutation& mutation);

  const MemoryState& view() const { return state_; }
  MemoryState& state() { return state_; }
  // Of the last Apply.
  size_t rows_written() const { return rows_written_; }
  int64_t now_ms = kTestStartMs;  // Given to mutations without a time.

  // A test's own bug: called with what was answered and is about to be kept, of mutations that act. The state is as it was before.
  using Tamper = std::function<void(const v1::Mutation&, v1::MutationResult&, MemoryTransaction&, const MemoryState&)>;
  Tamper tamper;

  // A closed file of blocks of these lengths on storages 1, 2, 3.
  v1::MutationResult WriteFile(const std::string& path, std::vector<uint64_t> block_lengths);

 private:
  MemoryState state_;
  size_t rows_written_ = 0;
};

}  // namespace cairn::testing
