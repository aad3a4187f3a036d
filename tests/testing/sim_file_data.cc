#include "tests/testing/sim_file_data.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace cairn::testing {
namespace {

std::unique_ptr<char[]> NewPage() { return std::make_unique_for_overwrite<char[]>(SimFileData::kPageBytes); }

}  // namespace

uint64_t SimFileData::PagesMissing(uint64_t offset, uint64_t length) const {
  if (length == 0) return 0;
  const uint64_t first = offset / kPageBytes;
  const uint64_t last = (offset + length - 1) / kPageBytes;
  uint64_t present = 0;
  for (auto page = pages_.lower_bound(first); page != pages_.end() && page->first <= last; ++page) {
    if (page->second.now) ++present;
  }
  return last - first + 1 - present;
}

size_t SimFileData::Read(uint64_t offset, std::span<char> into) const {
  if (offset >= size_) return 0;
  const size_t count = static_cast<size_t>(std::min<uint64_t>(into.size(), size_ - offset));
  for (size_t done = 0; done < count;) {
    const uint64_t at = offset + done;
    const uint64_t begin = at % kPageBytes;
    const size_t part = static_cast<size_t>(std::min<uint64_t>(count - done, kPageBytes - begin));
    const auto page = pages_.find(at / kPageBytes);
    if (page != pages_.end() && page->second.now) {
      std::memcpy(into.data() + done, page->second.now.get() + begin, part);
    } else {
      std::memset(into.data() + done, 0, part);
    }
    done += part;
  }
  return count;
}

void SimFileData::Write(uint64_t offset, std::span<const char> data) {
  for (size_t done = 0; done < data.size();) {
    const uint64_t at = offset + done;
    const uint64_t begin = at % kPageBytes;
    const size_t part = static_cast<size_t>(std::min<uint64_t>(data.size() - done, kPageBytes - begin));
    WritePage(at / kPageBytes, begin, data.subspan(done, part));
    done += part;
  }
  if (!data.empty()) size_ = std::max(size_, offset + data.size());
}

void SimFileData::WritePage(uint64_t index, uint64_t begin, std::span<const char> data) {
  Page& page = pages_[index];
  const bool whole = data.size() == kPageBytes;
  if (!page.now) ++allocated_pages_;
  if (page.unsynced == 0) {
    unsynced_pages_.insert(index);
    page.durable = std::move(page.now);
    page.now = NewPage();
    if (!whole && page.durable) std::memcpy(page.now.get(), page.durable.get(), kPageBytes);
    if (!whole && !page.durable) std::memset(page.now.get(), 0, kPageBytes);
  } else if (!page.now) {
    page.now = NewPage();
    if (!whole) std::memset(page.now.get(), 0, kPageBytes);
  }
  if (data.data() != nullptr) {
    std::memcpy(page.now.get() + begin, data.data(), data.size());
  } else {
    std::memset(page.now.get() + begin, 0, data.size());
  }
  for (uint64_t sector = begin / kSectorBytes; sector * kSectorBytes < begin + data.size(); ++sector) {
    page.unsynced = static_cast<uint8_t>(page.unsynced | 1u << sector);
    page.doomed = static_cast<uint8_t>(page.doomed & ~(1u << sector));
  }
}

void SimFileData::DropPage(uint64_t index) {
  auto found = pages_.find(index);
  if (found == pages_.end() || !found->second.now) return;
  Page& page = found->second;
  --allocated_pages_;
  if (page.unsynced == 0) {
    unsynced_pages_.insert(index);
    page.durable = std::move(page.now);
  }
  page.now.reset();
  page.unsynced = 0xff;
  page.doomed = 0;
}

void SimFileData::ZeroRange(uint64_t offset, uint64_t end) {
  // Only pages that exist: a hole is zeros already, and a file may be sparse over terabytes.
  std::vector<uint64_t> touched;
  for (auto page = pages_.lower_bound(offset / kPageBytes); page != pages_.end() && page->first * kPageBytes < end; ++page) {
    if (page->second.now) touched.push_back(page->first);
  }
  for (uint64_t index : touched) {
    const uint64_t page_begin = index * kPageBytes;
    const uint64_t from = std::max(offset, page_begin);
    const uint64_t to = std::min(end, page_begin + kPageBytes);
    if (to - from == kPageBytes) {
      DropPage(index);
    } else {
      WritePage(index, from - page_begin, std::span<const char>(static_cast<const char*>(nullptr), to - from));
    }
  }
}

void SimFileData::Truncate(uint64_t size) {
  if (size < size_) ZeroRange(size, (size_ + kPageBytes - 1) / kPageBytes * kPageBytes);
  size_ = size;
}

void SimFileData::PunchHole(uint64_t offset, uint64_t length) {
  const uint64_t end = std::min(size_, offset + length);
  if (offset >= end) return;
  // The last page's bytes after the end of the file are zeros anyway: free it whole.
  ZeroRange(offset, end == size_ ? (size_ + kPageBytes - 1) / kPageBytes * kPageBytes : end);
}

