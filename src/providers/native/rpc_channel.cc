#include "providers/native/rpc_channel.h"

#include "base/random.h"

namespace caisson::native {

namespace {
Error Unavailable() {
  return Error(ErrorCode::kUnavailable, "the helper process behind the sandbox has gone")
      .WithRemedy("look at its messages, then try again");
}
}  // namespace

std::shared_ptr<RpcChannel> RpcChannel::Create(async::Loop& loop, sys::UniqueFd socket,
                                               Descriptors descriptors) {
  return std::shared_ptr<RpcChannel>(new RpcChannel(loop, std::move(socket), descriptors));
}

RpcChannel::RpcChannel(async::Loop& loop, sys::UniqueFd socket, Descriptors descriptors)
    : loop_(loop),
      socket_(std::move(socket)),
      watch_(loop, socket_.get()),
      descriptors_(descriptors),
      last_tag_(static_cast<uint32_t>(RandomNumber())),
      tasks_(loop) {
  (void)sys::SetNonBlocking(socket_.get());
}

void RpcChannel::Start(std::function<void(const wire::Header&, const sys::Packet&)> on_event,
                       std::function<void()> on_closed) {
  on_event_ = std::move(on_event);
  on_closed_ = std::move(on_closed);
  tasks_.Spawn(ReadLoop());
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
  const auto state = sys::SendPacket(socket_.get(), bytes, {});
  if (state == sys::PacketState::kOk) return {};
  if (state != sys::PacketState::kWouldBlock) {
    Fail();
    return Unavailable();
  }
  backlog_.push_back(std::move(bytes));
  tasks_.Spawn(FlushBacklog());
  return {};
}

Task<void> RpcChannel::FlushBacklog() {
  while (!closed_ && !backlog_.empty()) {
    const auto state = sys::SendPacket(socket_.get(), backlog_.front(), {});
    if (state == sys::PacketState::kOk)
      backlog_.pop_front();
    else if (state == sys::PacketState::kWouldBlock)
      co_await watch_.Writable();
    else
      co_return;  // the reader sees it too
  }
}

Task<Result<sys::Packet>> RpcChannel::Exchange(uint32_t tag, std::string bytes,
                                               std::vector<int> fds) {
  auto self = shared_from_this();
  if (bytes.size() > wire::kMaxFrame)
    co_return Error(
        ErrorCode::kInvalidArgument,
        "the request is larger than " + std::to_string(wire::kMaxFrame / 1024) + " KiB");
  if (closed_) co_return Unavailable();
  auto pending = std::make_shared<Pending>(loop_);
  pending_[tag] = pending;
  for (;;) {
    const auto state =
        closed_ ? sys::PacketState::kClosed : sys::SendPacket(socket_.get(), bytes, fds);
    // When the other end has gone, the reader takes in its last words and then ends every request.
    if (state != sys::PacketState::kWouldBlock) break;
    co_await watch_.Writable();
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
  while (!closed_) {
    auto received = descriptors_ == Descriptors::kAccept
                        ? sys::ReceivePacketAsFits(socket_.get(), wire::kMaxFrame)
                        : sys::ReceivePlainPacket(socket_.get(), wire::kMaxFrame);
    if (received.state == sys::PacketState::kWouldBlock) {
      co_await watch_.Readable();
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
    found->second->done.Set();
    pending_.erase(found);
  }
  if (!closed_) Fail();
}

void RpcChannel::Fail() {
  closed_ = true;
  // Closed, not shut down: the launcher holds the same socket for the next owner.
  watch_.Close();
  socket_.Reset();
  for (auto& [tag, pending] : std::exchange(pending_, {})) pending->done.Set();
  if (auto closed = std::exchange(on_closed_, nullptr)) closed();
}

}  // namespace caisson::native
