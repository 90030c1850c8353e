// /api/sessions/{id}/exec: commands, waited for, streamed, or in the background; and what is done
// to one that runs.
#include <signal.h>

#include "api/call.h"
#include "api/process_stream.h"
#include "api/routes.h"
#include "api/services.h"
#include "api/session_input.h"
#include "api/session_json.h"
#include "async/race.h"
#include "base/encoding.h"
#include "net/websocket.h"
#include "sandbox/command_records.h"

namespace caisson::api {
namespace {

using auth::Resource;
using auth::Verb;
using FeedPtr = std::shared_ptr<sandbox::ProcessFeed>;

class SubscriptionSource final : public FeedSource {
 public:
  explicit SubscriptionSource(std::unique_ptr<sandbox::ProcessFeed::Subscription> subscription)
      : subscription_(std::move(subscription)) {}
  Task<std::optional<sandbox::FeedItem>> Next() override { return subscription_->Next(); }

 private:
  std::unique_ptr<sandbox::ProcessFeed::Subscription> subscription_;
};

class ForegroundSource final : public FeedSource {
 public:
  explicit ForegroundSource(sandbox::ForegroundExec& exec) : exec_(exec) {}
  Task<std::optional<sandbox::FeedItem>> Next() override { return exec_.Next(); }

