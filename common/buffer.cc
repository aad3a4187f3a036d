#include "common/buffer.h"

#include <bit>
#include <cstdlib>
#include <map>
#include <new>
#include <vector>

#include "common/check.h"
#include "common/mutex.h"

namespace cairn {
namespace {

constexpr size_t kAlignment = 4096;

char* AllocateAligned(size_t bytes) {
  void* memory = std::aligned_alloc(kAlignment, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<char*>(memory);
}

size_t RoundToPages(size_t bytes) { return bytes == 0 ? kAlignment : (bytes + kAlignment - 1) / kAlignment * kAlignment; }

size_t RoundToClass(size_t bytes) {
  const size_t step = std::bit_floor(bytes) / 4;  // >= kAlignment, since bytes >= BufferPool::kSmallest.
  return (bytes + step - 1) / step * step;
}

}  // namespace

Buffer Buffer::Allocate(size_t capacity) {
  Buffer buffer;
  buffer.capacity_ = RoundToPages(capacity);
  buffer.data_ = std::shared_ptr<char[]>(AllocateAligned(buffer.capacity_), [](char* p) { std::free(p); });
  return buffer;
}

void Buffer::set_size(size_t size) {
  CAIRN_CHECK(size <= capacity_, "buffer overrun");
  size_ = size;
}

struct BufferPool::Idle {
  explicit Idle(size_t max) : max_bytes(max) {}
  ~Idle() {
    for (auto& [capacity, buffers] : by_capacity)
      for (char* p : buffers) std::free(p);
  }

  char* Take(size_t capacity) ABSL_LOCKS_EXCLUDED(mu) {
    MutexLock lock(mu);
    std::vector<char*>& buffers = by_capacity[capacity];
    if (buffers.empty()) return nullptr;
    char* p = buffers.back();  // The one used last: its pages are the likeliest to be in a cache.
    buffers.pop_back();
    bytes -= capacity;
    return p;
  }

  void Return(char* p, size_t capacity) ABSL_LOCKS_EXCLUDED(mu) {
    {
      MutexLock lock(mu);
      if (bytes + capacity <= max_bytes) {
        by_capacity[capacity].push_back(p);
        bytes += capacity;
        return;
      }
    }
    std::free(p);
  }

  const size_t max_bytes;
  mutable Mutex mu;
  size_t bytes ABSL_GUARDED_BY(mu) = 0;
  std::map<size_t, std::vector<char*>> by_capacity ABSL_GUARDED_BY(mu);
};

BufferPool::BufferPool(size_t max_idle_bytes) : idle_(std::make_shared<Idle>(max_idle_bytes)) {}

BufferPool& BufferPool::Shared() {
  static auto* const pool = new BufferPool(128 << 20);  // Never destroyed: buffers live until the last thread ends.
  return *pool;
}

Buffer BufferPool::Get(size_t capacity) {
  if (capacity < kSmallest || capacity > kLargest) return Buffer::Allocate(capacity);
  Buffer buffer;
  buffer.capacity_ = RoundToClass(capacity);
  char* memory = idle_->Take(buffer.capacity_);
  if (memory == nullptr) memory = AllocateAligned(buffer.capacity_);
  buffer.data_ = std::shared_ptr<char[]>(memory, [idle = idle_, bytes = buffer.capacity_](char* p) { idle->Return(p, bytes); });
  return buffer;
}

size_t BufferPool::idle_bytes() const {
  MutexLock lock(idle_->mu);
  return idle_->bytes;
}

}  // namespace cairn
