// Services: what the routes work with. Wired in cli/serve; all of it outlives the net::Server.
#pragma once

#include "api/server_info.h"
#include "api/server_metrics.h"
#include "async/loop.h"
#include "async/thread_pool.h"
#include "auth/session_token.h"
#include "log/logger.h"
#include "sandbox/event_bus.h"
#include "sandbox/session_keeper.h"
#include "sandbox/session_log.h"
#include "sandbox/session_manager.h"
#include "store/blobs.h"
#include "store/store.h"
#include "telemetry/trace.h"

namespace caisson::auth {
class KeyRing;
class SessionTokens;
}  // namespace caisson::auth

namespace caisson::sandbox {
class CommandRecords;
class EventArchive;
}  // namespace caisson::sandbox

namespace caisson::api {

class AlertWatch;
class Allowances;
class OpenStreams;
class UsageRecorder;
class WebhookSender;

// What outlives sessions, and what keeps it.
struct Keepings {
  store::Blobs& blobs;
  async::ThreadPool& disk;  // for what blocks on blobs
  sandbox::SessionKeeper& keeper;
  sandbox::SessionLog& log;
};

struct Services {
  async::Loop& loop;
  log::Logger log;
  const ServerInfo& info;
  ServerMetrics& metrics;
  sandbox::SessionManager& sessions;
  sandbox::EventBus& events;
  store::Store& store;
  auth::KeyRing& keys;
  const auth::SessionTokens& tokens;
  Allowances& allowances;
  OpenStreams& streams;
  UsageRecorder& usage;
  WebhookSender& webhooks;
  AlertWatch& alerts;
  telemetry::Tracer& tracer;
  sandbox::EventArchive* archive = nullptr;       // null: events are known while the server lives
  sandbox::CommandRecords* commands = nullptr;    // null: ended commands are soon forgotten
  const Keepings* kept = nullptr;                 // null: nothing outlives a session
  const auth::SignedUrls* signed_urls = nullptr;  // null: none are given out
};

}  // namespace caisson::api
