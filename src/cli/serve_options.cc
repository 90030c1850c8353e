#include "cli/serve_options.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "cli/configuration.h"
#include "cli/serve.h"

namespace caisson::cli {
namespace {

constexpr int64_t kLongestKept = int64_t{36'500} * 86'400 * 1'000'000'000;  // a hundred years

constexpr Option kOptions[] = {
    kConfigOption,
    kEnvFileOption,
    {.name = "listen",
     .occurs = Occurs::kMany,
     .placeholder = "HOST:PORT|unix:PATH",
     .default_text = "127.0.0.1:8000",
     .env = "CAISSON_LISTEN",
     .config_key = "listen",
     .section = "Server",
     .help = "where to listen; repeatable. Port 0 lets the kernel choose"},
    {.name = "data-dir",
     .kind = ValueKind::kPath,
     .placeholder = "DIR",
     .env = "CAISSON_DATA_DIR",
     .config_key = "data_dir",
     .section = "Server",
     .help = "all state of the server (default: CAISSON_HOME, /var/lib/caisson for root, "
             "~/.local/share/caisson for others)"},
    {.name = "drain",
     .kind = ValueKind::kDuration,
     .default_text = "20s",
     .config_key = "drain",
     .min = 0,
     .max = 3'600'000'000'000,
     .section = "Server",
     .help = "how long running requests may take after SIGTERM; a second signal ends them sooner"},
    {.name = "max-connections",
     .kind = ValueKind::kInt,
     .placeholder = "N",
     .default_text = "4096",
     .config_key = "resource_limits.max_connections",
     .min = 1,
     .max = 1'000'000,
     .section = "Server",
     .help = "open connections; more are answered 503 and closed"},
    {.name = "connection-timeout",
     .kind = ValueKind::kDuration,
     .default_text = "75s",
     .config_key = "resource_limits.connection_timeout",
     .min = 1'000'000'000,
     .max = 86'400'000'000'000,
     .section = "Server",
     .help = "how long a connection may be open without a request"},
    {.name = "log-level",
     .kind = ValueKind::kEnum,
     .choices = log::kLevelChoices,
     .default_text = "info",
     .env = "CAISSON_LOG_LEVEL",
     .config_key = "log_level",
     .section = "Server",
     .help = "the least important lines that are written to stderr; debug has one per request"},
    {.name = "auth",
     .kind = ValueKind::kEnum,
     .choices = "keys|none",
     .default_text = "keys",
     .config_key = "auth",
     .section = "Security",
     .help = "keys: every caller shows an API key, JWT or session token. none: everybody on this "
             "machine may do everything; loopback addresses only"},
    {.name = "tls-cert",
     .kind = ValueKind::kPath,
     .placeholder = "FILE",
     .config_key = "tls_cert",
     .section = "Security",
     .help = "certificate chain (PEM) for TLS; read again when it changes"},
    {.name = "tls-key",
     .kind = ValueKind::kPath,
     .placeholder = "FILE",
     .config_key = "tls_key",
     .section = "Security",
     .help = "private key (PEM) of the certificate"},
    {.name = "tls-self-signed",
     .kind = ValueKind::kFlag,
     .config_key = "tls_self_signed",
     .section = "Security",
     .help = "TLS with a certificate made at the start, for trials"},
    {.name = "host",
     .occurs = Occurs::kMany,
     .placeholder = "NAME",
     .config_key = "hosts",
     .section = "Security",
     .help = "a name or address that this server answers to, besides localhost; repeatable"},
    {.name = "origin",
     .occurs = Occurs::kMany,
     .placeholder = "URL",
     .config_key = "origins",
     .section = "Security",
     .help = "a web page's origin that may use the API from a browser; repeatable"},
    {.name = "jwt-issuers",
     .kind = ValueKind::kPath,
     .placeholder = "FILE",
     .config_key = "jwt_issuers",
     .section = "Security",
     .help = "issuers whose JSON Web Tokens are accepted (JSON; see docs/guides/server.md)"},
    {.name = "webhooks-to-private",
     .kind = ValueKind::kFlag,
     .config_key = "webhooks_to_private",
     .section = "Security",
     .help = "let webhooks call private, loopback and link-local addresses"},
    {.name = "provider",
     .kind = ValueKind::kEnum,
     .choices = "native",
     .default_text = "native",
     .config_key = "provider",
     .section = "Sessions",
     .help = "what makes sandboxes for sessions that name no provider"},
    {.name = "min-isolation",
     .kind = ValueKind::kEnum,
     .choices = "any|namespaces-rootless|namespaces",
     .default_text = "any",
     .config_key = "min_isolation",
     .section = "Sessions",
     .help = "refuse sessions that would be isolated less than this"},
    {.name = "max-sessions",
     .kind = ValueKind::kInt,
     .placeholder = "N",
     .default_text = "0",
     .config_key = "max_sessions",
     .min = 0,
     .max = 1'000'000,
     .section = "Sessions",
     .help = "at most this many live sessions; 0: as many as the host has room for"},
    {.name = "memory-limit",
     .kind = ValueKind::kSize,
     .config_key = "resource_limits.memory_limit",
     .min = 1 << 20,
     .section = "Sessions",
     .help = "memory of sessions of the default profile that name none (default: the profile's)"},
    {.name = "cpu-limit",
     .kind = ValueKind::kCpus,
     .config_key = "resource_limits.cpu_limit",
     .section = "Sessions",
     .help = "cores of sessions of the default profile that name none (default: the profile's)"},
    {.name = "warm",
     .kind = ValueKind::kInt,
     .placeholder = "N",
     .default_text = "0",
     .config_key = "warm",
     .min = 0,
     .max = 1000,
     .section = "Sessions",
     .help = "sandboxes of the default environment that are always kept ready"},
    {.name = "warm-ceiling",
     .kind = ValueKind::kInt,
     .placeholder = "N",
     .default_text = "16",
     .config_key = "warm_ceiling",
     .min = 0,
     .max = 1000,
     .section = "Sessions",
     .help = "sandboxes kept ready of one kind when there is demand; 0: no warm pool"},
    {.name = "alerts",
     .kind = ValueKind::kPath,
     .placeholder = "FILE",
     .config_key = "alerts",
     .section = "Sessions",
     .help = "alert rules on the server's metrics (YAML)"},
    {.name = "keep-records",
     .kind = ValueKind::kDuration,
     .default_text = "30d",
     .config_key = "keep_records",
     .min = 0,
     .max = kLongestKept,
     .section = "Keeping",
     .help = "how long an ended session and its commands are known; 0: for ever"},
    {.name = "keep-logs",
     .kind = ValueKind::kDuration,
     .default_text = "7d",
     .config_key = "keep_logs",
     .min = 0,
     .max = kLongestKept,
     .section = "Keeping",
     .help = "how long the log of an ended session is kept; 0: as long as its record"},
    {.name = "keep-artifacts",
     .kind = ValueKind::kDuration,
     .default_text = "7d",
     .config_key = "keep_artifacts",
     .min = 0,
     .max = kLongestKept,
     .section = "Keeping",
     .help = "how long files are kept that sessions left; 0: for ever"},
    {.name = "keep-events",
     .kind = ValueKind::kDuration,
     .default_text = "7d",
     .config_key = "keep_events",
     .min = 0,
     .max = kLongestKept,
     .section = "Keeping",
     .help = "how long events can be replayed, a million at most; 0: however old they are"},
    {.name = "keep-usage",
     .kind = ValueKind::kDuration,
     .default_text = "400d",
     .config_key = "keep_usage",
     .min = 0,
     .max = kLongestKept,
     .section = "Keeping",
     .help = "how long the figures of usage are kept, by the day; 0: for ever"},
};

sandbox::RetentionOptions ReadRetention(const Parsed& parsed) {
  const auto keep = [&parsed](std::string_view name) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        *parsed.Get<std::chrono::nanoseconds>(name));
  };
  sandbox::RetentionOptions options;
  options.records = keep("keep-records");
  options.logs = keep("keep-logs");
  options.artifacts = keep("keep-artifacts");
  options.events = keep("keep-events");
  options.usage = keep("keep-usage");
  return options;
}

Error Refused(const std::string& listen, const std::string& lacks, std::string remedy) {
  return Error(ErrorCode::kInvalidArgument, "refusing to listen on " + listen + " " + lacks)
      .WithRemedy(std::move(remedy));
}

Status CheckListeners(const ServeOptions& options) {
  const bool tls = options.tls_self_signed || !options.tls_cert.empty();
  for (const std::string& listen : options.listen) {
    if (IsLocalAddress(listen)) continue;
    if (options.auth == ServeAuth::kNone)
      return Refused(listen, "without authentication: others could run anything here",
                     "use --auth keys, or listen on 127.0.0.1");
    if (!tls)
      return Refused(listen, "without TLS: keys would travel in the clear",
                     "give --tls-cert and --tls-key (or --tls-self-signed for a trial), or listen "
                     "on 127.0.0.1 behind a proxy that has TLS");
  }
  return {};
}

}  // namespace

