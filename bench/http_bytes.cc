// Rows of many bytes: a command's output and files, each beside a plain copy taken in turns.
#include <string>

#include "base/text.h"
#include "engine_memory.h"
#include "http_plain.h"
#include "http_rows.h"

namespace caisson::bench {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kFileBytes = 16 * kMiB;  // of the text that is printed again and again
constexpr char kPath[] = "/tmp/caisson-bench.data";

// Lines of text: what programs print.
std::string SomeText(uint64_t size) {
  std::string text;
  text.reserve(size + 128);
  for (uint64_t i = 0; text.size() < size; ++i)
    text += Concat({"line ", std::to_string(i), " of a program's output, as long as they are\n"});
  text.resize(size - 1);
  return text += '\n';
}

struct Rates {
  Samples ours, plain;  // MiB per second
  int64_t rss_growth = 0;
};

boost::json::object RatesLine(std::string_view name, const Rates& rates) {
  auto line = Line(name);
  line["mib_per_s"] = Tenth(Percentile(rates.ours, 0.5));
  line["plain_mib_per_s"] = Tenth(Percentile(rates.plain, 0.5));
  line["rss_growth_bytes"] = rates.rss_growth;
  line["n"] = rates.ours.size();
  return line;
}

double Rate(uint64_t bytes, double begin_us) {
  return static_cast<double>(bytes) / static_cast<double>(kMiB) * 1e6 / (NowUs() - begin_us);
}

std::string ContentTarget(const std::string& id) {
  return Concat({"/api/sessions/", id, "/files/content?path=", kPath});
}

// A session whose disk and memory hold what is moved.
Task<Result<Remote::Session>> CreateLarge(Remote* remote) {
  return remote->Create(RoomyBody(R"(, "memory": "3G", "disk": "1400M")"));
}

Task<Status> Upload(Remote* remote, std::string id, const std::string* piece, uint64_t size) {
  net::ClientRequest request{.method = "PUT", .target = ContentTarget(id)};
  request.headers.Set("Content-Type", "application/octet-stream");
  CAISSON_CO_ASSIGN(auto exchange, co_await remote->client().Open(
                                       std::move(request), net::Client::BodyKind::kStreamed));
  for (uint64_t sent = 0; sent < size; sent += piece->size())
    CAISSON_CO_TRY(co_await exchange->Write(*piece));
  CAISSON_CO_TRY(co_await exchange->Finish());
  CAISSON_CO_ASSIGN(const auto head, co_await exchange->ReadHead());
  CAISSON_CO_ASSIGN(const std::string said, co_await exchange->body().ReadAll(1 << 20));
  if (head.status != 200)
    co_return Error(ErrorCode::kProtocol, "an upload was answered " + said.substr(0, 300));
  if (!said.contains("\"size\":" + std::to_string(size)))
    co_return Error(ErrorCode::kInternal, "an upload arrived with another size: " + said);
  co_return Status();
}

Task<Status> Download(Remote* remote, std::string id, uint64_t size) {
  CAISSON_CO_ASSIGN(auto exchange, co_await remote->client().Open({.target = ContentTarget(id)},
                                                                  net::Client::BodyKind::kWhole));
  CAISSON_CO_ASSIGN(const auto head, co_await exchange->ReadHead());
  uint64_t got = 0;
  for (;;) {
    CAISSON_CO_ASSIGN(const std::string piece, co_await exchange->body().Next(256 << 10));
    if (piece.empty()) break;
    got += piece.size();
  }
  if (head.status != 200 || got != size)
    co_return Error(ErrorCode::kInternal,
                    "a download gave " + std::to_string(got) + " bytes of " + std::to_string(size));
  co_return Status();
}

// A command that prints the uploaded text `times` times; its end tells how much it printed.
Task<Status> Print(Remote* remote, std::string id, int times) {
  std::string script = "exec cat";
  for (int i = 0; i < times; ++i) script += Concat({" ", kPath});
  CAISSON_CO_ASSIGN(auto events, co_await remote->Stream(id, ExecBody({"/bin/sh", "-c", script})));
  const uint64_t size = kFileBytes * static_cast<uint64_t>(times);
  CAISSON_CO_ASSIGN(const uint64_t got, co_await events.CountRest());
  // JSON adds to what was printed; how it came through byte by byte is the streams' row.
  if (got < size)
    co_return Error(ErrorCode::kInternal,
                    "a stream gave " + std::to_string(got) + " bytes for " + std::to_string(size));
  co_return Status();
}

}  // namespace

