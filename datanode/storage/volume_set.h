#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "datanode/storage/volume.h"

namespace cairn::datanode {

// The volumes of a DataNode, without those that have been retired, whose places later ones take. A volume that was found stays valid as
// long as this lives, whoever retires it meanwhile, so looking takes no lock; the price is that retired ones are kept, two threads and
// some memory each, and that their number has a bound. Add and HasRoom are for one thread at a time, the rest for any.
class VolumeSet {
 public:
  static constexpr size_t kMost = 256;       // At a time.
  static constexpr size_t kMostEver = 1024;  // Of one process's life: each removal and return uses one up.

  bool HasRoom() const { return owned_.size() < kMostEver && FreePlace() < kMost; }
  // False if there were too many.
  [[nodiscard]] bool Add(std::unique_ptr<Volume> volume) {
    if (!HasRoom()) return false;
    const size_t place = FreePlace();
    volumes_[place].store(volume.get(), std::memory_order_release);
    owned_.push_back(std::move(volume));
    if (place == count_.load(std::memory_order_relaxed)) count_.store(place + 1, std::memory_order_release);
    return true;
  }

  class Iterator {
   public:
    using Place = const std::atomic<Volume*>*;
    Iterator(Place at, Place end) : at_(at), end_(end) { SkipRetired(); }
    Volume* operator*() const { return volume_; }
    Iterator& operator++() {
      ++at_;
      SkipRetired();
      return *this;
    }
    friend bool operator==(const Iterator& at, std::default_sentinel_t) { return at.at_ == at.end_; }

   private:
    void SkipRetired() {
      for (; at_ != end_; ++at_) {
        volume_ = at_->load(std::memory_order_acquire);
        if (!volume_->retired()) return;
      }
    }
    Place at_;
    Place end_;
    Volume* volume_ = nullptr;  // At `at_`, as it was when this came there.
  };
  Iterator begin() const { return {volumes_.data(), volumes_.data() + count_.load(std::memory_order_acquire)}; }
  // Of the places that there were at begin().
  std::default_sentinel_t end() const { return {}; }
  // How many there ever were, with those that were retired. For the thread that adds.
  size_t ever() const { return owned_.size(); }
  // The last one that was made of this directory, retired or not, or null. For the thread that adds.
  const Volume* LastOf(const std::string& directory) const {
    const auto last = std::find_if(owned_.rbegin(), owned_.rend(), [&](const auto& volume) { return volume->directory() == directory; });
    return last == owned_.rend() ? nullptr : last->get();
  }

 private:
  size_t FreePlace() const {
    const size_t count = count_.load(std::memory_order_relaxed);
    size_t place = 0;
    while (place < count && !volumes_[place].load(std::memory_order_relaxed)->retired()) ++place;
    return place;
  }

  std::array<std::atomic<Volume*>, kMost> volumes_{};
  std::atomic<size_t> count_{0};
  std::vector<std::unique_ptr<Volume>> owned_;
};

}  // namespace cairn::datanode