std::span<const Option> ServeOptionTable() { return kOptions; }

bool IsLocalAddress(const std::string& listen) {
  return listen.starts_with("unix:") || listen.starts_with("fd:") || listen.starts_with("127.") ||
         listen.starts_with("[::1]:") || listen.starts_with("localhost:");
}

Result<ServeOptions> ReadServeOptions(const Parsed& parsed) {
  ServeOptions options;
  options.listen = parsed.All<std::string>("listen");
  options.data_dir = parsed.Get<std::string>("data-dir").value_or("");
  options.auth = *parsed.Get<std::string>("auth") == "none" ? ServeAuth::kNone : ServeAuth::kKeys;
  options.tls_cert = parsed.Get<std::string>("tls-cert").value_or("");
  options.tls_key = parsed.Get<std::string>("tls-key").value_or("");
  options.tls_self_signed = parsed.Flag("tls-self-signed");
  options.hosts = parsed.All<std::string>("host");
  options.origins = parsed.All<std::string>("origin");
  options.jwt_issuers = parsed.Get<std::string>("jwt-issuers").value_or("");
  options.alert_rules = parsed.Get<std::string>("alerts").value_or("");
  options.min_isolation = *sandbox::ParseIsolation(*parsed.Get<std::string>("min-isolation"));
  options.provider = *parsed.Get<std::string>("provider");
  CAISSON_ASSIGN(options.log_level, log::ParseLevel(*parsed.Get<std::string>("log-level")));
  options.memory_limit = parsed.Get<uint64_t>("memory-limit");
  options.cpu_limit = parsed.Get<uint32_t>("cpu-limit");
  options.max_connections = *parsed.Get<int64_t>("max-connections");
  options.connection_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
      *parsed.Get<std::chrono::nanoseconds>("connection-timeout"));
  options.max_sessions = *parsed.Get<int64_t>("max-sessions");
  options.warm_ready = *parsed.Get<int64_t>("warm");
  options.warm_ceiling = *parsed.Get<int64_t>("warm-ceiling");
  options.drain = std::chrono::duration_cast<std::chrono::milliseconds>(
      *parsed.Get<std::chrono::nanoseconds>("drain"));
  options.webhooks_to_private = parsed.Flag("webhooks-to-private");
  options.retention = ReadRetention(parsed);
  if (options.tls_cert.empty() != options.tls_key.empty())
    return Error(ErrorCode::kInvalidArgument, "TLS needs both a certificate and its key")
        .WithRemedy("give --tls-cert and --tls-key together");
  if (options.tls_self_signed && !options.tls_cert.empty())
    return Error(ErrorCode::kInvalidArgument,
                 "--tls-self-signed is given together with a certificate")
        .WithRemedy("give one of the two");
  CAISSON_TRY(CheckListeners(options));
  return options;
}

}  // namespace caisson::cli
