#pragma once

// One sequence of random changes to a namespace in memory, each answer and what is kept compared with the model of whole paths.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/namenode/tree_model.h"
#include "tests/namenode/tree_workload.h"
#include "tests/testing/builders.h"

namespace cairn::testing {

// How often each operation, by its number in the oneof of Mutation, came to what.
struct OperationTally {
  struct Counts {
    uint64_t acted = 0;
    uint64_t idle = 0;  // OK, and nothing was to be done; or answered from the retry table.
    uint64_t refused = 0;
  };
  std::map<int, Counts> operations;
  std::map<std::string, uint64_t> refusals;  // By "operation kKind REASON".

  void Add(const OperationTally& other);
  // A line for each operation, then one for each refusal if wanted.
  std::string ToString(bool with_refusals) const;
};

class ModelRun {
 public:
  // What a test puts in to be found.
  struct Bug {
    TestNamespace::Tamper tamper;
    std::function<void(const namenode::ReadView&, v1::Mutation*)> bend;  // What Apply is given instead.
  };
  explicit ModelRun(uint64_t seed) : ModelRun(seed, Bug()) {}
  ModelRun(uint64_t seed, Bug bug);

  // Steps, with everything compared now and then; at last all that is left to do in the background is done, and what is left are just the
  // rows of what is there. "" or what differed first.
  std::string Run(int steps);
  const OperationTally& tally() const { return tally_; }

 private:
  std::string Steps(int count);
  std::string CompareRows() const;
  std::string CompareQueries() const;  // What the readers' questions say of every path.
  std::string Drain();
  std::vector<uint64_t> Works() const;
  void Count(const v1::Mutation& mutation, const absl::StatusOr<v1::MutationResult>& result);

  const Bug bug_;
  Random random_;
  TestNamespace space_;
  TreeModel model_;
  TreeWorkload workload_;
  OperationTally tally_;
};

}  // namespace cairn::testing
