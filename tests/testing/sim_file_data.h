#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "common/env/random.h"

namespace cairn::testing {

// The bytes of one simulated file, as its machine's processes see them and as the disk would have them after a power cut. Pages
// of 4096 bytes; what differs is known for each sector of 512 bytes. Writing and syncing cost about one copy of the bytes.
// Not thread-safe: SimDisk's lock stands before it.
class SimFileData {
 public:
  static constexpr uint64_t kPageBytes = 4096;
  static constexpr uint64_t kSectorBytes = 512;

  uint64_t size() const { return size_; }
  uint64_t allocated_bytes() const { return allocated_pages_ * kPageBytes; }
  // Pages that a write of this range would have to allocate.
  uint64_t PagesMissing(uint64_t offset, uint64_t length) const;

  size_t Read(uint64_t offset, std::span<char> into) const;
  void Write(uint64_t offset, std::span<const char> data);
  void Truncate(uint64_t size);
  void PunchHole(uint64_t offset, uint64_t length);

  void Sync();
  // A sync that failed: what was unsynced is never written, whatever later syncs say, until it is written anew. As Linux does.
  void FailSync();
  // Lets go of the clean pages of a range (length 0: to the end), as a hint that Linux would take. What a failed sync gave up was shown
  // until now, though the disk never got it: pages with nothing else unsynced then read as the disk has them.
  void Drop(uint64_t offset, uint64_t length);
  // Keeps what was synced and any subset of the rest.
  void PowerCut(Random& random);
  // Changes a byte, here and on the disk.
  void FlipByte(uint64_t offset);

 private:
  static constexpr uint64_t kSectorsPerPage = kPageBytes / kSectorBytes;
  using Bytes = std::unique_ptr<char[]>;  // Of one page; null reads as zeros.
  struct Page {
    Bytes now;
    Bytes durable;         // Of use only while some sector is unsynced: else as `now`.
    uint8_t unsynced = 0;  // One bit a sector.
    uint8_t doomed = 0;    // Of the unsynced: those a failed sync has given up.
  };

  void WritePage(uint64_t index, uint64_t begin, std::span<const char> data);  // Null data() writes zeros.
  void ZeroRange(uint64_t offset, uint64_t end);
  void DropPage(uint64_t index);

  uint64_t size_ = 0;
  uint64_t durable_size_ = 0;
  uint64_t allocated_pages_ = 0;
  absl::btree_map<uint64_t, Page> pages_;
  absl::btree_set<uint64_t> unsynced_pages_;
};

}  // namespace cairn::testing
