#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace cairn {

// Bytes on the heap, aligned to 4096 for direct I/O, not zeroed, moved but never copied; Share() makes further owners of the same
// bytes, for one that forwards and one that writes.
// Thread-safe as shared_ptr is: the bytes of a shared buffer are not written any more.
class Buffer {
 public:
  Buffer() = default;
  static Buffer Allocate(size_t capacity);

  char* data() { return data_.get(); }
  const char* data() const { return data_.get(); }
  size_t capacity() const { return capacity_; }
  size_t size() const { return size_; }
  void set_size(size_t size);  // At most capacity.
  bool empty() const { return size_ == 0; }
  std::span<char> span() { return {data(), size_}; }
  std::span<const char> span() const { return {data(), size_}; }
  std::span<char> free_space() { return {data() + size_, capacity_ - size_}; }
  Buffer Share() const { return *this; }

 private:
  friend class BufferPool;
  std::shared_ptr<char[]> data_;
  size_t capacity_ = 0;
  size_t size_ = 0;
};

// Buffers that come back when their last owner drops them, so that the pages under a stream are faulted in once and not for every packet.
//
// Capacities are rounded up to one of four steps per power of two; idle buffers are kept up to a bound of bytes, beyond which they are
// freed. Small and huge requests are plain allocations. Thread-safe; a buffer may outlive its pool.
class BufferPool {
 public:
  static constexpr size_t kSmallest = 16 << 10;
  static constexpr size_t kLargest = 16 << 20;

  explicit BufferPool(size_t max_idle_bytes);
  // The pool of this process, which keeps at most 128 MiB idle.
  static BufferPool& Shared();

  Buffer Get(size_t capacity);
  size_t idle_bytes() const;

 private:
  struct Idle;
  std::shared_ptr<Idle> idle_;
};

}  // namespace cairn