void SimFileData::Sync() {
  durable_size_ = size_;
  for (auto next = unsynced_pages_.begin(); next != unsynced_pages_.end();) {
    auto found = pages_.find(*next);
    Page& page = found->second;
    if (page.doomed == 0) {
      page.durable.reset();
      page.unsynced = 0;
      next = unsynced_pages_.erase(next);
      if (!page.now) pages_.erase(found);
      continue;
    }
    for (uint64_t sector = 0; sector < kSectorsPerPage; ++sector) {
      const bool written = (page.unsynced >> sector & 1) != 0 && (page.doomed >> sector & 1) == 0;
      if (!written) continue;
      if (!page.durable) {
        page.durable = NewPage();
        std::memset(page.durable.get(), 0, kPageBytes);
      }
      const uint64_t begin = sector * kSectorBytes;
      if (page.now) {
        std::memcpy(page.durable.get() + begin, page.now.get() + begin, kSectorBytes);
      } else {
        std::memset(page.durable.get() + begin, 0, kSectorBytes);
      }
    }
    page.unsynced = page.doomed;
    ++next;
  }
}

void SimFileData::FailSync() {
  for (uint64_t index : unsynced_pages_) {
    Page& page = pages_.find(index)->second;
    page.doomed = page.unsynced;
  }
}

void SimFileData::Drop(uint64_t offset, uint64_t length) {
  const uint64_t first = (offset + kPageBytes - 1) / kPageBytes;
  for (auto next = unsynced_pages_.lower_bound(first); next != unsynced_pages_.end();) {
    auto found = pages_.find(*next);
    Page& page = found->second;
    if (length != 0 && (found->first + 1) * kPageBytes > offset + length) break;
    if (page.doomed != page.unsynced) {
      ++next;
      continue;
    }
    if (page.now) --allocated_pages_;
    if (page.durable) ++allocated_pages_;
    page.now = std::move(page.durable);
    page.unsynced = 0;
    page.doomed = 0;
    next = unsynced_pages_.erase(next);
    if (!page.now) pages_.erase(found);
  }
}

void SimFileData::PowerCut(Random& random) {
  enum Fate { kLoseAll, kKeepAll, kKeepAny, kKeepPrefix };
  const auto fate = static_cast<Fate>(random.Below(4));
  const uint64_t longest = std::max(size_, durable_size_);
  const uint64_t prefix_end = random.Below(longest + 1);
  for (uint64_t index : unsynced_pages_) {
    auto found = pages_.find(index);
    Page& page = found->second;
    Bytes after = std::move(page.durable);
    for (uint64_t sector = 0; sector < kSectorsPerPage; ++sector) {
      if ((page.unsynced >> sector & 1) == 0) continue;
      const uint64_t begin = sector * kSectorBytes;
      bool keep = false;
      switch (fate) {
        case kLoseAll: break;
        case kKeepAll: keep = true; break;
        case kKeepAny: keep = random.OneIn(2); break;
        case kKeepPrefix: keep = index * kPageBytes + begin < prefix_end; break;
      }
      if (!keep || (page.doomed >> sector & 1) != 0) continue;
      if (!after) {
        if (!page.now) continue;  // Zeros over zeros.
        after = NewPage();
        std::memset(after.get(), 0, kPageBytes);
      }
      if (page.now) {
        std::memcpy(after.get() + begin, page.now.get() + begin, kSectorBytes);
      } else {
        std::memset(after.get() + begin, 0, kSectorBytes);
      }
    }
    if (page.now) --allocated_pages_;
    if (after) ++allocated_pages_;
    page.now = std::move(after);
    page.unsynced = 0;
    page.doomed = 0;
    if (!page.now) pages_.erase(found);
  }
  unsynced_pages_.clear();

  uint64_t size = size_;
  if (fate == kLoseAll) size = durable_size_;
  if (fate == kKeepAny || fate == kKeepPrefix) {
    const uint64_t shortest = std::min(size_, durable_size_);
    const uint64_t choice = random.Below(3);
    if (choice == 0) size = durable_size_;
    if (choice == 1) size = shortest + random.Below(longest - shortest + 1);
  }
  size_ = longest;  // So that Truncate drops what lies beyond.
  Truncate(size);
  Sync();
}

void SimFileData::FlipByte(uint64_t offset) {
  auto found = pages_.find(offset / kPageBytes);
  if (found == pages_.end()) {
    found = pages_.try_emplace(offset / kPageBytes).first;
  }
  Page& page = found->second;
  for (Bytes* bytes : {&page.now, &page.durable}) {
    if (!*bytes && bytes == &page.durable) continue;
    if (!*bytes) {
      *bytes = NewPage();
      std::memset(bytes->get(), 0, kPageBytes);
      ++allocated_pages_;
    }
    char& byte = (*bytes)[offset % kPageBytes];
    byte = static_cast<char>(byte ^ 0x5a);
  }
}

}  // namespace cairn::testing
