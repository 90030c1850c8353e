// Connection: which server the verbs talk to, as whom, and where each of that comes from.
//
// A setting comes from the first of: command line, environment, what `caisson login` stored, its
// default. A stored key is sent only to the server that it was stored with.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/options.h"

namespace caisson::cli {

inline constexpr std::string_view kDefaultUrl = "http://127.0.0.1:8000";

inline constexpr Option kConnectionOptions[] = {
    {.name = "url",
     .placeholder = "URL",
     .env = "CAISSON_API_URL",
     .section = "Server",
     .help = "the server: http://…, https://… or unix:/path (default: that of `caisson login`, or "
             "http://127.0.0.1:8000)"},
    {.name = "key",
     .placeholder = "KEY",
     .env = "CAISSON_API_KEY",
     .section = "Server",
     .help = "your API key (default: that of `caisson login`, for its server)"},
    {.name = "ca-file",
     .kind = ValueKind::kPath,
     .placeholder = "FILE",
     .env = "CAISSON_CA_FILE",
     .section = "Server",
     .help = "trust the certificates in this PEM file, instead of the system's"},
};
inline constexpr Option kJsonOption[] = {{.name = "json",
                                          .kind = ValueKind::kFlag,
                                          .section = "Output",
                                          .help = "print JSON, one object a line"}};

// Tables one after another, as one.
template <size_t... N>
constexpr auto Joined(const Option (&... tables)[N]) {
  std::array<Option, (N + ...)> all;
  size_t i = 0;
  const auto add = [&](std::span<const Option> table) {
    for (const Option& option : table) all[i++] = option;
  };
  (add(tables), ...);
  return all;
}

// A setting and where it comes from: "--url", "CAISSON_API_URL", the login file's path, "default".
struct Setting {
  std::string value;
  std::string source;
};

struct Connection {
  Setting url, key, ca_file;  // an empty key: none is sent
};

// What `caisson login` keeps, in $XDG_CONFIG_HOME/caisson/client.json, for its owner alone.
struct Login {
  std::string url, key, ca_file;
};
std::string LoginPath();
// Nothing when nobody has logged in. kPermissionDenied when others may read the file,
// kInvalidArgument when it is not what login writes.
Result<std::optional<Login>> LoadLogin();
Status StoreLogin(const Login& login);
// Removes it; false when there was none.
Result<bool> ForgetLogin();

Result<Connection> ResolveConnection(const Parsed& parsed);

}  // namespace caisson::cli
