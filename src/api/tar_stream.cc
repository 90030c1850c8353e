#include "api/tar_stream.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace caisson::api {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kMaxName = 4096;
constexpr size_t kMaxComponent = 255;
constexpr uint64_t kMaxExtension = 64 * 1024;
constexpr uint64_t kMaxSize = INT64_MAX;

// Fields of a header block (POSIX.1-2017 pax, "ustar Interchange Format").
struct Field {
  size_t at, size;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kSize{124, 12}, kChecksum{148, 8}, kTarget{157, 100},
    kMagic{257, 8}, kPrefix{345, 155};
constexpr size_t kType = 156;

Error Bad(const std::string& what, std::string remedy = "send a tar archive as pax, GNU or ustar") {
  return Error(ErrorCode::kInvalidArgument, "the archive " + what).WithRemedy(std::move(remedy));
}

Error BadEntry(std::string_view name, const std::string& what, std::string remedy) {
  return Error(ErrorCode::kInvalidArgument, "the archive's entry " + Quoted(name) + " " + what)
      .WithRemedy(std::move(remedy));
}

std::string_view Take(std::string_view block, Field field) {
  return block.substr(field.at, field.size);
}
// Up to the first NUL.
std::string Text(std::string_view block, Field field) {
  const std::string_view all = Take(block, field);
  return std::string(all.substr(0, all.find('\0')));
}

// Octal digits between blanks or NULs, or GNU's base 256 with the first bit set.
std::optional<uint64_t> Number(std::string_view field) {
  uint64_t value = 0;
  if ((static_cast<unsigned char>(field[0]) & 0x80) != 0) {
    if (static_cast<unsigned char>(field[0]) != 0x80) return std::nullopt;  // negative or huge
    for (const char c : field.substr(1)) {
      if (value > (kMaxSize >> 8)) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(c);
    }
    return value;
  }
  while (field.starts_with(' ')) field.remove_prefix(1);
  const size_t end = std::min(field.find_first_of(std::string_view(" \0", 2)), field.size());
  const std::string_view digits = field.substr(0, end);
  if (field.find_first_not_of(std::string_view(" \0", 2), end) != std::string_view::npos)
    return std::nullopt;
  if (digits.empty()) return 0;
  const auto [rest, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
  if (error != std::errc() || rest != digits.data() + digits.size() || value > kMaxSize)
    return std::nullopt;
  return value;
}

bool ChecksumFits(std::string_view block) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const bool own = i >= kChecksum.at && i < kChecksum.at + kChecksum.size;
    sum += own ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return Number(Take(block, kChecksum)) == sum;
}

bool IsZero(std::string_view block) {
  return block.find_first_not_of('\0') == std::string_view::npos;
}

uint64_t PaddingOf(uint64_t size) { return (kBlock - size % kBlock) % kBlock; }

Status CheckTarget(const std::string& path, const std::string& target) {
  if (target.empty() || target.size() > kMaxName || target.contains('\0'))
    return BadEntry(path, "is a link without a proper target",
                    "give links a target of 1 to 4096 bytes");
  return {};
}

}  // namespace

Result<std::string> CleanTarName(std::string_view name) {
  const auto refuse = [&](const std::string& what) {
    return BadEntry(name, what, "make the archive with names relative to its directory");
  };
  if (name.empty()) return refuse("has no name");
  if (name.size() > kMaxName) return refuse("has a name of more than 4096 bytes");
  if (name.contains('\0')) return refuse("has a NUL byte in its name");
  if (name.starts_with('/')) return refuse("has an absolute name");
  std::string clean;
  while (!name.empty()) {
    const size_t slash = std::min(name.find('/'), name.size());
    const std::string_view part = name.substr(0, slash);
    name.remove_prefix(std::min(slash + 1, name.size()));
    if (part.empty() || part == ".") continue;
    if (part == "..") return refuse("leads out of its directory");
    if (part.size() > kMaxComponent) return refuse("has a name with a part of more than 255 bytes");
    if (!clean.empty()) clean += '/';
    clean += part;
  }
  return clean;
}

void TarReader::Feed(std::string_view bytes) {
  buffer_.erase(0, at_);
  at_ = 0;
  buffer_ += bytes;
}

Result<TarReader::Item> TarReader::Next() {
  for (;;) {
    if (padding_ > 0) {
      const uint64_t now = std::min<uint64_t>(padding_, pending().size());
      at_ += now;
      padding_ -= now;
      if (padding_ > 0) return Item(NeedsMore());
    }
    switch (state_) {
      case State::kEnded:
        if (!IsZero(pending())) return Bad("has bytes after its end", "send one archive alone");
        at_ = buffer_.size();
        return Item(End());
      case State::kHeader: {
        CAISSON_ASSIGN(auto item, TakeHeader());
        if (item) return *std::move(item);
        break;
      }
      case State::kExtension: {
        if (pending().empty()) return Item(NeedsMore());
        CAISSON_TRY(TakeExtension());
        break;
      }
      case State::kData:
        if (left_ > 0) return TakeData();
        padding_ = after_;
        state_ = State::kHeader;
        break;
    }
  }
}

