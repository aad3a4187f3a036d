#pragma once

#include <memory>
#include <utility>

#include "namenode/namespace_writer.h"
#include "namenode/safe_mode.h"
#include "namenode/store/meta_store.h"

namespace cairn::namenode {

// The namespace as the parts around it use it: snapshots to read, a queue for changes. Thread-safe.
class NamespaceAccess {
 public:
  virtual ~NamespaceAccess() = default;
  // As MetaStore::Snapshot: drop it within 10 s.
  virtual std::shared_ptr<const ReadView> Snapshot() const = 0;
  // As MetaStore::MemorySnapshot.
  virtual std::shared_ptr<const ReadView> MemorySnapshot() const { return Snapshot(); }
  // As NamespaceWriter::Submit.
  virtual void Submit(v1::Mutation mutation, NamespaceWriter::Done done) = 0;
  // As NamespaceWriter::stats: how busy the writer is, for background work that gives way.
  virtual NamespaceWriter::Stats WriterStats() const { return {}; }
};

// The real one. All pointers outlive this; with a safe mode, what that does not let pass is not queued.
class StoredNamespace : public NamespaceAccess {
 public:
  StoredNamespace(MetaStore* store, NamespaceWriter* writer, const SafeMode* safe_mode = nullptr)
      : store_(store), writer_(writer), safe_mode_(safe_mode) {}
  std::shared_ptr<const ReadView> Snapshot() const override { return store_->Snapshot(); }
  std::shared_ptr<const ReadView> MemorySnapshot() const override { return store_->MemorySnapshot(); }
  void Submit(v1::Mutation mutation, NamespaceWriter::Done done) override {
    if (safe_mode_ != nullptr) {
      if (absl::Status refused = safe_mode_->Check(mutation); !refused.ok()) return done(std::move(refused));
    }
    writer_->Submit(std::move(mutation), std::move(done));
  }
  NamespaceWriter::Stats WriterStats() const override { return writer_->stats(); }

 private:
  MetaStore* store_;
  NamespaceWriter* writer_;
  const SafeMode* safe_mode_;
};

}  // namespace cairn::namenode
