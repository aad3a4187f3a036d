#pragma once

#include <deque>
#include <string>
#include <vector>

#include "cairn/namespace.pb.h"
#include "common/env/random.h"
#include "tests/namenode/tree_model.h"

namespace cairn::testing {

// Random changes by several clients and by the NameNode itself, most of them sensible for the tree as the model has it, some not: wrong
// paths, stamps, blocks and holders, late repetitions, slots that are too old. The same seed and answers give the same changes.
class TreeWorkload {
 public:
  struct Options {
    size_t clients = 3;
    uint32_t slots = 4;     // Of each client.
    size_t long_names = 0;  // Bytes that some names are padded to, so that a batch spans sectors.
  };
  TreeWorkload(Options options, Random random);

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

  v1::Mutation Operation(const TreeModel& model);
  void Background(const std::vector<uint64_t>& works, const TreeModel& model, v1::Mutation* m);
  bool EndRecovery(const TreeModel& model, v1::Mutation* m);  // False if no block is under recovery.
  v1::Mutation::Limits Limits();
  std::string Name();
  std::string AnyPath(const TreeModel& model);  // There or not, sometimes in an odd spelling.
  std::string Existing(const TreeModel& model);
  std::string NewPath(const TreeModel& model);  // Below an existing directory.
  // A file that is being written, else any file, else nothing.
  const ModelNode* OpenFile(const TreeModel& model, std::string* path);
  std::vector<uint32_t> Targets();
  v1::Mutation::Commit CommitOf(const ModelNode& file);
  void WriterCall(const TreeModel& model, v1::Mutation* m);
  v1::Block BlockOf(const ModelNode& file);

  const Options options_;
  Random random_;
  std::vector<Client> clients_;
  std::vector<std::string> names_;
  std::deque<v1::Mutation> earlier_;
  int64_t now_ms_;
};

}  // namespace cairn::testing
