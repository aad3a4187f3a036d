#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>

#include "datanode/storage/volume.h"

namespace cairn::datanode {

// The volumes of a DataNode in the order in which they came, without those that have been retired. It only grows: a volume that was found
// stays valid as long as this lives, whoever retires it meanwhile, so looking takes no lock. Add is for one thread at a time, the rest for
// any.
class VolumeSet {
 public:
  static constexpr size_t kMost = 256;  // Of one process's life: each removal and return uses one up.

  // False if there were too many.
  [[nodiscard]] bool Add(std::unique_ptr<Volume> volume) {
    const size_t count = count_.load(std::memory_order_relaxed);
    if (count == kMost) return false;
    volumes_[count] = std::move(volume);
    count_.store(count + 1, std::memory_order_release);
    return true;
  }

  class Iterator {
   public:
    Iterator(const std::unique_ptr<Volume>* at, const std::unique_ptr<Volume>* end) : at_(at), end_(end) { SkipRetired(); }
    Volume* operator*() const { return at_->get(); }
    Iterator& operator++() {
      ++at_;
      SkipRetired();
      return *this;
    }
    friend bool operator==(const Iterator& at, std::default_sentinel_t) { return at.at_ == at.end_; }

   private:
    void SkipRetired() {
      while (at_ != end_ && (*at_)->retired()) ++at_;
    }
    const std::unique_ptr<Volume>* at_;
    const std::unique_ptr<Volume>* end_;
  };
  Iterator begin() const { return {volumes_.data(), volumes_.data() + count_.load(std::memory_order_acquire)}; }
  // Of the volumes that there were at begin().
  std::default_sentinel_t end() const { return {}; }
  // With those that were retired.
  size_t count() const { return count_.load(std::memory_order_acquire); }

 private:
  std::array<std::unique_ptr<Volume>, kMost> volumes_;
  std::atomic<size_t> count_{0};
};

}  // namespace cairn::datanode