// The item that the next header leads to; nothing when it leads on to another state.
Result<std::optional<TarReader::Item>> TarReader::TakeHeader() {
  if (pending().size() < kBlock) return std::optional<Item>(NeedsMore());
  const std::string block(pending().substr(0, kBlock));
  at_ += kBlock;
  if (IsZero(block)) {
    if (extension_.path || extension_.target || extension_.size)
      return Bad("ends after an extended header");
    state_ = State::kEnded;
    return std::optional<Item>();
  }
  if (!ChecksumFits(block)) return Bad("is damaged, or is none: a header's checksum is wrong");
  CAISSON_TRY(Count());
  const char type = block[kType];
  if (type == 'x' || type == 'g' || type == 'L' || type == 'K') {
    CAISSON_TRY(BeginExtension(block, type));
    return std::optional<Item>();
  }
  return BeginEntry(block, type);
}

// Every header counts, so that none can be had in endless numbers.
Status TarReader::Count() {
  if (++headers_ <= 2 * limits_.entries) return {};
  return Error(ErrorCode::kTooLarge,
               "the archive has more than " + std::to_string(limits_.entries) + " entries")
      .WithRemedy("send it in parts");
}

Status TarReader::BeginExtension(std::string_view block, char type) {
  const auto size = Number(Take(block, kSize));
  if (!size || *size == 0 || *size > kMaxExtension)
    return Bad("has an extended header that is empty or larger than 64 KiB");
  extension_type_ = type;
  extension_text_.clear();
  left_ = *size;
  state_ = State::kExtension;
  return {};
}

Status TarReader::TakeExtension() {
  const auto now = static_cast<size_t>(std::min<uint64_t>(left_, pending().size()));
  extension_text_ += pending().substr(0, now);
  at_ += now;
  left_ -= now;
  if (left_ > 0) return {};
  padding_ = PaddingOf(extension_text_.size());
  state_ = State::kHeader;
  const std::string text = std::move(extension_text_);
  if (extension_type_ == 'x' || extension_type_ == 'g') return ReadPax(text);
  // GNU: a name with a NUL at its end.
  std::string name = text.substr(0, text.find('\0'));
  (extension_type_ == 'L' ? extension_.path : extension_.target) = std::move(name);
  return {};
}

// "LENGTH KEY=VALUE\n", where LENGTH counts the whole record.
Status TarReader::ReadPax(std::string_view records) {
  while (!records.empty()) {
    size_t length = 0;
    const auto [end, error] =
        std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<size_t>(end - records.data());
    if (error != std::errc() || length > records.size() || length < digits + 3 || *end != ' ' ||
        records[length - 1] != '\n')
      return Bad("has a malformed extended header");
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return Bad("has a malformed extended header");
    CAISSON_TRY(ApplyPax(record.substr(0, equals), record.substr(equals + 1)));
    records.remove_prefix(length);
  }
  return {};
}

Status TarReader::ApplyPax(std::string_view key, std::string_view value) {
  if (key.starts_with("GNU.sparse")) return Bad("has a sparse file", "make it without --sparse");
  if (key != "path" && key != "linkpath" && key != "size") return {};
  if (extension_type_ == 'g')
    return Bad("has a global header that gives every entry the same " + std::string(key));
  if (key == "path") {
    extension_.path = std::string(value);
  } else if (key == "linkpath") {
    extension_.target = std::string(value);
  } else {
    uint64_t size = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), size);
    if (error != std::errc() || end != value.data() + value.size() || size > kMaxSize)
      return Bad("has a malformed size in an extended header");
    extension_.size = size;
  }
  return {};
}

Result<std::optional<TarReader::Item>> TarReader::BeginEntry(std::string_view block, char type) {
  CAISSON_ASSIGN(TarEntry entry, ReadEntry(block, type));
  extension_ = {};
  left_ = entry.size;
  after_ = PaddingOf(entry.size);
  state_ = State::kData;
  if (type == '3' || type == '4' || type == '6') {
    if (limits_.specials == TarSpecials::kRefuse)
      return BadEntry(entry.path, "is a device or a FIFO",
                      "leave it out, or extract with specials=skip");
    if (entry.size != 0) return Bad("has a device with content");
    ++skipped_;
    return std::optional<Item>();
  }
  if (entry.kind != TarKind::kFile && entry.size != 0)
    return BadEntry(entry.path, "is a link or directory with content",
                    "make the archive with pax, GNU tar or bsdtar");
  CAISSON_TRY(Admit(entry));
  return std::optional<Item>(std::move(entry));
}

