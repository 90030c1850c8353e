#include "yaml/yaml.h"

#include <fcntl.h>
#include <unistd.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

#include "base/text.h"
#include "base/utf8.h"

namespace caisson::yaml {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr size_t kMaxDepth = 32;

Error ErrorAtLine(std::string_view origin, int line, std::string_view what, std::string remedy) {
  return Error(ErrorCode::kInvalidArgument, Concat({origin, ":", std::to_string(line), ": ", what}))
      .WithRemedy(std::move(remedy));
}

// What the builder throws through yaml-cpp's parser to stop it; caught in Parse.
struct Refusal {
  int line;
  std::string what;
  std::string remedy;
};

// Builds the tree from the parser's events.
class Builder final : public YAML::EventHandler {
 public:
  Node Take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark& mark, const std::string&) override {
    throw Refusal{LineOf(mark), "anchors are not supported", "write the value out"};
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refusal{LineOf(mark), "aliases are not supported", "write the value out"};
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    Put({.kind = Node::Kind::kNull, .line = LineOf(mark)});
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    CheckTag(mark, tag);
    const bool plain = tag != "!";  // "!" is what quotes give
    if (plain && !WantsKey() && (value.empty() || value == "~" || value == "null")) {
      return Put({.kind = Node::Kind::kNull, .line = LineOf(mark)});
    }
    if (plain && WantsKey() && value == "<<") {
      throw Refusal{LineOf(mark), "merge keys are not supported", "write the members out"};
    }
    Put({.kind = Node::Kind::kScalar, .line = LineOf(mark), .text = value});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, Node::Kind::kList);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, Node::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Level {
    Node node;
    std::string key;  // of the member whose value comes next
    int key_line = 1;
    bool has_key = false;
  };

  static int LineOf(const YAML::Mark& mark) { return mark.line + 1; }

  static void CheckTag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    throw Refusal{LineOf(mark), "tags are not supported", "leave " + Quoted(tag) + " out"};
  }

  bool WantsKey() const {
    return !levels_.empty() && levels_.back().node.is_map() && !levels_.back().has_key;
  }

  void Open(const YAML::Mark& mark, const std::string& tag, Node::Kind kind) {
    CheckTag(mark, tag);
    if (WantsKey()) throw Refusal{LineOf(mark), "a key is no scalar", "use a plain word as key"};
    if (levels_.size() >= kMaxDepth) {
      throw Refusal{LineOf(mark), "nested too deep", "nest at most 32 levels"};
    }
    levels_.push_back({.node = {.kind = kind, .line = LineOf(mark)}});
  }

  void Close() {
    Node node = std::move(levels_.back().node);
    levels_.pop_back();
    Put(std::move(node));
  }

  void Put(Node node) {
    if (levels_.empty()) {
      root_ = std::move(node);
      return;
    }
    Level& level = levels_.back();
    if (level.node.is_list()) {
      level.node.items.push_back(std::move(node));
    } else if (!level.has_key) {
      PutKey(level, std::move(node));
    } else {
      if (node.is_null()) node.line = level.key_line;  // there is nothing to stand on another
      level.node.members.push_back({std::move(level.key), level.key_line, std::move(node)});
      level.has_key = false;
    }
  }

  static void PutKey(Level& level, Node node) {
    if (!node.is_scalar()) throw Refusal{node.line, "a key is missing", "write KEY: VALUE"};
    if (level.node.Find(node.text) != nullptr) {
      throw Refusal{node.line, "key " + Quoted(node.text) + " is given more than once",
                    "keep one of them"};
    }
    level.key = std::move(node.text);
    level.key_line = node.line;
    level.has_key = true;
  }

  std::vector<Level> levels_;
  Node root_;
};

Result<std::string> ReadFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Error::FromErrno("cannot open " + path);
  std::string text;
  char buffer[16384];
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      Error error = Error::FromErrno("cannot read " + path);
      close(fd);
      return error;
    }
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
    if (got == 0 || text.size() > kMaxBytes) break;
  }
  close(fd);
  return text;
}

Result<Node> ParseDocument(std::string_view text, std::string_view origin) {
  std::istringstream stream{std::string(text)};
  Builder builder;
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return Node();
    Builder second;
    if (parser.HandleNextDocument(second)) {
      return ErrorAtLine(origin, second.Take().line, "a second document begins",
                         "keep one document per file");
    }
  } catch (const Refusal& refusal) {
    return ErrorAtLine(origin, refusal.line, refusal.what, refusal.remedy);
  } catch (const YAML::Exception& exception) {
    return ErrorAtLine(origin, exception.mark.line + 1, exception.msg, "write valid YAML");
  }
  return builder.Take();
}

}  // namespace

const Node* Node::Find(std::string_view key) const {
  const auto found = std::ranges::find(members, key, &Member::key);
  return found == members.end() ? nullptr : &found->value;
}

std::string_view NameOf(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kScalar:
      return "a scalar";
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a map";
  }
  return "nothing";
}

Result<Node> Parse(std::string_view text, std::string_view origin) {
  if (text.size() > kMaxBytes) {
    return ErrorAtLine(origin, 1, "the file is larger than 1 MiB", "make it smaller");
  }
  if (!IsUtf8(text)) return ErrorAtLine(origin, 1, "the file is not UTF-8", "save it as UTF-8");
  // yaml-cpp takes a quoted scalar that does not end for one that does, if a newline comes last:
  // the text is looked at without it, too.
  const std::string_view trimmed = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  if (trimmed.size() < text.size()) CAISSON_TRY(ParseDocument(trimmed, origin));
  return ParseDocument(text, origin);
}

Result<Node> ParseFile(const std::string& path) {
  CAISSON_ASSIGN(const std::string text, ReadFile(path));
  return Parse(text, path);
}

Error ErrorAt(std::string_view origin, const Node& node, std::string_view what,
              std::string remedy) {
  return ErrorAtLine(origin, node.line, what, std::move(remedy));
}

}  // namespace caisson::yaml
