#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/env/env.h"
#include "common/ids.h"
#include "namenode/disk_reserve.h"
#include "namenode/store/meta_store.h"

namespace cairn::namenode {

inline constexpr uint32_t kNamenodeLayout = 1;

// What a NameNode keeps on its disk:
//
//   <dir>/VERSION     JSON {"layout": 1, "cluster_id": "...", "pool_id": "32 hex digits"}: identity; written last by Format and
//                     never changed (but see below), so its presence says that the format was finished
//   <dir>/namespace/  the namespace's database (meta_store.h)
//   <dir>/replicas/   the replica plane's database, disposable
//   <dir>/reserve     space for a start on a full disk (disk_reserve.h)
//
// A checkpoint's VERSION has "checkpoint": its name. Open takes that for a restored backup: ids and stamps jump ahead of all that may have
// been given out since it was made, so does the epoch, and replicas that the namespace does not know are kept until an operator confirms
// (kMetaKeepUnknownReplicas). Then the mark is taken off.
//
// The epoch lives in family `meta` alone, as all counters of the namespace, so that it travels with a replicated namespace.
class NamenodeDirectory {
 public:
  struct FormatOptions {
    std::string cluster_id;  // Empty: a new UUID.
    std::string owner;       // Of the root directory. Empty: who formats, and so runs the NameNode.
    std::string group = "supergroup";
  };

  // Makes a new cluster in an empty or missing directory. kNotEmpty when anything is there (an existing cluster must not be lost to a
  // mistyped path), kBusy when another process has it.
  static absl::Status Format(const std::string& directory, const FormatOptions& options, Env* env);

  // Locks it for this process, opens the namespace and takes the next epoch, synced before this returns. `store_options.directory` is
  // ignored. kNotFound naming directory and command when it was never formatted (an unmounted disk must not become
  // an empty cluster); kUnsupported naming both layouts when it is newer than this program; kBusy; kCorruptMetadata. `reserve`, unless
  // null, is given up if the disk is full, or if there turns out to be too little room for what opening writes: then it is tried once more.
  static absl::StatusOr<std::unique_ptr<NamenodeDirectory>> Open(const std::string& directory, MetaStore::Options store_options, Env* env,
                                                                 DiskReserve* reserve = nullptr);

  MetaStore& store() { return *store_; }
  Epoch epoch() const { return epoch_; }
  const std::string& cluster_id() const { return cluster_id_; }
  const std::string& pool_id() const { return pool_id_; }  // 16 bytes.
  const std::string& path() const { return directory_; }
  std::string replicas_directory() const { return directory_ + "/replicas"; }
  // VERSION of a checkpoint in `directory`: of this cluster, and marked, so that a NameNode started on it knows that it goes back in time.
  absl::Status WriteCheckpointVersion(const std::string& directory, const std::string& checkpoint) const;

 private:
  NamenodeDirectory() = default;
  absl::Status OpenStore(const MetaStore::Options& options, bool restored);
  absl::Status CheckIdentity() const;
  absl::Status TakeNextEpoch(bool restored);

  Env* env_ = nullptr;
  std::string directory_;
  std::string cluster_id_;
  std::string pool_id_;
  Epoch epoch_;
  std::unique_ptr<DirectoryLock> lock_;  // Released last.
  std::unique_ptr<MetaStore> store_;
};

}  // namespace cairn::namenode
