// What a server says about itself; made once, at its start.
#pragma once

#include <functional>
#include <string>

namespace caisson::api {

struct ServerInfo {
  std::string version;
  std::string openapi;  // the document
  std::string docs;     // the page
  std::function<bool()> draining;
};

}  // namespace caisson::api
