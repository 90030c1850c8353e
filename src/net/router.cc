#include "net/router.h"

#include <unordered_map>

#include "base/text.h"

namespace caisson::net {

// A place in the tree of segments. A tail ends the pattern, so its routes stand at its parent.
struct Router::Node {
  std::unordered_map<std::string, std::unique_ptr<Node>> literals;
  std::unique_ptr<Node> parameter;
  std::string parameter_name;
  std::string tail_name;
  std::map<std::string, size_t, std::less<>> methods;       // of the pattern that ends here
  std::map<std::string, size_t, std::less<>> tail_methods;  // of "…/{tail...}"
};

namespace {

Error Bad(std::string_view pattern, std::string_view why) {
  return {ErrorCode::kInvalidArgument, Concat({"the pattern ", Quoted(pattern), " ", why})};
}

using Methods = std::map<std::string, size_t, std::less<>>;

const size_t* FindRoute(const Methods& methods, std::string_view method) {
  auto found = methods.find(method);
  if (found == methods.end() && method == "HEAD") found = methods.find("GET");
  return found == methods.end() ? nullptr : &found->second;
}

std::string Allow(const Methods& methods) {
  std::string allow;
  for (const auto& [method, route] : methods) {
    if (!allow.empty()) allow += ", ";
    allow += method;
    if (method == "GET" && !methods.contains("HEAD")) allow += ", HEAD";
  }
  return allow;
}

Status SetName(std::string& place, std::string_view name, std::string_view pattern) {
  if (!place.empty() && place != name)
    return Error(ErrorCode::kConflict,
                 Concat({"the pattern ", Quoted(pattern), " calls {", place, "} {", name, "}"}));
  place = name;
  return {};
}

}  // namespace

const std::string* RouteMatch::Param(std::string_view name) const {
  for (const auto& [key, value] : params)
    if (key == name) return &value;
  return nullptr;
}

Router::Router() : root_(std::make_unique<Node>()) {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;

Status Router::Add(std::string_view method, std::string_view pattern, size_t route) {
  if (!pattern.starts_with('/')) return Bad(pattern, "does not start with '/'");
  Node* node = root_.get();
  Methods* methods = nullptr;
  std::string_view rest = pattern;
  while (!rest.empty()) {
    if (methods != nullptr) return Bad(pattern, "goes on after its tail");
    rest.remove_prefix(1);
    const std::string_view segment = rest.substr(0, rest.find('/'));
    rest.remove_prefix(segment.size());
    const bool named = segment.starts_with('{') && segment.ends_with('}') && segment.size() > 2;
    if (!named) {
      if (segment.find_first_of("{}") != std::string_view::npos)
        return Bad(pattern, "has a brace that is not around a whole segment");
      auto& child = node->literals[std::string(segment)];
      if (!child) child = std::make_unique<Node>();
      node = child.get();
      continue;
    }
    std::string_view name = segment.substr(1, segment.size() - 2);
    if (name.ends_with("...")) {
      name.remove_suffix(3);
      if (name.empty()) return Bad(pattern, "has a tail without a name");
      CAISSON_TRY(SetName(node->tail_name, name, pattern));
      methods = &node->tail_methods;
      continue;
    }
    CAISSON_TRY(SetName(node->parameter_name, name, pattern));
    if (!node->parameter) node->parameter = std::make_unique<Node>();
    node = node->parameter.get();
  }
  if (methods == nullptr) methods = &node->methods;
  if (!methods->emplace(std::string(method), route).second)
    return Error(ErrorCode::kConflict, Concat({"the route ", method, " ", pattern, " exists"}));
  return {};
}

RouteMatch Router::Match(std::string_view method, const std::vector<std::string>& segments) const {
  RouteMatch match;
  // Depth first, most specific first; the recursion is as deep as the deepest pattern.
  struct Search {
    std::string_view method;
    const std::vector<std::string>& segments;
    RouteMatch& match;

    bool Take(const Methods& methods) const {
      if (const size_t* route = FindRoute(methods, method)) {
        match.kind = RouteMatch::Kind::kFound;
        match.route = *route;
        match.allow.clear();
        return true;
      }
      if (!methods.empty() && match.allow.empty()) {
        match.kind = RouteMatch::Kind::kNoSuchMethod;
        match.allow = Allow(methods);
      }
      return false;
    }
    bool From(const Node& node, size_t depth) const {
      if (depth == segments.size()) return Take(node.methods);
      const std::string& segment = segments[depth];
      if (const auto literal = node.literals.find(segment); literal != node.literals.end())
        if (From(*literal->second, depth + 1)) return true;
      if (node.parameter && !segment.empty()) {
        match.params.emplace_back(node.parameter_name, segment);
        if (From(*node.parameter, depth + 1)) return true;
        match.params.pop_back();
      }
      return !node.tail_methods.empty() && TakeTail(node, depth);
    }
    bool TakeTail(const Node& node, size_t depth) const {
      if (!Take(node.tail_methods)) return false;
      std::string tail = segments[depth];
      for (size_t i = depth + 1; i < segments.size(); ++i) tail.append("/").append(segments[i]);
      match.params.emplace_back(node.tail_name, std::move(tail));
      return true;
    }
  };
  Search{method, segments, match}.From(*root_, 0);
  return match;
}

}  // namespace caisson::net
