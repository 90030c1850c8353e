// Headers: the header fields of one HTTP message, in order. Names compare without regard to case.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace caisson::net {

struct Header {
  std::string name;
  std::string value;
};

class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<Header> fields) : fields_(fields) {}

  void Add(std::string name, std::string value) {
    fields_.push_back({std::move(name), std::move(value)});
  }
  // Replaces every field of that name.
  void Set(std::string name, std::string value);
  void Remove(std::string_view name);

  // The first of that name, or nullptr.
  const std::string* Find(std::string_view name) const;
  // The first of that name, or `otherwise`.
  std::string_view Get(std::string_view name, std::string_view otherwise = {}) const;
  std::vector<std::string_view> All(std::string_view name) const;
  size_t Count(std::string_view name) const;
  // Whether the comma-separated list of that name (over all its fields) has `token`, in any case.
  bool HasToken(std::string_view name, std::string_view token) const;

  size_t size() const { return fields_.size(); }
  bool empty() const { return fields_.empty(); }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

 private:
  std::vector<Header> fields_;
};

// ASCII only, as HTTP has it.
bool EqualsIgnoringCase(std::string_view a, std::string_view b);
// A token of RFC 9110 §5.6.2: what methods and header names are made of.
bool IsToken(std::string_view text);
// What a header's value may hold: no control characters but the tab.
bool IsFieldValue(std::string_view text);
// Without spaces and tabs at both ends.
std::string_view TrimBlanks(std::string_view text);

}  // namespace caisson::net
