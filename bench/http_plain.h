// The plain copies that http_bench's rows of bytes stand beside. They block the thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace caisson::bench {

// Microseconds that `cat`, given a file of `text` `times` times, takes to print through a pipe.
Result<double> CatThroughPipe(const std::string& text, int times);

// Microseconds that `size` bytes take from one file in memory through a TCP connection on loopback
// into another, read and written 64 KiB at a time by a thread at each end.
Result<double> CopyThroughLoopback(uint64_t size);

}  // namespace caisson::bench
