// Ring keeps the last bytes of one output stream, addressed by their absolute offset in it.
//
// The memory is one anonymous mapping, made when the first byte comes and touched page by page,
// so a silent command costs nothing and a quiet one a page. It is not inherited by forks. Not
// thread-safe; move-only.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace caisson::init {

class Ring {
 public:
  // At most two pieces of the ring, in stream order.
  struct Spans {
    iovec parts[2] = {};
    int count = 0;
    size_t size = 0;
  };

  // `capacity` is how many bytes are kept at most; at least 1.
  explicit Ring(size_t capacity) : capacity_(capacity) {}
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() { Free(); }

  size_t capacity() const { return capacity_; }
  uint64_t begin() const { return begin_; }  // offset of the oldest byte kept
  uint64_t end() const { return end_; }      // offset after the newest byte

  // Where the next `max` bytes (at most capacity) go; the oldest bytes are in the way of them.
  // An empty Spans when no memory can be had. Valid until the next call.
  Spans Prepare(size_t max);
  // The first `size` bytes of the prepared spans are now part of the stream.
  void Commit(size_t size);
  // The kept bytes from `offset` on, at most `max`; `offset` must lie in [begin, end].
  Spans View(uint64_t offset, size_t max) const;

  // Adds the bytes themselves. False, and nothing is added, when no memory can be had.
  bool Append(const char* bytes, size_t size);
  // Whether bytes have been kept since the last Free.
  bool mapped() const { return memory_ != nullptr; }

  // Forgets every byte and gives the memory back; offsets stay.
  void Free();

 private:
  Spans SpansAt(uint64_t offset, size_t size) const;

  size_t capacity_;
  char* memory_ = nullptr;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
};

}  // namespace caisson::init
