// Router: which route a method and a path belong to. Knows routes by number; what a route means is
// its owner's.
//
// Patterns: "/api/sessions", "/api/sessions/{id}", "/files/{path...}" (the tail: one or more
// segments, joined with '/'). Where several fit, a literal goes before {name}, and {name} before a
// tail. The time a match takes depends on the path, not on the number of routes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace caisson::net {

struct RouteMatch {
  enum class Kind { kFound, kNoSuchPath, kNoSuchMethod };
  Kind kind = Kind::kNoSuchPath;
  size_t route = 0;                                         // kFound
  std::vector<std::pair<std::string, std::string>> params;  // kFound: in the order of the pattern
  std::string allow;  // kNoSuchMethod: "GET, HEAD, POST", for the Allow header

  // The parameter's value, or nullptr.
  const std::string* Param(std::string_view name) const;
};

class Router {
 public:
  Router();
  ~Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;

  // Errors: kInvalidArgument (a malformed pattern), kConflict (the route exists, or the same place
  // has a parameter of another name).
  Status Add(std::string_view method, std::string_view pattern, size_t route);
  // `segments` as in Request. HEAD is served by GET where there is no HEAD route.
  RouteMatch Match(std::string_view method, const std::vector<std::string>& segments) const;

 private:
  struct Node;
  std::unique_ptr<Node> root_;
};

}  // namespace caisson::net
