#include "common/buffer.h"

#include <cstdlib>
#include <new>

#include "common/check.h"

namespace cairn {

Buffer Buffer::Allocate(size_t capacity) {
  constexpr size_t kAlignment = 4096;
  const size_t rounded = (capacity + kAlignment - 1) / kAlignment * kAlignment;
  Buffer buffer;
  void* memory = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
  if (memory == nullptr) throw std::bad_alloc();
  buffer.data_ = std::shared_ptr<char[]>(static_cast<char*>(memory), [](char* p) { std::free(p); });
  buffer.capacity_ = rounded == 0 ? kAlignment : rounded;
  return buffer;
}

void Buffer::set_size(size_t size) {
  CAIRN_CHECK(size <= capacity_, "buffer overrun");
  size_ = size;
}

}  // namespace cairn
