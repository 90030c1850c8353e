#include "net/headers.h"

#include <algorithm>
#include <array>

namespace caisson::net {
namespace {

constexpr char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

constexpr std::array<bool, 256> MakeTokenTable() {
  std::array<bool, 256> table{};
  for (int c = 'a'; c <= 'z'; ++c) table[c] = true;
  for (int c = 'A'; c <= 'Z'; ++c) table[c] = true;
  for (int c = '0'; c <= '9'; ++c) table[c] = true;
  for (const char c : std::string_view("!#$%&'*+-.^_`|~")) table[static_cast<uint8_t>(c)] = true;
  return table;
}
constexpr std::array<bool, 256> kToken = MakeTokenTable();

}  // namespace

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return Lower(x) == Lower(y); });
}

bool IsToken(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return kToken[static_cast<uint8_t>(c)]; });
}

bool IsFieldValue(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<uint8_t>(c);
    return (byte >= 0x20 && byte != 0x7f) || byte == '\t';
  });
}

std::string_view TrimBlanks(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

void Headers::Set(std::string name, std::string value) {
  Remove(name);
  Add(std::move(name), std::move(value));
}

void Headers::Remove(std::string_view name) {
  std::erase_if(fields_,
                [name](const Header& field) { return EqualsIgnoringCase(field.name, name); });
}

const std::string* Headers::Find(std::string_view name) const {
  for (const Header& field : fields_)
    if (EqualsIgnoringCase(field.name, name)) return &field.value;
  return nullptr;
}

std::string_view Headers::Get(std::string_view name, std::string_view otherwise) const {
  const std::string* value = Find(name);
  return value != nullptr ? std::string_view(*value) : otherwise;
}

std::vector<std::string_view> Headers::All(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const Header& field : fields_)
    if (EqualsIgnoringCase(field.name, name)) values.emplace_back(field.value);
  return values;
}

size_t Headers::Count(std::string_view name) const {
  return static_cast<size_t>(std::ranges::count_if(
      fields_, [name](const Header& field) { return EqualsIgnoringCase(field.name, name); }));
}

bool Headers::HasToken(std::string_view name, std::string_view token) const {
  for (const Header& field : fields_) {
    if (!EqualsIgnoringCase(field.name, name)) continue;
    std::string_view rest = field.value;
    while (true) {
      const size_t comma = rest.find(',');
      if (EqualsIgnoringCase(TrimBlanks(rest.substr(0, comma)), token)) return true;
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return false;
}

}  // namespace caisson::net
