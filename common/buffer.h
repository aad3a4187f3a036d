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
  std::shared_ptr<char[]> data_;
  size_t capacity_ = 0;
  size_t size_ = 0;
};

}  // namespace cairn
