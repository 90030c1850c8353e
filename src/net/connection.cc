#include "net/connection.h"

#include <algorithm>
#include <exception>

#include "base/text.h"
#include "net/websocket_handshake.h"

namespace caisson::net {
namespace {

constexpr uint64_t kMaxDiscard = 65536;  // of a body that the handler left; more closes
constexpr size_t kMaxLinger = 1 << 20;
constexpr std::chrono::seconds kLingerTime(2);

bool IsFraming(std::string_view name) {
  for (const std::string_view ours : {"content-length", "transfer-encoding", "connection", "date"})
    if (EqualsIgnoringCase(name, ours)) return true;
  return false;
}

bool HasNoBody(int status) { return status < 200 || status == 204 || status == 304; }

Error WrongOrder(std::string_view what) {
  return {ErrorCode::kInternal, Concat({"the handler ", what})};
}

}  // namespace

const std::string& DateLine::Get() {
  const time_t now = time(nullptr);
  if (now == at_) return line_;
  at_ = now;
  tm parts{};
  gmtime_r(&now, &parts);
  char text[64];
  strftime(text, sizeof(text), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts);
  return line_ = text;
}

Connection::Connection(ConnectionContext context, Fd fd, std::unique_ptr<Transport> transport,
                       Peer peer)
    : context_(context),
      channel_(context.loop, std::move(fd), std::move(transport), context.limits.write_timeout),
      peer_(std::move(peer)),
      closed_(context.loop) {}

Task<void> Connection::Run() {
  while (true) {
    const Got got = co_await ReadHead();
    if (got == Got::kClosed) co_return;
    if (got == Got::kFault) {
      co_await Refuse();
      break;
    }
    co_await Handle();
    if (!co_await Settle()) break;
  }
  phase_ = Phase::kClosing;
  if (!channel_.broken()) co_await Linger();
}

Task<Connection::Got> Connection::ReadHead() {
  const ServerLimits& limits = context_.limits;
  const HeadLimits head_limits{limits.max_request_line,
                               std::min(limits.max_head_bytes, Channel::kMaxBuffer - 1),
                               limits.max_headers};
  HeadScanner scanner;
  phase_ = channel_.buffered().empty() ? Phase::kIdle : Phase::kHead;
  // A new connection has no more time to begin than it has for a head.
  const auto now = Channel::Clock::now();
  channel_.SetReadDeadline(
      now + (phase_ == Phase::kIdle && served_ > 0 ? limits.idle_timeout : limits.header_timeout));
  if (phase_ == Phase::kIdle && context_.draining) co_return Got::kClosed;
  while (true) {
    if (!channel_.buffered().empty()) {
      if (phase_ == Phase::kIdle) {
        phase_ = Phase::kHead;
        if (served_ > 0) channel_.SetReadDeadline(Channel::Clock::now() + limits.header_timeout);
      }
      switch (scanner.Scan(channel_.buffered(), head_limits)) {
        case HeadScanner::State::kDone:
          co_return TakeHead(scanner.size());
        case HeadScanner::State::kFault:
          fault_ = scanner.fault();
          co_return Got::kFault;
        case HeadScanner::State::kMore:
          break;
      }
    }
    switch (channel_.TryFill()) {
      case Channel::Fill::kGot:
        break;
      case Channel::Fill::kWait:
        if (phase_ == Phase::kIdle) channel_.Shrink();
        co_await channel_.ReadReady();
        break;
      case Channel::Fill::kEnded:
        if (phase_ == Phase::kIdle || !channel_.read_expired()) co_return Got::kClosed;
        fault_ = {408, "the request's head did not arrive in time"};
        co_return Got::kFault;
    }
  }
}

Connection::Got Connection::TakeHead(size_t size) {
  auto parsed = ParseRequestHead(channel_.buffered().substr(0, size));
  if (auto* fault = std::get_if<HttpFault>(&parsed)) {
    fault_ = std::move(*fault);
    return Got::kFault;
  }
  channel_.Consume(size);
  channel_.SetReadDeadline(Channel::kNever);
  StartExchange(std::get<RequestHead>(std::move(parsed)));
  return Got::kRequest;
}

void Connection::StartExchange(RequestHead head) {
  request_ = std::move(head.request);
  request_.peer = peer_;
  framing_ = head.framing;
  decoder_ = BodyDecoder(framing_);
  body_limit_ = context_.limits.max_body_bytes;
  body_read_ = 0;
  body_stalled_ = false;
  keep_alive_ = head.keep_alive;
  continue_due_ = head.expects_continue;
  head_only_ = request_.method == "HEAD";
  answer_ = Answer::kNone;
  phase_ = Phase::kHandler;
  ++served_;
  ++context_.stats.requests;
}

Task<void> Connection::Handle() {
  // Counts also when the server ends it.
  struct Running {
    explicit Running(ServerStats& stats) : stats(stats) { ++stats.running; }
    ~Running() { --stats.running; }
    ServerStats& stats;
  };
  const Running running(context_.stats);
  try {
    co_await context_.handler(this);
  } catch (...) {
    ++context_.stats.handler_throws;
  }
  close_watch_.Reset();
  closed_.Clear();
}

// Mends what the handler left; whether the connection can be used for another request.
Task<bool> Connection::Settle() {
  if (answer_ == Answer::kNone) {
    const Error error(ErrorCode::kInternal, "the request could not be handled");
    static_cast<void>((co_await Send(Response::Problem(error))).has_value());
  }
  if (answer_ == Answer::kStreaming) channel_.Abort();
  if (channel_.broken() || !keep_alive_) co_return false;
  if (decoder_.ended()) co_return true;
  co_return co_await DiscardBody();
}

Task<bool> Connection::DiscardBody() {
  if (continue_due_) co_return false;
  body_limit_ = body_read_ + kMaxDiscard;
  while (!decoder_.ended()) {
    const auto piece = co_await Next(kMaxDiscard);
    if (!piece) co_return false;
  }
  co_return true;
}

// Answers what is no request, and means to close.
Task<void> Connection::Refuse() {
  ++context_.stats.bad_requests;
  request_ = Request{};
  head_only_ = false;
  keep_alive_ = false;
  answer_ = Answer::kNone;
  channel_.SetReadDeadline(Channel::kNever);
  const ErrorCode code = fault_.status == 408 ? ErrorCode::kDeadlineExceeded
                         : fault_.status == 414 || fault_.status == 431
                             ? ErrorCode::kTooLarge
                             : ErrorCode::kInvalidArgument;
  static_cast<void>(
      (co_await Send(Response::Problem(fault_.status, Error(code, fault_.why)))).has_value());
}

// Closing at once would make the kernel reset the connection when something is unread, and the
// client might never see the answer: waits a little for the client's end.
Task<void> Connection::Linger() {
  channel_.FinishWriting();
  channel_.SetReadDeadline(Channel::Clock::now() + kLingerTime);
  size_t discarded = 0;
  while (discarded < kMaxLinger) {
    discarded += channel_.buffered().size();
    channel_.Consume(channel_.buffered().size());
    switch (channel_.TryFill()) {
      case Channel::Fill::kGot:
        break;
      case Channel::Fill::kEnded:
        co_return;
      case Channel::Fill::kWait:
        co_await channel_.ReadReady();
        break;
    }
  }
}

std::optional<uint64_t> Connection::content_length() const {
  if (framing_.kind == Framing::Kind::kChunked) return std::nullopt;
  return framing_.length;
}

Task<Result<std::string>> Connection::Next(size_t max) {
  if (framing_.kind == Framing::Kind::kLength && framing_.length > body_limit_)
    co_return BodyTooLarge(body_limit_);
  if (continue_due_ && answer_ == Answer::kNone) {
    continue_due_ = false;
    CAISSON_CO_TRY(co_await channel_.Write({"HTTP/1.1 100 Continue\r\n\r\n", {}, {}}));
  }
  while (true) {
    const BodyDecoder::Step step = decoder_.Next(channel_.buffered(), std::max<size_t>(max, 1));
    std::string data(step.data);
    channel_.Consume(step.consumed);
    switch (step.kind) {
      case BodyDecoder::Step::Kind::kEnd:
        co_return std::string();
      case BodyDecoder::Step::Kind::kFault:
        keep_alive_ = false;
        co_return Error(ErrorCode::kInvalidArgument,
                        Concat({"the request's body is malformed: ", step.why}));
      case BodyDecoder::Step::Kind::kData:
        body_read_ += data.size();
        if (body_read_ > body_limit_) {
          keep_alive_ = false;
          co_return BodyTooLarge(body_limit_);
        }
        co_return std::move(data);
      case BodyDecoder::Step::Kind::kMore:
        break;
    }
    channel_.SetReadDeadline(Channel::Clock::now() + context_.limits.body_timeout);
    const auto filled = co_await channel_.FillMore();
    channel_.SetReadDeadline(Channel::kNever);
    if (filled) continue;
    keep_alive_ = false;
    body_stalled_ = filled.error().code() == ErrorCode::kDeadlineExceeded;
    if (body_stalled_)
      co_return Error(ErrorCode::kDeadlineExceeded, "the request's body did not arrive in time")
          .WithRemedy("send it without long pauses, or in smaller parts");
    if (filled.error().code() == ErrorCode::kGone)
      co_return Error(ErrorCode::kCancelled, "the client has gone in the middle of the body");
    co_return filled.error();
  }
}

// Whether another request may follow; said in the head of the answer.
bool Connection::StaysOpen(Answer answer) const {
  if (!keep_alive_ || context_.draining) return false;
  if (context_.limits.max_requests != 0 && served_ >= context_.limits.max_requests) return false;
  if (decoder_.ended()) return true;
  if (continue_due_) return false;
  // A handler that streams may yet read the body; one that is done leaves it to be discarded.
  return answer == Answer::kStreaming || framing_.kind == Framing::Kind::kChunked ||
         framing_.length - body_read_ <= kMaxDiscard;
}

Result<std::string> Connection::HeadText(int status, const Headers& headers, Answer answer) {
  std::string text;
  text.reserve(256);
  text += "HTTP/1.1 ";
  text += std::to_string(status);
  text += ' ';
  text += ReasonOf(status);
  text += "\r\n";
  for (const Header& header : headers) {
    if (!IsToken(header.name) || !IsFieldValue(header.value) || IsFraming(header.name))
      return WrongOrder("gave a header that it may not: " + Quoted(header.name));
    text += header.name;
    text += ": ";
    text += header.value;
    text += "\r\n";
  }
  text += context_.date.Get();
  keep_alive_ = StaysOpen(answer);
  if (!keep_alive_) {
    text += "Connection: close\r\n";
  } else if (request_.minor_version == 0) {
    text += "Connection: keep-alive\r\n";
  }
  return text;
}

Task<Status> Connection::Put(std::array<std::string, 3> parts) {
  auto written = co_await channel_.Write(std::move(parts));
  if (!written) closed_.Set();
  co_return written;
}

Task<Status> Connection::Send(Response response) {
  if (answer_ != Answer::kNone) co_return WrongOrder("answered twice");
  if (response.status < 200 || response.status > 599)
    co_return WrongOrder("gave a status that is none");
  CAISSON_CO_ASSIGN(std::string head, HeadText(response.status, response.headers, Answer::kDone));
  const bool bodiless = HasNoBody(response.status);
  if (bodiless && !response.body.empty()) co_return WrongOrder("gave a body that may not be");
  if (!bodiless) {
    head += "Content-Length: ";
    head += std::to_string(response.body.size());
    head += "\r\n";
  }
  head += "\r\n";
  answer_ = Answer::kDone;
  if (head_only_) response.body.clear();
  co_return co_await Put({std::move(head), std::move(response.body), {}});
}

Task<Status> Connection::Begin(ResponseHead response) {
  if (answer_ != Answer::kNone) co_return WrongOrder("answered twice");
  if (HasNoBody(response.status) || response.status > 599)
    co_return WrongOrder("began a body that may not be");
  if (!response.content_length && request_.minor_version == 0) keep_alive_ = false;
  CAISSON_CO_ASSIGN(std::string head,
                    HeadText(response.status, response.headers, Answer::kStreaming));
  if (response.content_length) {
    stream_ = Stream::kLength;
    stream_left_ = *response.content_length;
    head += "Content-Length: ";
    head += std::to_string(stream_left_);
    head += "\r\n";
  } else if (request_.minor_version == 0) {
    stream_ = Stream::kUntilClose;
  } else {
    stream_ = Stream::kChunked;
    head += "Transfer-Encoding: chunked\r\n";
  }
  head += "\r\n";
  answer_ = Answer::kStreaming;
  co_return co_await Put({std::move(head), {}, {}});
}

Task<Status> Connection::Write(std::string piece) {
  if (answer_ != Answer::kStreaming) co_return WrongOrder("wrote outside of an answer");
  if (piece.empty()) co_return Status();
  if (stream_ == Stream::kLength) {
    if (piece.size() > stream_left_) co_return WrongOrder("wrote more than it announced");
    stream_left_ -= piece.size();
  }
  if (head_only_) co_return Status();
  if (stream_ != Stream::kChunked) co_return co_await Put({std::move(piece), {}, {}});
  std::string size = ChunkHead(piece.size());
  co_return co_await Put({std::move(size), std::move(piece), std::string(kChunkEnd)});
}

Task<Status> Connection::Finish() {
  if (answer_ != Answer::kStreaming) co_return WrongOrder("finished no answer");
  if (stream_ == Stream::kLength && stream_left_ > 0 && !head_only_)
    co_return WrongOrder("wrote less than it announced");
  answer_ = Answer::kDone;
  if (head_only_ || stream_ != Stream::kChunked) co_return Status();
  co_return co_await Put({std::string(kLastChunk), {}, {}});
}

async::Event& Connection::closed() {
  if (close_watch_.done() && !closed_.is_set()) {
    close_watch_ = WatchForClose();
    close_watch_.Start();
  }
  return closed_;
}

Task<void> Connection::WatchForClose() {
  while (true) {
    if (channel_.full()) {
      co_await channel_.space().Wait();
      continue;
    }
    const Channel::Fill fill = channel_.TryFill();
    if (fill == Channel::Fill::kEnded) break;
    if (fill == Channel::Fill::kWait) co_await channel_.ReadReady();
  }
  closed_.Set();
}

Task<Result<std::unique_ptr<WebSocket>>> Connection::Upgrade(WebSocketOptions options) {
  if (answer_ != Answer::kNone) co_return WrongOrder("answered twice");
  CAISSON_CO_ASSIGN(HandshakeAnswer answer, AnswerHandshake(request_, options));
  if (!decoder_.ended())
    co_return Error(ErrorCode::kInvalidArgument, "a request for a WebSocket has no body");
  keep_alive_ = false;
  answer_ = Answer::kUpgraded;
  CAISSON_CO_TRY(co_await Put({std::move(answer.head), {}, {}}));
  co_return MakeWebSocket(&channel_, WebSocketRole::kServer, std::move(answer.subprotocol),
                          options.max_message);
}

}  // namespace caisson::net
