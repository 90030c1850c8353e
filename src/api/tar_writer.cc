#include <algorithm>

#include "api/tar_stream.h"

namespace caisson::api {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kNameField = 100;
constexpr uint64_t kLargestOctal = 077777777777;  // eleven digits

struct Header {
  char type = '0';
  std::string_view name, target;
  uint32_t permissions = 0644;
  uint64_t size = 0;
};

void PutText(std::string& block, size_t at, size_t size, std::string_view text) {
  block.replace(at, std::min(size, text.size()), text.substr(0, size));
}

// `size` - 1 octal digits and a NUL.
void PutOctal(std::string& block, size_t at, size_t size, uint64_t value) {
  for (size_t i = size - 1; i-- > 0; value >>= 3)
    block[at + i] = static_cast<char>('0' + value % 8);
}

std::string Block(const Header& header, TarFacts facts) {
  std::string block(kBlock, '\0');
  PutText(block, 0, kNameField, header.name);
  PutOctal(block, 100, 8, header.permissions);
  PutOctal(block, 108, 8, facts.uid & 07777777);
  PutOctal(block, 116, 8, facts.gid & 07777777);
  PutOctal(block, 124, 12, std::min(header.size, kLargestOctal));
  PutOctal(block, 136, 12, std::min(facts.mtime, kLargestOctal));
  block[156] = header.type;
  PutText(block, 157, kNameField, header.target);
  PutText(block, 257, 8, std::string_view("ustar\00000", 8));
  PutText(block, 148, 8, "        ");
  uint64_t sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  PutOctal(block, 148, 7, sum);
  block[154] = '\0';
  return block;
}

// "LENGTH KEY=VALUE\n"; LENGTH counts its own digits too.
std::string PaxRecord(std::string_view key, std::string_view value) {
  const size_t rest = key.size() + value.size() + 3;
  size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length)
    length = std::to_string(length).size() + rest;
  std::string record = std::to_string(length);
  record.append(" ").append(key).append("=").append(value).append("\n");
  return record;
}

char TypeOf(TarKind kind) {
  switch (kind) {
    case TarKind::kDirectory:
      return '5';
    case TarKind::kSymlink:
      return '2';
    case TarKind::kHardLink:
      return '1';
    case TarKind::kFile:
      break;
  }
  return '0';
}

}  // namespace

std::string TarPadding(uint64_t size) {
  return std::string((kBlock - size % kBlock) % kBlock, '\0');
}

std::string TarEnd() { return std::string(2 * kBlock, '\0'); }

std::string TarHeader(const TarEntry& entry, TarFacts facts) {
  std::string name = entry.path.empty() ? "." : entry.path;
  if (entry.kind == TarKind::kDirectory) name += '/';
  std::string records;
  if (name.size() > kNameField) records += PaxRecord("path", name);
  if (entry.target.size() > kNameField) records += PaxRecord("linkpath", entry.target);
  if (entry.size > kLargestOctal) records += PaxRecord("size", std::to_string(entry.size));
  std::string bytes;
  if (!records.empty()) {
    bytes = Block({.type = 'x', .name = "PaxHeader", .size = records.size()}, {});
    bytes += records;
    bytes += TarPadding(records.size());
  }
  bytes += Block({.type = TypeOf(entry.kind),
                  .name = name,
                  .target = entry.target,
                  .permissions = entry.permissions,
                  .size = entry.size},
                 facts);
  return bytes;
}

}  // namespace caisson::api
