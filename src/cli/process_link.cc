#include "cli/process_link.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>

#include "async/race.h"
#include "async/signals.h"
#include "async/task_set.h"
#include "async/watch.h"
#include "base/encoding.h"
#include "cli/leave_keys.h"
#include "cli/output.h"
#include "cli/terminal.h"

namespace caisson::cli {
namespace {

json::Object SignalMessage(int number) {
  return {{"type", "signal"}, {"signal", std::string("SIG") + sigabbrev_np(number)}};
}

// What a stream's message carries.
std::string BytesOf(const json::Value& message) {
  const std::string encoded = TextAt(message, "data_base64");
  if (encoded.empty()) return TextAt(message, "data");
  return FromBase64(encoded).value_or("");
}

class Link {
 public:
  Link(async::Loop& loop, net::WebSocket& socket, LinkPlan plan)
      : loop_(loop), socket_(socket), plan_(std::move(plan)), left_(loop) {
    end_.out_seen = plan_.out_from;
    end_.err_seen = plan_.err_from;
  }

  Task<Result<LinkEnd>> Run() {
    async::Signals signals(loop_, {SIGINT, SIGTERM, SIGHUP});
    if (plan_.screen == Screen::kRaw) signals.Add(SIGWINCH);
    if (plan_.first) CAISSON_CO_TRY(co_await socket_.SendText(json::Write(*plan_.first)));
    std::optional<RawTerminal> raw;
    if (plan_.screen == Screen::kRaw) {
      raw.emplace(STDIN_FILENO);
      if (!plan_.first) CAISSON_CO_TRY(co_await SendSize());
    }
    async::TaskSet forwarding(loop_);
    if (plan_.input == Input::kForwarded) forwarding.Spawn(ForwardInput());
    forwarding.Spawn(ForwardSignals(&signals));
    auto first = co_await async::FirstOf(&loop_, ReceiveAll(), async::WaitFor(&left_));
    forwarding.Cancel();
    raw.reset();
    if (first.index() == 1) {
      (void)co_await socket_.Close(1000, "leaving");  // the server sees it go in any case
      co_return std::move(end_);
    }
    if (auto received = std::get<0>(std::move(first)); !received)
      co_return std::move(received).error();
    co_return std::move(end_);
  }

 private:
  Task<Status> SendSize() {
    const WindowSize size = SizeOfTerminal(STDIN_FILENO);
    co_return co_await socket_.SendText(
        json::Write(json::Object{{"type", "resize"}, {"rows", size.rows}, {"cols", size.cols}}));
  }

  // Our stdin to the command's, until either ends. A send that fails is found out by ReceiveAll.
  Task<void> ForwardInput() {
    async::Watch watch(loop_, STDIN_FILENO);
    LeaveKeys keys;
    std::string buffer(65536, '\0');
    while (!input_refused_) {
      co_await watch.Readable();
      const ssize_t got = read(STDIN_FILENO, buffer.data(), buffer.size());
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got <= 0) break;
      std::string bytes = buffer.substr(0, static_cast<size_t>(got));
      if (plan_.leave_by == LeaveBy::kKeys) {
        auto passed = keys.Take(bytes);
        if (passed.leave) {
          left_.Set();
          co_return;
        }
        bytes = std::move(passed.bytes);
      }
      if (!bytes.empty() && !co_await socket_.SendBinary(std::move(bytes))) co_return;
    }
    (void)co_await socket_.SendText(R"({"type":"eof"})");
  }

  Task<void> ForwardSignals(async::Signals* signals) {
    int asked = 0;
    for (;;) {
      const int number = co_await signals->Next();
      if (number == SIGWINCH) {
        (void)co_await SendSize();
      } else if (plan_.bond == Bond::kVisited) {
        left_.Set();
        co_return;
      } else {
        (void)co_await socket_.SendText(json::Write(SignalMessage(++asked > 1 ? SIGKILL : number)));
      }
    }
  }

  // Takes messages until the command has ended.
  Task<Status> ReceiveAll() {
    for (;;) {
      auto message = co_await socket_.Receive();
      if (!message || message->kind == net::WsMessage::Kind::kClose)
        co_return Error(ErrorCode::kUnavailable, "the connection to the command broke");
      if (message->kind != net::WsMessage::Kind::kText) continue;
      auto parsed = json::Parse(message->data);
      if (!parsed) co_return std::move(parsed).error().WithCode(ErrorCode::kProtocol);
      const std::string type = TextAt(*parsed, "type");
      if (type == "ended") {
        end_.ended = *std::move(parsed);
        co_return Status();
      }
      if (type == "started") {
        started_ = true;
        end_.process_id = CountAt(*parsed, "process_id");
      } else if (type == "stdout" || type == "stderr") {
        co_await TakeOutput(*parsed, type);
      } else if (type == "gap") {
        ShowGap(*parsed);
      } else if (type == "error") {
        // Once it runs, what can fail is input: it reads no more.
        if (!started_) co_return ErrorOfAnswer(0, message->data);
        input_refused_ = true;
      }
    }
  }

  Task<void> TakeOutput(json::Value message, std::string stream) {
    const bool standard = stream == "stdout";
    const std::string bytes = BytesOf(message);
    (standard ? end_.out_seen : end_.err_seen) = CountAt(message, "offset") + bytes.size();
    if (plan_.keep == Keep::kCollect) {
      (standard ? end_.out : end_.err) += bytes;
      co_return;
    }
    if (broken_ || WriteTo(standard ? STDOUT_FILENO : STDERR_FILENO, bytes)) co_return;
    // Nobody reads what it says.
    broken_ = true;
    if (plan_.bond == Bond::kVisited) {
      left_.Set();
    } else {
      (void)co_await socket_.SendText(json::Write(SignalMessage(SIGPIPE)));
      (void)co_await socket_.SendText(json::Write(SignalMessage(SIGKILL)));
    }
  }

  void ShowGap(const json::Value& gap) {
    WriteTo(STDERR_FILENO, "\r\n[caisson: bytes " + std::to_string(CountAt(gap, "from")) + " to " +
                               std::to_string(CountAt(gap, "to")) + " of " +
                               OneLine(TextAt(gap, "stream")) + " are not kept any more]\r\n");
  }

  async::Loop& loop_;
  net::WebSocket& socket_;
  const LinkPlan plan_;
  async::Event left_;
  LinkEnd end_;
  bool started_ = false, broken_ = false, input_refused_ = false;
};

}  // namespace

bool WriteTo(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t wrote = write(fd, data.data(), data.size());
    if (wrote > 0) {
      data.remove_prefix(static_cast<size_t>(wrote));
    } else if (wrote < 0 && errno == EAGAIN) {  // somebody made our terminal non-blocking
      pollfd ready{fd, POLLOUT, 0};
      poll(&ready, 1, -1);
    } else if (wrote < 0 && errno != EINTR) {
      return false;
    }
  }
  return true;
}

Task<Result<LinkEnd>> JoinProcess(async::Loop* loop, net::WebSocket* socket, LinkPlan plan) {
  Link link(*loop, *socket, std::move(plan));
  co_return co_await link.Run();
}

}  // namespace caisson::cli