Task<Result<Lines>> MeasureHttpStreamRate(Remote* remote, HttpOptions options) {
  const int rounds = options.length == Length::kQuick ? 1 : 3;
  const int times = options.length == Length::kQuick ? 16 : 64;
  const uint64_t size = kFileBytes * static_cast<uint64_t>(times);
  const std::string text = SomeText(kFileBytes);
  CAISSON_CO_ASSIGN(const auto session, co_await CreateLarge(remote));
  CAISSON_CO_TRY(co_await Upload(remote, session.id, &text, text.size()));
  CAISSON_CO_TRY(co_await Print(remote, session.id, 1));
  CAISSON_CO_ASSIGN(const auto before, ReadProcessMemory(remote->pid()));
  Rates rates;
  for (int i = 0; i < rounds; ++i) {
    CAISSON_CO_TRY(CheckStop());
    CAISSON_CO_ASSIGN(const double plain_us, CatThroughPipe(text, times));
    rates.plain.push_back(static_cast<double>(size / kMiB) * 1e6 / plain_us);
    const double begin = NowUs();
    CAISSON_CO_TRY(co_await Print(remote, session.id, times));
    rates.ours.push_back(Rate(size, begin));
  }
  CAISSON_CO_ASSIGN(const auto after, ReadProcessMemory(remote->pid()));
  rates.rss_growth = after.resident - before.resident;
  CAISSON_CO_TRY(co_await remote->Destroy(session.id));
  co_return Lines{RatesLine("http_stream_rate", rates)};
}

namespace {

enum class Direction { kUp, kDown };

Task<Result<Lines>> MeasureFiles(Remote* remote, HttpOptions options, Direction direction,
                                 std::string_view name) {
  const int rounds = options.length == Length::kQuick ? 2 : 5;
  const uint64_t size = (options.length == Length::kQuick ? 128 : 512) * kMiB;
  const std::string piece = SomeText(256 << 10);
  CAISSON_CO_ASSIGN(const auto session, co_await CreateLarge(remote));
  CAISSON_CO_TRY(co_await Upload(remote, session.id, &piece, size));
  CAISSON_CO_ASSIGN(const auto before, ReadProcessMemory(remote->pid()));
  Rates rates;
  for (int i = 0; i < rounds; ++i) {
    CAISSON_CO_TRY(CheckStop());
    CAISSON_CO_ASSIGN(const double plain_us, CopyThroughLoopback(size));
    rates.plain.push_back(static_cast<double>(size / kMiB) * 1e6 / plain_us);
    const double begin = NowUs();
    if (direction == Direction::kUp)
      CAISSON_CO_TRY(co_await Upload(remote, session.id, &piece, size));
    else
      CAISSON_CO_TRY(co_await Download(remote, session.id, size));
    rates.ours.push_back(Rate(size, begin));
  }
  CAISSON_CO_ASSIGN(const auto after, ReadProcessMemory(remote->pid()));
  rates.rss_growth = after.resident - before.resident;
  CAISSON_CO_TRY(co_await remote->Destroy(session.id));
  co_return Lines{RatesLine(name, rates)};
}

}  // namespace

Task<Result<Lines>> MeasureHttpUpload(Remote* remote, HttpOptions options) {
  return MeasureFiles(remote, options, Direction::kUp, "http_upload");
}
Task<Result<Lines>> MeasureHttpDownload(Remote* remote, HttpOptions options) {
  return MeasureFiles(remote, options, Direction::kDown, "http_download");
}

}  // namespace caisson::bench
