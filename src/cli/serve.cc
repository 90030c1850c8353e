// serve: the server, from its data directory to its last request.
//
// The order below is the order of dependence: each thing is made from those above it and goes
// before them. From `listening on` on, requests are taken; until then nobody has been promised
// anything.
#include "cli/serve.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "api/administration.h"
#include "api/dispatcher.h"
#include "api/docs_page.h"
#include "api/openapi.h"
#include "api/routes.h"
#include "api/span_sink.h"
#include "async/race.h"
#include "async/signals.h"
#include "async/task_set.h"
#include "auth/crypto.h"
#include "auth/session_token.h"
#include "cli/dispatch.h"
#include "cli/serve_files.h"
#include "cli/serve_options.h"
#include "log/sink.h"
#include "net/server.h"
#include "providers/native/native_provider.h"
#include "sandbox/event_archive.h"
#include "sandbox/session_scaling.h"
#include "sandbox/store_journal.h"
#include "sandbox/stored_keeper.h"
#include "sandbox/warm_pool.h"
#include "telemetry/host_metrics.h"
#include "telemetry/otlp.h"

namespace caisson::cli {
namespace {

// Names that agents know environments by. All of them are the host's own system directories.
sandbox::StringMap EnvironmentNames() {
  sandbox::StringMap names;
  for (const char* name : {"Python3", "Python", "python", "python3", "Node", "node", "Bash", "bash",
                           "default", "base"})
    names[name] = "host";
  return names;
}

// Each live session costs a few descriptors; as many as may be had.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

Result<std::string> Absolute(std::string path) {
  if (path.starts_with('/')) return path;
  char here[4096];
  if (getcwd(here, sizeof here) == nullptr) return Error::FromErrno("find the working directory");
  return std::string(here) + "/" + path;
}

native::LauncherPaths PathsIn(const std::string& data_dir) {
  native::LauncherPaths paths = native::LauncherPaths::FromEnvironment();
  paths.state_dir = data_dir + "/native";
  if (geteuid() != 0) paths.run_dir = data_dir + "/run";
  return paths;
}

Result<std::shared_ptr<net::TlsServer>> MakeTls(const ServeOptions& options) {
  if (options.tls_self_signed)
    return net::TlsServer::SelfSigned(options.hosts.empty() ? "localhost" : options.hosts.front());
  if (options.tls_cert.empty()) return std::shared_ptr<net::TlsServer>();
  return net::TlsServer::FromFiles(options.tls_cert, options.tls_key);
}

Result<api::Administration::Options> AdministrationOptions(const ServeOptions& options) {
  api::Administration::Options admin;
  admin.mode = options.auth == ServeAuth::kNone ? api::ConfiguredGate::Mode::kNone
                                                : api::ConfiguredGate::Mode::kCredentials;
  admin.own_uid = geteuid();
  admin.browser = {options.hosts, options.origins};
  if (options.webhooks_to_private) admin.webhook_addresses = net::AnyAddress;
  if (!options.jwt_issuers.empty()) {
    CAISSON_ASSIGN(admin.issuers, ReadJwtIssuers(options.jwt_issuers));
  }
  return admin;
}

// The first key of a new server, in a file that only the server's user can read. Whoever can read
// it can read the data directory anyway.
Task<Status> WriteFirstKey(api::Administration* admin, store::DataDir* dir, log::Logger log) {
  CAISSON_CO_ASSIGN(const auto first, co_await admin->MakeFirstKey());
  if (!first) co_return Status();
  CAISSON_CO_TRY(store::WriteFileAtomically(dir->fd(), "admin.key", first->key + "\n"));
  log.Info("made the first admin key", {{"file", dir->PathOf("admin.key")}});
  co_return Status();
}

// What waits in the pool, and how often it served.
void ShowPool(telemetry::Registry& registry, const sandbox::WarmPool& pool) {
  const auto* warm = &pool;
  registry.AddComputedGauge("caisson_warm_ready", "Sandboxes that wait to be claimed",
                            [warm] { return static_cast<double>(warm->ready()); });
  registry.AddComputedCounter("caisson_warm_hits_total", "Creates that found a sandbox ready",
                              [warm] { return static_cast<double>(warm->hits()); });
  registry.AddComputedCounter("caisson_warm_misses_total",
                              "Creates that a ready sandbox would have served, had there been one",
                              [warm] { return static_cast<double>(warm->misses()); });
}

Status ListenAll(net::Server& server, const ServeOptions& options,
                 const std::shared_ptr<net::TlsServer>& tls) {
  for (const std::string& address : options.listen) {
    const bool plain = address.starts_with("unix:") || !tls;
    CAISSON_ASSIGN(const auto listening, server.Listen({address, plain ? nullptr : tls}));
    const std::string url = listening.address.starts_with("unix:")
                                ? listening.address
                                : (plain ? "http://" : "https://") + listening.address;
    WriteOut("listening on " + url + "\n");
  }
  return {};
}

// Until a signal asks for the end; then a calm one, and a faster one when asked again.
Task<void> ServeUntilAsked(async::Loop* loop, net::Server* server, async::Signals* signals,
                           std::chrono::milliseconds drain, log::Logger log) {
  (void)co_await signals->Next();
  log.Info("ending: running requests may finish", {{"seconds", drain}});
  auto first = co_await async::FirstOf(loop, async::Await(server->Drain(drain)), signals->Next());
  if (first.index() == 1) co_await server->Drain(std::chrono::milliseconds(200));
}

std::optional<std::string> Environment(std::string_view name) {
  const char* value = getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Task<Status> Serve(async::Loop* loop, ServeOptions options, log::Logger log) {
  async::Signals signals(*loop, {SIGTERM, SIGINT});
  CAISSON_CO_ASSIGN(const auto tls, MakeTls(options));
  CAISSON_CO_ASSIGN(auto admin_options, AdministrationOptions(options));
  CAISSON_CO_ASSIGN(auto otlp, telemetry::OtlpSettings::FromEnvironment(Environment));

  // State.
  CAISSON_CO_ASSIGN(auto store, store::Store::Open(*loop, options.data_dir));
  store::Blobs blobs(store->data_dir());
  async::ThreadPool disk(2);
  sandbox::StoreJournal journal(*store);
  sandbox::StoredKeeper keeper(*loop, *store, blobs, disk);
  CAISSON_CO_ASSIGN(const uint64_t number, co_await sandbox::EventArchive::NextNumber(store.get()));
  sandbox::EventBus events(*loop, sandbox::SystemTime, sandbox::EventBus::kDefaultCapacity, number);
  sandbox::EventArchive archive(*loop, events, *store, log);
  sandbox::CommandRecords commands(*loop, *store, log);
  telemetry::Registry registry;
  telemetry::Tracer tracer(otlp.sampler);

  // Who may use it.
  CAISSON_CO_ASSIGN(auto admin,
                    co_await api::Administration::Create({*loop, log, events, *store, registry},
                                                         std::move(admin_options)));
  if (options.auth == ServeAuth::kKeys)
    CAISSON_CO_TRY(co_await WriteFirstKey(admin.get(), &store->data_dir(), log));

  // Sessions.
  CAISSON_CO_ASSIGN(auto provider, co_await native::NativeProvider::Open(
                                       loop, PathsIn(options.data_dir), native::Keeping::kKeep));
  CAISSON_CO_ASSIGN(const auto boot_id, sandbox::BootId());
  const std::string data_dir = options.data_dir;
  sandbox::Admission admission(
      *loop, {.max_sessions = static_cast<size_t>(options.max_sessions)},
      [data_dir] { return sandbox::ReadHeadroom(data_dir); }, &admin->quotas());
  const sandbox::SessionManager* busy = nullptr;
  sandbox::WarmPool warm(
      *loop, admission, [&busy] { return busy != nullptr && busy->creating() > 0; },
      {.ceiling = static_cast<size_t>(options.warm_ceiling), .environments = EnvironmentNames()});
  sandbox::SessionManager sessions({.loop = *loop,
                                    .events = events,
                                    .journal = journal,
                                    .admission = admission,
                                    .providers = {provider.get()},
                                    .warm = &warm,
                                    .keeper = &keeper,
                                    .commands = &commands},
                                   {.default_provider = options.provider,
                                    .environments = EnvironmentNames(),
                                    .min_isolation = options.min_isolation,
                                    .default_memory_bytes = options.memory_limit,
                                    .default_cpu_millis = options.cpu_limit,
                                    .boot_id = boot_id});
  busy = &sessions;
  api::ServerMetrics metrics(registry, sessions);
  ShowPool(registry, warm);
  telemetry::AddHostMetrics(registry, {.disk = options.data_dir});
  CAISSON_CO_ASSIGN(auto rules, ReadAlertRules(options.alert_rules, registry));
  CAISSON_CO_TRY(co_await admin->Begin(&sessions, std::move(rules)));
  CAISSON_CO_TRY(co_await sessions.Start());
  sandbox::SessionScaler scaler(
      *loop, sessions.sessions(),
      [&sessions](std::shared_ptr<sandbox::Session> session, sandbox::Limits limits) {
        return sessions.SetLimits(std::move(session), limits);
      },
      {});
  sandbox::Retention retention(
      {.loop = *loop, .store = *store, .blobs = blobs, .disk = disk, .log = log},
      options.retention);
  retention.Start();
  if (options.warm_ready > 0)
    warm.KeepReady(*provider, {}, static_cast<size_t>(options.warm_ready));

  // The surface.
  api::ServerInfo info{.version = CAISSON_VERSION};
  const auto routes = api::AllRoutes();
  const auto schemas = api::AllSchemas();
  CAISSON_CO_ASSIGN(info.openapi, api::OpenApiDocument(routes, schemas, CAISSON_VERSION));
  info.docs = api::DocsPage(routes, schemas, CAISSON_VERSION);
  const api::Keepings kept{blobs, disk, keeper, keeper.log()};
  CAISSON_CO_ASSIGN(const auto master, auth::LoadOrMakeSecret(store->data_dir(), "master.secret"));
  const auth::SignedUrls signed_urls(master);
  api::Services services{.loop = *loop,
                         .log = log,
                         .info = info,
                         .metrics = metrics,
                         .sessions = sessions,
                         .events = events,
                         .store = *store,
                         .keys = admin->keys(),
                         .tokens = admin->tokens(),
                         .allowances = admin->allowances(),
                         .streams = admin->streams(),
                         .usage = admin->usage(),
                         .webhooks = admin->webhooks(),
                         .alerts = admin->alerts(),
                         .tracer = tracer,
                         .archive = &archive,
                         .commands = &commands,
                         .kept = &kept,
                         .signed_urls = &signed_urls};
  net::Fetcher collector(*loop, net::AnyAddress, 1);
  api::FetchSpanSink spans(collector, otlp.endpoint, otlp.headers);
  async::TaskSet exporting(*loop);
  if (!otlp.endpoint.empty())
    exporting.Spawn(
        telemetry::ExportSpans(loop, &tracer, &spans, std::move(otlp), CAISSON_VERSION, {}, &log));
  CAISSON_CO_ASSIGN(auto dispatcher, api::Dispatcher::Create(services, admin->gate(), routes));
  net::Server server(
      *loop,
      {.max_connections = static_cast<size_t>(options.max_connections),
       .idle_timeout = options.connection_timeout},
      [&dispatcher](net::Exchange* exchange) { return dispatcher->Handle(exchange); });
  info.draining = [&server] { return server.draining(); };
  CAISSON_CO_TRY(ListenAll(server, options, tls));

  co_await ServeUntilAsked(loop, &server, &signals, options.drain, log);

  // Sandboxes live on in the launcher, for the next server.
  co_await warm.Close();
  co_await sessions.Close(std::chrono::seconds(10));
  co_await keeper.log().Flush();
  co_await events.Settled();
  co_return co_await admin->Close();
}

}  // namespace

Result<int> RunServe(const Parsed& parsed) {
  CAISSON_ASSIGN(ServeOptions options, ReadServeOptions(parsed));
  if (options.data_dir.empty())
    options.data_dir = native::LauncherPaths::FromEnvironment().state_dir;
  CAISSON_ASSIGN(options.data_dir, Absolute(std::move(options.data_dir)));
  RaiseDescriptorLimit();
  log::StreamSink sink(STDERR_FILENO, log::FormatFor(STDERR_FILENO));
  const log::Logger log(sink, options.log_level);
  async::Loop loop;
  CAISSON_TRY(loop.RunUntilDone(Serve(&loop, std::move(options), log)));
  return 0;
}

}  // namespace caisson::cli
