#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cairn/datanode_namenode.pb.h"
#include "common/ids.h"
#include "namenode/replicas/datanode_registry.h"
#include "namenode/store/replica_store.h"

namespace cairn::namenode {

// What a message's events meant for others than the rows.
struct ReportEffects {
  struct Answer {  // To an invalidation.
    StorageNumber storage;
    BlockId block;
    uint64_t command_id = 0;
  };
  struct Passed {  // By a range that agreed or was expanded.
    StorageNumber storage;
    uint64_t first = 0;
    uint64_t end = 0;
  };
  std::vector<BlockId> changed;  // Blocks whose rows differ from before.
  std::vector<Answer> answers;
  std::vector<Passed> passed;
  std::vector<v1::ReportDown::Expand> expand;
  std::vector<StorageNumber> state_changed;  // FAILED or back.
  std::vector<StorageNumber> removed;        // Rows to be dropped in steps.
  bool marked = false;                       // The mark of this epoch.
  bool walk_completed = false;
};

// Applies the events of one DataNode's report stream to the replica store, strictly by number: the one hand
// that writes that DataNode's rows. Rows and position go in one batch; a range is compared with the rows
// exactly as they are at its number.
//
// Owned by the store's executor.
class ReportApplier {
 public:
  ReportApplier(std::string datanode_uuid, Incarnation incarnation, Epoch epoch, ReplicaStore* store, DatanodeRegistry* registry);

  // Takes up the stored position: true if the stream can resume after applied(). False: everything of this
  // incarnation has to be walked, and events are accepted from max(1, first_kept) on.
  absl::StatusOr<bool> Begin(uint64_t first_kept, uint64_t last);
  // Storages that registered after Begin (or were never walked by this incarnation); answers those; they have
  // to be walked.
  absl::StatusOr<std::vector<StorageNumber>> AddStorages();

  // kInvalidArgument: malformed or out of order; nothing of the offending event or after it is applied, all
  // before it is. Other errors: the store failed, and what is applied is what applied() says.
  absl::Status Apply(const google::protobuf::RepeatedPtrField<v1::ReportEvent>& events, ReportEffects* effects);

  uint64_t applied() const { return position_.applied; }
  uint64_t FloorOf(StorageNumber storage) const;
  const std::vector<StreamPosition::Walk>& walks() const { return position_.walks; }

 private:
  absl::Status ApplyOne(const v1::ReportEvent& event, ReplicaStore::Batch* batch, ReportEffects* effects);
  absl::Status ApplyRange(StorageNumber storage, const std::string& storage_uuid, const v1::ReportRange& range, ReplicaStore::Batch* batch,
                          ReportEffects* effects);
  absl::Status Commit(ReplicaStore::Batch* batch);
  StreamPosition::Walk* WalkOf(StorageNumber storage);
  void Passed(StorageNumber storage, uint64_t first, uint64_t end, ReportEffects* effects);
  void Disagreed(StorageNumber storage, uint64_t first, uint64_t end);

  const std::string datanode_uuid_;
  const Epoch epoch_;
  ReplicaStore* const store_;
  DatanodeRegistry* const registry_;
  StreamPosition position_;
  std::map<StorageNumber, std::map<uint64_t, uint64_t>> passed_below_;  // First id -> end, of ranges below a hole.
  std::vector<StorageNumber> moved_;                                    // Floors that the registry is to hear of when the batch is written.
};

}  // namespace cairn::namenode
