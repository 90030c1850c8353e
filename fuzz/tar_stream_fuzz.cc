// Arbitrary bytes as a tar archive: what is read has safe names, keeps to its limits, and is the
// same however the bytes are cut; what is refused has a reason and a remedy.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "api/tar_stream.h"

namespace {

using caisson::api::TarEntry;
using caisson::api::TarReader;

void Check(bool holds) {
  if (!holds) std::abort();
}

void CheckEntry(const TarEntry& entry) {
  Check(entry.path.size() <= 4096 && !entry.path.starts_with('/') && !entry.path.ends_with('/'));
  Check(!("/" + entry.path + "/").contains("/../") && !entry.path.contains('\0'));
  Check(entry.permissions <= 0777 && entry.size <= 4096);
}

// All that was read, as a text to compare.
std::string Read(std::string_view archive, size_t piece) {
  TarReader reader({.entries = 64, .bytes = 4096, .name_bytes = 8192});
  std::string all;
  uint64_t left = 0;
  for (;;) {
    auto item = reader.Next();
    if (!item) {
      Check(!item.error().message().empty() && !item.error().remedy().empty());
      return all + "!" + item.error().message();
    }
    if (auto* entry = std::get_if<TarEntry>(&*item)) {
      Check(left == 0);
      CheckEntry(*entry);
      left = entry->size;
      all += "\n" + entry->path + ">" + entry->target + ":";
    } else if (auto* bytes = std::get_if<TarReader::Bytes>(&*item)) {
      Check(!bytes->data.empty() && bytes->data.size() <= left);
      left -= bytes->data.size();
      all += bytes->data;
    } else {
      if (archive.empty()) break;
      reader.Feed(archive.substr(0, piece));
      archive.remove_prefix(std::min(piece, archive.size()));
    }
  }
  Check(reader.entries() <= 64);
  return all + (reader.Finish() ? "." : "?");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view archive(reinterpret_cast<const char*>(data), size);
  const std::string whole = Read(archive, std::max<size_t>(archive.size(), 1));
  if (!whole.contains("!the archive has bytes after")) Check(whole == Read(archive, 100));
  return 0;
}
