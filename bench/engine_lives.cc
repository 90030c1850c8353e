#include "engine_lives.h"

#include <string>

#include "sandbox/run.h"

namespace caisson::bench {
namespace {

constexpr int kHands = 8;  // that make or destroy what is held

// What the workers of one crowd share.
struct Plan {
  sandbox::Provider* provider;
  int left;
  std::optional<double> deadline_us;
  std::vector<Life> lives;
};

Task<Status> Worker(Plan* plan) {
  while (plan->left > 0 && (!plan->deadline_us || NowUs() < *plan->deadline_us)) {
    --plan->left;
    CAISSON_CO_ASSIGN(const Life life, co_await LiveOnce(plan->provider));
    plan->lives.push_back(life);
  }
  co_return Status();
}

Task<Status> Maker(sandbox::Provider* provider, std::vector<SandboxPtr>* held, size_t* left) {
  while (*left > 0) {
    --*left;
    CAISSON_CO_TRY(CheckStop());
    CAISSON_CO_ASSIGN(auto made, co_await provider->Create({}));
    held->push_back(std::move(made));
  }
  co_return Status();
}

Task<Status> Destroyer(std::vector<SandboxPtr>* held, size_t until) {
  while (held->size() > until) {
    SandboxPtr box = std::move(held->back());
    held->pop_back();
    CAISSON_CO_TRY(CheckStop());
    CAISSON_CO_TRY(co_await box->Destroy());
  }
  co_return Status();
}

}  // namespace

Task<Status> RunTrue(sandbox::Sandbox* sandbox) {
  sandbox::ExecSpec spec;
  spec.argv = {"/bin/true"};
  CAISSON_CO_ASSIGN(const auto result, co_await sandbox::Run(sandbox, std::move(spec)));
  if (!result.outcome.Succeeded())
    co_return Error(ErrorCode::kInternal,
                    "/bin/true in a sandbox did not succeed: " + result.outcome.reason);
  co_return Status();
}

Task<Result<Life>> LiveOnce(sandbox::Provider* provider) {
  CAISSON_CO_TRY(CheckStop());
  const double begin = NowUs();
  CAISSON_CO_ASSIGN(auto box, co_await provider->Create({}));
  const double created = NowUs();
  CAISSON_CO_TRY(co_await RunTrue(box.get()));
  const double ran = NowUs();
  CAISSON_CO_TRY(co_await box->Destroy());
  co_return Life{created - begin, ran - created, NowUs() - ran};
}

Task<Result<std::vector<Life>>> LiveMany(sandbox::Provider* provider, int count) {
  std::vector<Life> lives;
  lives.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    CAISSON_CO_ASSIGN(const Life life, co_await LiveOnce(provider));
    lives.push_back(life);
  }
  co_return lives;
}

Task<Result<Crowd>> LiveTogether(sandbox::Provider* provider, int workers, int count,
                                 std::optional<std::chrono::milliseconds> until) {
  const double begin = NowUs();
  Plan plan{provider, count, std::nullopt, {}};
  if (until) plan.deadline_us = begin + static_cast<double>(until->count()) * 1e3;
  Crew crew(provider->loop());
  for (int i = 0; i < workers; ++i) crew.Add(Worker(&plan));
  CAISSON_CO_TRY(co_await crew.Wait());
  co_return Crowd{std::move(plan.lives), NowUs() - begin};
}

Task<Status> HoldMore(sandbox::Provider* provider, std::vector<SandboxPtr>* held, size_t count) {
  size_t left = count;
  Crew crew(provider->loop());
  for (int i = 0; i < kHands; ++i) crew.Add(Maker(provider, held, &left));
  co_return co_await crew.Wait();
}

Task<Status> HoldFewer(std::vector<SandboxPtr>* held, size_t count) {
  if (held->empty()) co_return Status();
  const size_t until = held->size() > count ? held->size() - count : 0;
  Crew crew(held->back()->loop());
  for (int i = 0; i < kHands; ++i) crew.Add(Destroyer(held, until));
  co_return co_await crew.Wait();
}

}  // namespace caisson::bench
