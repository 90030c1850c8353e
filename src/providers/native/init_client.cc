#include "providers/native/init_client.h"

#include <cerrno>

#include "base/random.h"

namespace caisson::native {

namespace w = wire::init;

Task<Result<std::unique_ptr<InitClient>>> InitClient::Open(async::Loop* loop, sys::UniqueFd control,
                                                           std::vector<w::Rlimit> rlimits) {
  std::unique_ptr<InitClient> client(new InitClient(*loop));
  client->channel_ =
      RpcChannel::Create(*loop, std::move(control), RpcChannel::Descriptors::kRefuse);
  auto* raw = client.get();
  client->channel_->Start([raw](const wire::Header& header,
                                const sys::Packet& packet) { raw->OnEvent(header, packet); },
                          [raw] { raw->MarkLost(); });
  w::Hello hello;
  hello.epoch = RandomNumber();
  const bool limits = !rlimits.empty();
  // Both go out at once: one round trip.
  auto greeting = raw->channel_->Begin(hello);
  auto defaults = limits ? raw->channel_->Begin(w::UpdateDefaults{std::move(rlimits)}) : nullptr;
  auto packet = co_await raw->channel_->Finish(greeting);
  if (!packet) co_return std::move(packet).error();
  auto reply = ParseReply<w::HelloReply, w::Failed>(*packet, ToError);
  if (!reply) co_return std::move(reply).error();
  if (reply->epoch != hello.epoch)
    co_return Error(ErrorCode::kProtocol, "the sandbox's init answered for another owner");
  if (limits) {
    auto set = co_await raw->channel_->Finish(defaults);
    if (!set) co_return std::move(set).error();
    auto done = ParseReply<w::Done, w::Failed>(*set, ToError);
    if (!done) co_return std::move(done).error();
  }
  // What was queued for a former owner has been taken for ours so far.
  raw->processes_.clear();
  raw->watches_.clear();
  co_return client;
}

InitClient::~InitClient() {
  channel_->Close();
  MarkLost();
}

Error InitClient::ToError(const w::Failed& failed) {
  // Init says in words what it refused; an errno alone gets its text.
  Error error = failed.what.empty() ? Error::FromErrno("the sandbox refused", failed.error_number)
                                    : Error(ErrorCode::kIo, failed.what);
  switch (failed.error_number) {
    case ENOENT:
      return std::move(error).WithCode(ErrorCode::kNotFound);
    case ESRCH:
      return std::move(error).WithCode(ErrorCode::kGone);
    case EACCES:
    case EPERM:
    case EROFS:
      return std::move(error).WithCode(ErrorCode::kPermissionDenied);
    case EEXIST:
    case EBUSY:
    case ENOTEMPTY:
    case EPIPE:
    case ENOTTY:
    case ETXTBSY:
      return std::move(error).WithCode(ErrorCode::kConflict);
    case EINVAL:
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENXIO:
      return std::move(error).WithCode(ErrorCode::kInvalidArgument);
    case EXDEV:
      return std::move(error)
          .WithCode(ErrorCode::kInvalidArgument)
          .WithRemedy("copy it to the other file system, and remove it here");
    case ENOSPC:
    case EMFILE:
    case EDQUOT:
    case EAGAIN:
      return std::move(error).WithCode(ErrorCode::kResourceExhausted);
    default:
      return error;
  }
}

std::shared_ptr<ProcessState> InitClient::StateOf(uint32_t process) {
  auto& state = processes_[process];
  if (!state) state = std::make_shared<ProcessState>(loop_);
  return state;
}

std::shared_ptr<WatchState> InitClient::WatchOf(uint32_t watch) {
  auto& state = watches_[watch];
  if (!state) state = std::make_shared<WatchState>(loop_);
  return state;
}

void InitClient::OnEvent(const wire::Header& header, const sys::Packet& packet) {
  switch (static_cast<w::Type>(header.type)) {
    case w::Type::kOutput:
      if (auto output = wire::Decode<w::Output>(packet.bytes)) {
        // Credit bounds what can be queued here.
        auto state = StateOf(output->process);
        state->output.push_back(*std::move(output));
        state->changed.Set();
      }
      break;
    case w::Type::kExited:
      if (auto exited = wire::Decode<w::Exited>(packet.bytes)) {
        auto state = StateOf(exited->process);
        state->exited = *exited;
        state->changed.Set();
      }
      break;
    case w::Type::kWatchEvent:
      if (auto event = wire::Decode<w::WatchEvent>(packet.bytes)) {
        auto state = WatchOf(event->watch);
        if (state->events.size() < 4096)
          state->events.push_back(*std::move(event));
        else
          state->events.back().change = w::Change::kOverflow;
        state->changed.Set();
      }
      break;
    default:
      break;  // nothing else comes without being asked for
  }
}

void InitClient::MarkLost() {
  for (auto& [handle, state] : processes_) {
    state->lost = true;
    state->changed.Set();
  }
  for (auto& [handle, state] : watches_) {
    state->lost = true;
    state->changed.Set();
  }
}

}  // namespace caisson::native
