// TarReader and TarWriter: archives in the ustar and pax formats, piece by piece, without a file.
//
// The reader takes archives from anybody. It gives entries whose names are safe to put below a
// directory, and refuses the rest with kInvalidArgument, naming the entry; over a limit it is
// kTooLarge. Read are ustar, pax and the GNU extensions for long names and large sizes; sparse
// files, multi-volume archives and unknown types are refused. Owners, times and extended
// attributes are left out, set-id and sticky bits dropped. Pure values, no input or output.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>

#include "base/result.h"

namespace caisson::api {

enum class TarKind : uint8_t { kFile, kDirectory, kSymlink, kHardLink };

struct TarEntry {
  // Relative, without "." and "..", of at most 4096 bytes and 255 in a component. Empty: the
  // directory that the archive is of.
  std::string path;
  TarKind kind = TarKind::kFile;
  uint32_t permissions = 0644;  // 0777 at most
  uint64_t size = 0;            // of a file
  std::string target;  // of a symbolic link: any text; of a hard link: an earlier file's path
};

// Devices and FIFOs in an archive.
enum class TarSpecials { kRefuse, kSkip };

struct TarLimits {
  uint64_t entries = 100'000;
  uint64_t bytes = uint64_t{64} << 30;  // of all files together, hard links counted as copies
  uint64_t name_bytes = 16 << 20;       // of all names together: they are kept until the end
  TarSpecials specials = TarSpecials::kRefuse;
};

class TarReader {
 public:
  explicit TarReader(TarLimits limits) : limits_(limits) {}

  // More of the archive. What was fed is held until Next has taken it: feed when it asks.
  void Feed(std::string_view bytes);

  struct NeedsMore {};
  struct Bytes {
    std::string data;  // of the entry given before, in order
  };
  struct End {};
  using Item = std::variant<NeedsMore, TarEntry, Bytes, End>;
  // What comes next. The bytes of a file, as many as its size says, follow its entry. After an
  // error nothing else is to be asked.
  Result<Item> Next();
  // The archive's bytes have ended. kInvalidArgument when they have been cut off.
  Status Finish() const;

  uint64_t entries() const { return entries_; }
  uint64_t skipped() const { return skipped_; }  // devices and FIFOs

 private:
  enum class State { kHeader, kData, kExtension, kEnded };
  // What an extension header says of the entry after it.
  struct Extension {
    std::optional<std::string> path, target;
    std::optional<uint64_t> size;
  };
  struct Known {
    TarKind kind;
    uint64_t size;
  };

  Result<std::optional<Item>> TakeHeader();
  Result<Item> TakeData();
  Status TakeExtension();
  Result<std::optional<Item>> BeginEntry(std::string_view block, char type);
  Status BeginExtension(std::string_view block, char type);
  Result<TarEntry> ReadEntry(std::string_view block, char type);
  Status ReadPax(std::string_view records);
  Status ApplyPax(std::string_view key, std::string_view value);
  Status Admit(const TarEntry& entry);
  Status CheckParents(const TarEntry& entry) const;
  Status Count();

  std::string_view pending() const { return std::string_view(buffer_).substr(at_); }

  const TarLimits limits_;
  std::string buffer_;  // fed and not yet taken, from at_ on
  size_t at_ = 0;
  State state_ = State::kHeader;
  uint64_t left_ = 0;     // bytes of the data that is being read
  uint64_t after_ = 0;    // bytes that fill the data's last block
  uint64_t padding_ = 0;  // of those, what is to be passed over now
  char extension_type_ = 0;
  std::string extension_text_;
  Extension extension_;
  uint64_t entries_ = 0, headers_ = 0, skipped_ = 0, bytes_ = 0, name_bytes_ = 0;
  std::unordered_map<std::string, Known> known_;
};

// The header of an entry, to be followed by its bytes and TarPadding. Long names, and sizes of
// 8 GiB and more, get a pax header. `mtime` is in seconds.
struct TarFacts {
  uint32_t uid = 0, gid = 0;
  uint64_t mtime = 0;
};
std::string TarHeader(const TarEntry& entry, TarFacts facts);
// The zeros after `size` bytes of data.
std::string TarPadding(uint64_t size);
// The end of an archive.
std::string TarEnd();

// The path as TarEntry::path has it, from the name in an archive. kInvalidArgument when it is
// absolute, leads out, or is too long.
Result<std::string> CleanTarName(std::string_view name);

}  // namespace caisson::api
