// The options of `serve`, as values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/options.h"
#include "log/logger.h"
#include "sandbox/isolation.h"
#include "sandbox/retention.h"

namespace caisson::cli {

enum class ServeAuth { kKeys, kNone };

struct ServeOptions {
  std::vector<std::string> listen;
  std::string data_dir;
  ServeAuth auth = ServeAuth::kKeys;
  std::string tls_cert, tls_key;  // files; empty: no TLS
  bool tls_self_signed = false;
  std::vector<std::string> hosts, origins;
  std::string jwt_issuers;  // a file; empty: none
  std::string alert_rules;  // a file; empty: none
  std::string provider;
  sandbox::IsolationLevel min_isolation = sandbox::IsolationLevel::kAny;
  log::Level log_level = log::Level::kInfo;
  int64_t max_sessions = 0;  // 0: as many as fit
  int64_t warm_ready = 0, warm_ceiling = 0;
  std::optional<uint64_t> memory_limit;  // bytes
  std::optional<uint32_t> cpu_limit;     // thousandths of a core
  int64_t max_connections = 0;
  std::chrono::milliseconds connection_timeout{0};
  std::chrono::milliseconds drain{0};
  bool webhooks_to_private = false;
  sandbox::RetentionOptions retention;
};

// What was asked for, checked: any address but loopback needs keys and TLS; kInvalidArgument says
// what to do.
Result<ServeOptions> ReadServeOptions(const Parsed& parsed);

// Whether the address can be reached from this machine alone.
bool IsLocalAddress(const std::string& listen);

}  // namespace caisson::cli
