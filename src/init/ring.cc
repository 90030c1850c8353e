#include "init/ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace caisson::init {

Ring::Spans Ring::SpansAt(uint64_t offset, size_t size) const {
  Spans spans;
  spans.size = size;
  const size_t at = offset % capacity_;
  const size_t first = std::min(size, capacity_ - at);
  if (first > 0) spans.parts[spans.count++] = {memory_ + at, first};
  if (size > first) spans.parts[spans.count++] = {memory_, size - first};
  return spans;
}

Ring::Spans Ring::Prepare(size_t max) {
  if (memory_ == nullptr) {
    void* memory =
        mmap(nullptr, capacity_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return {};
    memory_ = static_cast<char*>(memory);
    madvise(memory_, capacity_, MADV_DONTFORK);
    madvise(memory_, capacity_, MADV_NOHUGEPAGE);
  }
  return SpansAt(end_, std::min(max, capacity_));
}

void Ring::Commit(size_t size) {
  end_ += size;
  if (end_ - begin_ > capacity_) begin_ = end_ - capacity_;
}

Ring::Spans Ring::View(uint64_t offset, size_t max) const {
  if (memory_ == nullptr || offset < begin_ || offset >= end_) return {};
  return SpansAt(offset, static_cast<size_t>(std::min<uint64_t>(max, end_ - offset)));
}

bool Ring::Append(const char* bytes, size_t size) {
  const Spans spans = Prepare(size);
  if (spans.size < size) return false;
  size_t done = 0;
  for (int i = 0; i < spans.count; ++i) {
    std::memcpy(spans.parts[i].iov_base, bytes + done, spans.parts[i].iov_len);
    done += spans.parts[i].iov_len;
  }
  Commit(size);
  return true;
}

void Ring::Free() {
  if (memory_ != nullptr) munmap(memory_, capacity_);
  memory_ = nullptr;
  begin_ = end_;
}

}  // namespace caisson::init
