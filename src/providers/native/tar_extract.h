// Unpacking a hostile tar stream into an empty directory. Runs in the confined child of import_tar.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "providers/native/import_tar.h"

namespace caisson::native {

enum class TarOwners { kKeep, kIgnore };

// Fixed layout: it crosses a pipe from the child, and the parent trusts none of it.
struct TarReport {
  enum class Status : uint32_t { kNone, kDone, kInvalid, kNoSpace, kIo, kNotConfined };
  Status status = Status::kNone;
  uint32_t message_size = 0;
  uint64_t entries = 0;
  uint64_t bytes = 0;
  char message[480] = {};

  void Fail(Status why, std::string_view text);
};

// Unpacks the stream `input_fd` into the directory `root_fd`, which must be empty and untouched by
// anybody else.
TarReport ExtractTar(int input_fd, int root_fd, TarOwners owners, const ImportLimits& limits);

// An entry's name in normal form: relative, without empty and "." parts. Empty for the root itself.
// An Error says which rule it breaks.
Result<std::string> NormalEntryName(std::string_view name);

// The window that the first zstd frame or xz block in `head` asks for; 0 when it does not say.
uint64_t DeclaredWindow(std::span<const unsigned char> head);

}  // namespace caisson::native
