// YAML files as trees that remember where everything stands.
//
// A subset on purpose: one document of maps, lists and scalars. Anchors, aliases, tags, merge keys,
// complex keys, further documents and the same key twice are refused, so that a file means what it
// looks like and cannot expand. Scalars stay text; whoever reads them knows what they should be.
//
// Errors are kInvalidArgument, or kIo when a file cannot be read, and start with "ORIGIN:LINE: ".
// Pure functions, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace caisson::yaml {

struct Member;

struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  int line = 1;                 // from 1
  std::string text;             // kScalar
  std::vector<Node> items;      // kList
  std::vector<Member> members;  // kMap, in the order of the file

  bool is_null() const { return kind == Kind::kNull; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_map() const { return kind == Kind::kMap; }

  // The value of `key`, or null when there is none or this is no map.
  const Node* Find(std::string_view key) const;
};

struct Member {
  std::string key;
  int line = 1;
  Node value;
};

// "a scalar", "a list", …: for messages.
std::string_view NameOf(Node::Kind kind);

// `origin` names the text in messages. An empty text is a null node. At most 1 MiB and 32 levels.
Result<Node> Parse(std::string_view text, std::string_view origin);
Result<Node> ParseFile(const std::string& path);

// "ORIGIN:LINE: what": an error about a node.
Error ErrorAt(std::string_view origin, const Node& node, std::string_view what, std::string remedy);

}  // namespace caisson::yaml