Result<TarEntry> TarReader::ReadEntry(std::string_view block, char type) {
  TarEntry entry;
  std::string name = Text(block, kName);
  if (Take(block, kMagic) == std::string_view("ustar\00000", 8))
    if (std::string prefix = Text(block, kPrefix); !prefix.empty()) name = prefix + "/" + name;
  if (extension_.path) name = *extension_.path;
  CAISSON_ASSIGN(entry.path, CleanTarName(name));

  const auto size = Number(Take(block, kSize));
  const auto mode = Number(Take(block, kMode));
  if (!size || !mode)
    return BadEntry(name, "has a malformed size or mode", "send a tar archive as pax or GNU tar");
  entry.size = extension_.size.value_or(*size);
  entry.permissions = static_cast<uint32_t>(*mode) & 0777;

  entry.target = extension_.target ? *extension_.target : Text(block, kTarget);
  switch (type) {
    case '0':
    case '\0':
    case '7':
      // Before POSIX, a directory was a file whose name ends in a slash.
      entry.kind = name.ends_with('/') ? TarKind::kDirectory : TarKind::kFile;
      entry.target.clear();
      break;
    case '1': {
      entry.kind = TarKind::kHardLink;
      CAISSON_ASSIGN(entry.target, CleanTarName(entry.target));
      break;
    }
    case '2':
      entry.kind = TarKind::kSymlink;
      CAISSON_TRY(CheckTarget(entry.path, entry.target));
      break;
    case '5':
      entry.kind = TarKind::kDirectory;
      entry.target.clear();
      break;
    case '3':
    case '4':
    case '6':
      break;
    case 'S':
      return BadEntry(name, "is a sparse file", "make the archive without --sparse");
    default:
      return BadEntry(name, "is of a kind that is not supported",
                      "send files, directories and links only");
  }
  return entry;
}

// Counts it, and holds it to what came before.
Status TarReader::Admit(const TarEntry& entry) {
  if (entry.path.empty() && entry.kind != TarKind::kDirectory)
    return BadEntry(".", "is no directory", "make the archive of the directory's entries");
  if (++entries_ > limits_.entries)
    return Error(ErrorCode::kTooLarge,
                 "the archive has more than " + std::to_string(limits_.entries) + " entries")
        .WithRemedy("send it in parts");
  uint64_t size = entry.size;
  if (entry.kind == TarKind::kHardLink) {
    const auto target = known_.find(entry.target);
    if (target == known_.end() || target->second.kind != TarKind::kFile)
      return BadEntry(
          entry.path,
          "is a hard link to " + Quoted(entry.target) + ", which is no file that came before it",
          "put files before the links to them");
    size = target->second.size;
  }
  if (size > limits_.bytes - bytes_)
    return Error(ErrorCode::kTooLarge,
                 "the archive's files have more than " + std::to_string(limits_.bytes) + " bytes")
        .WithRemedy("send it in parts");
  bytes_ += size;
  name_bytes_ += entry.path.size();
  if (name_bytes_ > limits_.name_bytes)
    return Error(ErrorCode::kTooLarge, "the names in the archive have more than " +
                                           std::to_string(limits_.name_bytes) + " bytes")
        .WithRemedy("send it in parts");
  CAISSON_TRY(CheckParents(entry));
  const TarKind kind = entry.kind == TarKind::kHardLink ? TarKind::kFile : entry.kind;
  known_.insert_or_assign(entry.path, Known{kind, size});
  return {};
}

// What the archive made a link or a file cannot hold entries: they would go where the link points.
Status TarReader::CheckParents(const TarEntry& entry) const {
  for (size_t slash = entry.path.find('/'); slash != std::string::npos;
       slash = entry.path.find('/', slash + 1)) {
    const auto parent = known_.find(entry.path.substr(0, slash));
    if (parent != known_.end() && parent->second.kind != TarKind::kDirectory)
      return BadEntry(
          entry.path,
          "lies below " + Quoted(parent->first) + ", which the archive has as a link or file",
          "make the archive of the real directories");
  }
  return {};
}

Result<TarReader::Item> TarReader::TakeData() {
  if (pending().empty()) return Item(NeedsMore());
  const auto now = static_cast<size_t>(std::min<uint64_t>(left_, pending().size()));
  std::string data(pending().substr(0, now));
  at_ += now;
  left_ -= now;
  return Item(Bytes{std::move(data)});
}

Status TarReader::Finish() const {
  if (state_ == State::kEnded) return {};
  return Bad("is cut off: its end is missing", "send it whole");
}

}  // namespace caisson::api