 private:
  sandbox::ForegroundExec& exec_;
};

Task<Result<std::shared_ptr<sandbox::Session>>> SessionOf(Call* call) {
  return call->services().sessions.Get(call->access(), call->Param("id"));
}

// Runs to the end, unless the client goes before: then the command goes with it.
Task<Result<Reply>> ExecAndWait(Call* call, std::shared_ptr<sandbox::Session> session,
                                sandbox::ExecRequest request) {
  const Stopwatch watch;
  auto first = co_await async::FirstOf(&call->services().loop, session->Exec(std::move(request)),
                                       async::WaitFor(&call->exchange().closed()));
  if (first.index() == 1) co_return Reply::Streamed();
  auto report = std::get<0>(std::move(first));
  if (!report) co_return std::move(report).error();
  call->services().metrics.Ran(session->record(), watch.elapsed());
  co_return Reply::Json(200, ToJson(*report));
}

// The answer that would name kept files is the one that waits.
Status CheckStreamed(const sandbox::ExecRequest& request) {
  if (request.artifacts.empty()) return {};
  return Error(ErrorCode::kInvalidArgument, "artifacts: cannot be kept for a streamed command")
      .WithRemedy("declare them for the session, or wait for the command");
}

Task<Result<Reply>> Exec(Call* call) {
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  CAISSON_CO_ASSIGN(ExecInput input, ReadExec(body));
  CAISSON_CO_ASSIGN(auto session, co_await SessionOf(call));
  telemetry::Span span = call->Trace("exec");  // never the command: it may hold secrets
  span.Set("caisson.session_id", session->id());
  if (input.manner == ExecManner::kBackground) {
    if (!input.request.input.empty())
      co_return Error(ErrorCode::kInvalidArgument, "stdin: a background command has none")
          .WithRemedy("ask for \"stdin_open\" and send input to the process");
    CAISSON_CO_ASSIGN(const FeedPtr process,
                      co_await session->Start(std::move(input.request.spec)));
    co_return net::Response::Json(202, json::Write(ToJson(*process)))
        .WithHeader("Location", "/api/sessions/" + session->id() + "/processes/" +
                                    std::to_string(process->handle()));
  }
  const auto kind = WantedStream(call->request());
  if (!kind) co_return co_await ExecAndWait(call, session, std::move(input.request));
  CAISSON_CO_TRY(CheckStreamed(input.request));
  CAISSON_CO_ASSIGN(auto exec, co_await session->StartForeground(std::move(input.request)));
  ForegroundSource source(*exec);
  co_return co_await StreamProcess(call, *kind, &exec->process(), &source);
}

// A WebSocket whose first message is what POST …/exec takes.
Task<Result<Reply>> ExecSocket(Call* call) {
  CAISSON_CO_ASSIGN(auto session, co_await SessionOf(call));
  CAISSON_CO_TRY(session->MustBeRunning());
  CAISSON_CO_ASSIGN(auto socket, co_await call->exchange().Upgrade({}));
  auto first = co_await async::WithTimeout(&call->services().loop, std::chrono::seconds(30),
                                           socket->Receive());
  if (!first || !*first || (*first)->kind != net::WsMessage::Kind::kText) {
    (void)co_await socket->Close(1008, "the first message must be a command as JSON");
    co_return Reply::Streamed();
  }
  auto body = json::Parse((*first)->data);
  auto input = body ? ReadExec(*body) : Result<ExecInput>(body.error());
  if (input && input->manner == ExecManner::kBackground)
    input = Error(ErrorCode::kInvalidArgument, "background: a WebSocket stays with its command")
                .WithRemedy("use POST for background commands");
  if (input)
    if (auto fits = CheckStreamed(input->request); !fits) input = std::move(fits).error();
  if (input && input->request.input.empty())
    input->request.spec.stdin_kind = sandbox::StdinKind::kOpen;
  auto exec = input ? co_await session->StartForeground(std::move(input->request))
                    : Result<std::unique_ptr<sandbox::ForegroundExec>>(input.error());
  if (!exec) {
    json::Object event{{"type", "error"},
                       {"code", exec.error().name()},
                       {"detail", exec.error().message()},
                       {"remediation", exec.error().remedy()}};
    (void)co_await socket->SendText(json::Write(event));
    (void)co_await socket->Close(1008, "the command could not be started");
    co_return Reply::Streamed();
  }
  ForegroundSource source(**exec);
  co_return co_await ServeProcessSocket(call, (*exec)->process().shared_from_this(), &source,
                                        socket.get());
}

Task<Result<FeedPtr>> ProcessOf(Call* call) {
  CAISSON_CO_ASSIGN(auto session, co_await SessionOf(call));
  CAISSON_CO_ASSIGN(const uint32_t handle, ParseHandle(call->Param("process")));
  auto process = session->FindProcess(handle);
  if (process || call->services().commands == nullptr) co_return process;
  CAISSON_CO_ASSIGN(const auto record,
                    co_await call->services().commands->Find(session->id(), handle));
  if (!record) co_return process;
  co_return Error(ErrorCode::kGone, "process " + std::to_string(handle) +
                                        " has ended, and its output is no longer at hand")
      .WithRemedy("read the session's logs, or GET the process for how it ended");
}

// The same for those who act on it: in a paused sandbox nobody would answer.
Task<Result<FeedPtr>> RunningProcessOf(Call* call) {
  CAISSON_CO_ASSIGN(auto session, co_await SessionOf(call));
  CAISSON_CO_TRY(session->MustBeRunning());
  co_return co_await ProcessOf(call);
}

Task<Result<Reply>> SignalProcess(Call* call) {
  constexpr json::Choice<sandbox::SignalScope> kScopes[] = {
      {"process", sandbox::SignalScope::kProcess},
      {"group", sandbox::SignalScope::kGroup},
      {"tree", sandbox::SignalScope::kTree}};
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  json::Reader in(body);
  const json::Value* signal = in.Any("signal");
  const auto scope =
      in.OptionalEnum<sandbox::SignalScope>("scope", kScopes).value_or(sandbox::SignalScope::kTree);
  CAISSON_CO_TRY(in.Finish());
  CAISSON_CO_ASSIGN(const int number,
                    SignalFrom(signal == nullptr ? json::Value("SIGTERM") : *signal));
  CAISSON_CO_ASSIGN(const FeedPtr process, co_await RunningProcessOf(call));
  CAISSON_CO_TRY(co_await process->Signal(number, scope));
  co_return Reply::Nothing();
}

Task<Result<Reply>> ProcessInput(Call* call) {
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  json::Reader in(body);
  const auto text = in.Optional<std::string>("data");
  const auto encoded = in.Optional<std::string>("data_base64");
  const bool eof = in.Optional<bool>("eof").value_or(false);
  CAISSON_CO_TRY(in.Finish());
  std::optional<std::string> bytes = text;
  if (encoded && !(bytes = FromBase64(*encoded)))
    co_return Error(ErrorCode::kInvalidArgument, "data_base64: is not base64")
        .WithRemedy("encode it as RFC 4648 has it");
  CAISSON_CO_ASSIGN(const FeedPtr process, co_await RunningProcessOf(call));
  if (bytes && !bytes->empty()) CAISSON_CO_TRY(co_await process->Write(*std::move(bytes)));
  // One that is closed already, or whose command has ended, is as it was asked for.
  if (eof) {
    if (auto closed = co_await process->CloseStdin();
        !closed && closed.error().code() != ErrorCode::kConflict &&
        closed.error().code() != ErrorCode::kGone)
      co_return std::move(closed).error();
  }
  co_return Reply::Nothing();
}

Task<Result<Reply>> ResizeProcess(Call* call) {
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  json::Reader in(body);
  const auto rows = in.Required<uint32_t>("rows", {.min = 1, .max = 1000});
  const auto cols = in.Required<uint32_t>("cols", {.min = 1, .max = 1000});
  CAISSON_CO_TRY(in.Finish());
  CAISSON_CO_ASSIGN(const FeedPtr process, co_await RunningProcessOf(call));
  CAISSON_CO_TRY(
      co_await process->Resize(static_cast<uint16_t>(rows), static_cast<uint16_t>(cols)));
  co_return Reply::Nothing();
}

// Kills a running command with its whole tree; forgets one that has ended.
Task<Result<Reply>> RemoveProcess(Call* call) {
  CAISSON_CO_ASSIGN(auto session, co_await SessionOf(call));
  CAISSON_CO_ASSIGN(const uint32_t handle, ParseHandle(call->Param("process")));
  CAISSON_CO_TRY(session->MustBeRunning());
  CAISSON_CO_ASSIGN(const FeedPtr process, session->FindProcess(handle));
  if (!process->outcome()) {
    if (auto killed = co_await process->Signal(SIGKILL, sandbox::SignalScope::kTree);
        !killed && killed.error().code() != ErrorCode::kGone)
      co_return std::move(killed).error();
    co_return Reply::Nothing();
  }
  CAISSON_CO_TRY(co_await session->Release(handle));
  co_return Reply::Nothing();
}

Result<sandbox::FeedOffsets> OffsetsOf(const Call& call) {
  CAISSON_ASSIGN(const auto out, call.QueryInteger("stdout_from", 0, INT64_MAX));
  CAISSON_ASSIGN(const auto err, call.QueryInteger("stderr_from", 0, INT64_MAX));
  return sandbox::FeedOffsets{static_cast<uint64_t>(out.value_or(0)),
                              static_cast<uint64_t>(err.value_or(0))};
}

// What there is now, when no stream is asked for.
json::Object OutputNow(const sandbox::ProcessFeed& process,
                       sandbox::ProcessFeed::Subscription& subscription) {
  json::Object answer = ToJson(process);
  std::string out, err;
  json::Array gaps;
  while (auto item = subscription.Poll()) {
    if (auto* chunk = std::get_if<sandbox::OutputChunk>(&*item))
      (chunk->stream == sandbox::Stream::kStdout ? out : err) += chunk->data;
    else if (auto* gap = std::get_if<sandbox::OutputGap>(&*item))
      gaps.push_back({{"stream", gap->stream == sandbox::Stream::kStdout ? "stdout" : "stderr"},
                      {"from", gap->from},
                      {"to", gap->to}});
  }
  AddOutput(answer, "stdout", out);
  AddOutput(answer, "stderr", err);
  answer["gaps"] = std::move(gaps);
  return answer;
}

Task<Result<Reply>> ProcessOutput(Call* call) {
  CAISSON_CO_ASSIGN(const auto from, OffsetsOf(*call));
  CAISSON_CO_ASSIGN(const FeedPtr process, co_await ProcessOf(call));
  auto subscription = process->Subscribe(sandbox::Pace::kFollows, from);
  const auto kind = WantedStream(call->request());
  if (!kind) co_return Reply::Json(200, OutputNow(*process, *subscription));
  SubscriptionSource source(std::move(subscription));
  co_return co_await StreamProcess(call, *kind, process.get(), &source);
}

Task<Result<Reply>> AttachSocket(Call* call) {
  CAISSON_CO_ASSIGN(const auto from, OffsetsOf(*call));
  CAISSON_CO_ASSIGN(const FeedPtr process, co_await ProcessOf(call));
  CAISSON_CO_ASSIGN(auto socket, co_await call->exchange().Upgrade({}));
  SubscriptionSource source(process->Subscribe(sandbox::Pace::kFollows, from));
  co_return co_await ServeProcessSocket(call, process, &source, socket.get());
}

const std::vector<Parameter>& OffsetParameters() {
  static const std::vector<Parameter> parameters = {
      {"stdout_from", "Offset", "Begin at this byte of stdout; default 0"},
      {"stderr_from", "Offset", "Begin at this byte of stderr; default 0"}};
  return parameters;
}

}  // namespace

void AddExecRoutes(std::vector<Route>& routes) {
  const auto add = [&](Route route) { routes.push_back(std::move(route)); };
  add({.method = "POST",
       .pattern = "/api/sessions/{id}/exec",
       .permission = {Verb::kExecute, Resource::kProcesses},
       .handler = Exec,
       .id = "exec",
       .group = "processes",
       .summary =
           "Run a command: wait for it, stream it (by Accept), or leave it in the background",
       .request = "Exec",
       .outcomes = {{200, "ExecResult"},
                    {200, "", "text/event-stream"},
                    {200, "", "application/x-ndjson"},
                    {202, "Process"}},
       .cost = Cost::kExec,
       .audited = Audited::kAlways});
  add({.method = "GET",
       .pattern = "/api/sessions/{id}/exec",
       .permission = {Verb::kExecute, Resource::kProcesses},
       .handler = ExecSocket,
       .id = "execSocket",
       .group = "processes",
       .summary = "Run a command over a WebSocket; the first message is the command",
       .outcomes = {{101, ""}},
       .cost = Cost::kExec,
       .audited = Audited::kAlways});
  add({.method = "GET",
       .pattern = "/api/sessions/{id}/processes/{process}/output",
       .permission = {Verb::kRead, Resource::kProcesses},
       .handler = ProcessOutput,
       .id = "processOutput",
       .group = "processes",
       .summary = "A command's output from an offset: what there is now, or a stream (by Accept)",
       .outcomes = {{200, "ProcessOutput"},
                    {200, "", "text/event-stream"},
                    {200, "", "application/x-ndjson"}},
       .parameters = OffsetParameters()});
  add({.method = "GET",
       .pattern = "/api/sessions/{id}/processes/{process}/attach",
       .permission = {Verb::kExecute, Resource::kProcesses},
       .handler = AttachSocket,
       .id = "attachProcess",
       .group = "processes",
       .summary = "A command's output and input over a WebSocket, from an offset",
       .outcomes = {{101, ""}},
       .parameters = OffsetParameters(),
       .audited = Audited::kAlways});
  add({.method = "POST",
       .pattern = "/api/sessions/{id}/processes/{process}/signal",
       .permission = {Verb::kExecute, Resource::kProcesses},
       .handler = SignalProcess,
       .id = "signalProcess",
       .group = "processes",
       .summary = "Send a signal to a command's tree, group or first process",
       .request = "Signal",
       .outcomes = {{204, ""}},
       .audited = Audited::kAlways});
  add({.method = "POST",
       .pattern = "/api/sessions/{id}/processes/{process}/input",
       .permission = {Verb::kExecute, Resource::kProcesses},
       .handler = ProcessInput,
       .id = "processInput",
       .group = "processes",
       .summary = "Write to a command's stdin, and close it if wanted",
       .request = "Input",
       .outcomes = {{204, ""}}});
  add({.method = "POST",
       .pattern = "/api/sessions/{id}/processes/{process}/resize",
       .permission = {Verb::kExecute, Resource::kProcesses},
       .handler = ResizeProcess,
       .id = "resizeProcess",
       .group = "processes",
       .summary = "Tell a command's terminal its new size",
       .request = "Resize",
       .outcomes = {{204, ""}}});
  add({.method = "DELETE",
       .pattern = "/api/sessions/{id}/processes/{process}",
       .permission = {Verb::kDelete, Resource::kProcesses},
       .handler = RemoveProcess,
       .id = "removeProcess",
       .group = "processes",
       .summary = "Kill a command with its whole tree; forget one that has ended",
       .outcomes = {{204, ""}},
       .audited = Audited::kAlways});
}

}  // namespace caisson::api
