#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "cairn/namespace.pb.h"
#include "common/env/random.h"
#include "tests/namenode/tree_model.h"

namespace cairn::testing {

// Random changes by several clients and by the NameNode itself, most of them sensible for the tree as the model has it, some not: wrong
// paths, stamps, blocks and holders, late repetitions, slots that are too old. All that a Mutation can be is among them. The same seed and
// answers give the same changes.
//
// Some take many steps: a call of deleteMany goes on from where its row stands, as the front door's does, other changes in between; now and
// then a file is written block by block until it is so long that a change of its replication has to be spread.
class TreeWorkload {
 public:
  struct Options {
    size_t clients = 3;
    uint32_t slots = 4;               // Of each client.
    size_t long_names = 0;            // Bytes that some names are padded to, so that a batch spans sectors.
    uint64_t long_file_one_in = 350;  // Changes; one of them begins a file that gets long.
  };
  TreeWorkload(Options options, Random random);

  // What there has to be before the rest: the storages that blocks are written to.
  static constexpr uint32_t kStorages = 6;
  static v1::Mutation RegisterStorages();
  // The next change. `works`: ids of the rows of family work, for steps of the NameNode's own work.
  v1::Mutation Next(const TreeModel& model, const std::vector<uint64_t>& works);
  // A call that was made before, exactly: a client that had no answer, or a message that was long under way.
  bool HasEarlier() const { return !earlier_.empty(); }
  v1::Mutation Earlier();
  // Called for what the client knows to be unanswered after a crash, so that it stays repeatable.
  int64_t now_ms() const { return now_ms_; }

 private:
  struct Slot {
    uint64_t sequence = 0;
    int64_t opened_ms = 0;
  };
  struct Client {
    std::string id;
    std::string name;
    std::string user;
    std::vector<Slot> slots;
  };

  // A call of deleteMany that is not through.
  struct DeleteCall {
    v1::Mutation base;
    std::deque<std::vector<std::string>> parts;  // That are to come.
  };

  v1::Mutation Operation(const TreeModel& model);
  void TreeCall(const TreeModel& model, const Client& client, v1::Mutation* m);
  void AttributeCall(const TreeModel& model, const Client& client, v1::Mutation* m);
  void XattrCall(const TreeModel& model, v1::Mutation* m);
  v1::Mutation NextPart();
  void SetRetryId(v1::Mutation* m);
  void Background(const std::vector<uint64_t>& works, const TreeModel& model, v1::Mutation* m);
  v1::Mutation::Limits Limits();
  std::string Name();
  std::string AnyPath(const TreeModel& model);  // There or not, sometimes in an odd spelling.
  std::string Existing(const TreeModel& model);
  std::string NewPath(const TreeModel& model);  // Below an existing directory.

  // Of files: tree_workload_files.cc.
  // A file that is being written, or a closed one; now and then one of the others; nullptr if there is none.
  const ModelNode* SomeFile(const TreeModel& model, bool open, std::string* path);
  std::vector<uint32_t> Targets();
  v1::Mutation::Commit CommitOf(const ModelNode& file);
  void WriterCall(const TreeModel& model, v1::Mutation* m);
  void LeaseCall(const TreeModel& model, v1::Mutation* m);
  v1::Block BlockOf(const ModelNode& file);
  v1::Mutation::LeaseSeen LeaseSeen(const ModelNode& file);
  // What a front door says of the storages that hold a block.
  template <class Op>
  void SetHolding(const ModelNode& file, const ModelBlock* block, Op* op);
  void Append(const TreeModel& model, v1::Mutation* m);
  void Truncate(const TreeModel& model, v1::Mutation* m);
  bool Recovery(const TreeModel& model, v1::Mutation* m);  // False if no block is or was under recovery.
  std::optional<v1::Mutation> ShortFile(const TreeModel& model);
  std::optional<v1::Mutation> LongFile(const TreeModel& model);

  static constexpr uint64_t kBlockSize = 1000;
  static constexpr uint64_t kLongFile = 66;  // Blocks; more than setReplication rewrites at once.

  const Options options_;
  Random random_;
  std::vector<Client> clients_;
  std::vector<std::string> names_;
  std::deque<v1::Mutation> earlier_;
  std::deque<DeleteCall> calls_;
  std::deque<std::vector<std::string>> parts_;            // Of the call that is being made up.
  std::deque<v1::Mutation::CommitBlockRecovery> rounds_;  // Ends of rounds that were told.
  int short_files_ = 0;                                   // That are still to be made.
  uint64_t short_file_ = 0;                               // Inode of the one that is to be closed next.
  std::string short_directory_;
  uint64_t long_file_ = 0;  // Inode of the one that is being written; or of its first new parent.
  size_t long_file_blocks_ = 0;
  int stalled_ = 0;  // Calls since it grew.
  int64_t now_ms_;
};

}  // namespace cairn::testing
