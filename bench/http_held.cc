#include "http_held.h"

#include "measure.h"

namespace caisson::bench {
namespace {

using namespace std::chrono_literals;

constexpr int kHands = 8;

Task<Status> Maker(Remote* remote, Ids* held, size_t* left) {
  while (*left > 0) {
    --*left;
    CAISSON_CO_TRY(CheckStop());
    CAISSON_CO_ASSIGN(const auto made, co_await remote->Create());
    held->push_back(made.id);
  }
  co_return Status();
}

Task<Status> Ender(Remote* remote, Ids* held) {
  while (!held->empty()) {
    const std::string id = std::move(held->back());
    held->pop_back();
    CAISSON_CO_TRY(co_await remote->Destroy(id));
  }
  co_return Status();
}

}  // namespace

Task<Status> HoldMore(Remote* remote, Ids* held, size_t count) {
  Crew crew(remote->loop());
  for (int i = 0; i < kHands; ++i) crew.Add(Maker(remote, held, &count));
  co_return co_await crew.Wait();
}

Task<Status> EndAll(Remote* remote, Ids* held) {
  {
    Crew crew(remote->loop());
    for (int i = 0; i < kHands; ++i) crew.Add(Ender(remote, held));
    CAISSON_CO_TRY(co_await crew.Wait());
  }
  for (int i = 0; i < 600; ++i) {
    CAISSON_CO_ASSIGN(const double ending, co_await remote->Metric("caisson_sessions_ending"));
    if (ending == 0) co_return Status();
    co_await remote->loop().Sleep(50ms);
  }
  co_return Error(ErrorCode::kDeadlineExceeded, "sessions do not end within 30 seconds");
}

}  // namespace caisson::bench
