#include "providers/native/rpc_channel.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <random>

namespace caisson::native {

namespace asio = boost::asio;
constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);

namespace {
Error Unavailable() {
  return Error(ErrorCode::kUnavailable, "the helper process behind the sandbox has gone")
      .WithRemedy("look at its messages, then try again");
}
}  // namespace

std::shared_ptr<RpcChannel> RpcChannel::Create(asio::any_io_executor executor, sys::UniqueFd socket,
                                               Descriptors descriptors) {
  return std::shared_ptr<RpcChannel>(
      new RpcChannel(std::move(executor), std::move(socket), descriptors));
}

RpcChannel::RpcChannel(asio::any_io_executor executor, sys::UniqueFd socket,
                       Descriptors descriptors)
    : executor_(executor),
      socket_(executor, socket.Release()),
      descriptors_(descriptors),
      last_tag_(std::random_device()()) {
  (void)sys::SetNonBlocking(socket_.native_handle());
}

void RpcChannel::Start(std::function<void(const wire::Header&, const sys::Packet&)> on_event,
                       std::function<void()> on_closed) {
  on_event_ = std::move(on_event);
  on_closed_ = std::move(on_closed);
  // The loop keeps the channel alive until it is closed.
  asio::co_spawn(
      executor_,
      [](std::shared_ptr<RpcChannel> self) -> Task<void> {
        co_await self->ReadLoop();
      }(shared_from_this()),
      asio::detached);
}

void RpcChannel::Close() {
  if (closed_) return;
  on_event_ = nullptr;
  on_closed_ = nullptr;
  Fail();
}

uint32_t RpcChannel::NextTag() {
  do ++last_tag_;
  while (last_tag_ == 0 || pending_.contains(last_tag_));
  return last_tag_;
}

Status RpcChannel::SendNow(std::string bytes) {
  if (closed_) return Unavailable();
  if (!backlog_.empty()) {
    backlog_.push_back(std::move(bytes));
    return {};
  }
  const auto state = sys::SendPacket(socket_.native_handle(), bytes, {});
  if (state == sys::PacketState::kOk) return {};
  if (state != sys::PacketState::kWouldBlock) {
    Fail();
    return Unavailable();
  }
  backlog_.push_back(std::move(bytes));
  asio::co_spawn(
      executor_,
      [](std::shared_ptr<RpcChannel> self) -> Task<void> {
        co_await self->FlushBacklog();
      }(shared_from_this()),
      asio::detached);
  return {};
}

Task<void> RpcChannel::FlushBacklog() {
  auto self = shared_from_this();
  while (!closed_ && !backlog_.empty()) {
    const auto state = sys::SendPacket(socket_.native_handle(), backlog_.front(), {});
    if (state == sys::PacketState::kOk)
      backlog_.pop_front();
    else if (state != sys::PacketState::kWouldBlock || !co_await WaitWritable())
      co_return;
  }
}

Task<Status> RpcChannel::WaitWritable() {
  auto [error] = co_await socket_.async_wait(asio::posix::descriptor_base::wait_write, kTuple);
  if (error) co_return Unavailable();
  co_return Status();
}

Task<Result<sys::Packet>> RpcChannel::Exchange(uint32_t tag, std::string bytes,
                                               std::vector<int> fds) {
  auto self = shared_from_this();
  if (bytes.size() > wire::kMaxFrame)
    co_return Error(
        ErrorCode::kInvalidArgument,
        "the request is larger than " + std::to_string(wire::kMaxFrame / 1024) + " KiB");
  if (closed_) co_return Unavailable();
  auto pending = std::make_shared<Pending>();
  pending_[tag] = pending;
  for (;;) {
    const auto state =
        closed_ ? sys::PacketState::kClosed : sys::SendPacket(socket_.native_handle(), bytes, fds);
    // When the other end has gone, the reader takes in its last words and then ends every request.
    if (state != sys::PacketState::kWouldBlock) break;
    if (!co_await WaitWritable()) {
      pending_.erase(tag);
      co_return Unavailable();
    }
  }
  if (closed_) co_return Unavailable();
  co_return co_await Finish(std::move(pending));
}

Task<Result<sys::Packet>> RpcChannel::Finish(std::shared_ptr<Pending> pending) {
  auto self = shared_from_this();
  co_await pending->done.Wait();
  if (!pending->answered) co_return Unavailable();
  co_return std::move(pending->packet);
}

Task<void> RpcChannel::ReadLoop() {
  auto self = shared_from_this();
  while (!closed_) {
    auto received = descriptors_ == Descriptors::kAccept
                        ? sys::ReceivePacket(socket_.native_handle(), wire::kMaxFrame)
                        : sys::ReceivePlainPacket(socket_.native_handle(), wire::kMaxFrame);
    if (received.state == sys::PacketState::kWouldBlock) {
      auto [error] = co_await socket_.async_wait(asio::posix::descriptor_base::wait_read, kTuple);
      if (error) break;
      continue;
    }
    const auto header = received.state == sys::PacketState::kOk
                            ? wire::PeekHeader(received.packet.bytes)
                            : std::nullopt;
    if (!header) break;
    if (header->tag == 0) {
      if (on_event_) on_event_(*header, received.packet);
      continue;
    }
    const auto found = pending_.find(header->tag);
    if (found == pending_.end()) continue;  // an answer to nobody: of a former owner
    found->second->packet = std::move(received.packet);
    found->second->answered = true;
    found->second->done.Set(executor_);
    pending_.erase(found);
  }
  if (!closed_) Fail();
}

void RpcChannel::Fail() {
  closed_ = true;
  sys::UniqueFd(socket_.release()).Reset();  // what waits for it is told that it was cancelled
  for (auto& [tag, pending] : std::exchange(pending_, {})) pending->done.Set(executor_);
  if (auto closed = std::exchange(on_closed_, nullptr)) closed();
}

}  // namespace caisson::native
