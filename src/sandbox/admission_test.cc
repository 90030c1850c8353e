#include "sandbox/admission.h"

#include <gtest/gtest.h>

#include "async/task_set.h"

namespace caisson::sandbox {
namespace {

using namespace std::chrono_literals;

class FakeQuotas : public Quotas {
 public:
  class Held : public QuotaLease {
   public:
    explicit Held(int& count) : count_(count) { ++count_; }
    ~Held() override { --count_; }

   private:
    int& count_;
  };
  Result<std::unique_ptr<QuotaLease>> Take(const Owner& owner, const Demand& demand) override {
    asked = demand;
    if (owner.tenant == "full") return Error(ErrorCode::kResourceExhausted, "quota");
    return std::unique_ptr<QuotaLease>(new Held(held));
  }
  int held = 0;
  Demand asked;
};

class AdmissionTest : public testing::Test {
 protected:
  Result<Admission::Lease> Admit(std::optional<std::chrono::milliseconds> wait = std::nullopt,
                                 std::string tenant = "t") {
    return loop.RunUntilDone(admission->Admit({std::move(tenant), "k"}, {}, wait));
  }
  void Open() {
    options.look_again = 1ms;
    admission = std::make_unique<Admission>(
        loop, options, [this] { return Result<Headroom>(headroom); }, &quotas);
  }
  async::Loop loop;
  Headroom headroom{uint64_t{1} << 40, uint64_t{1} << 40, 1 << 20};
  AdmissionOptions options;
  FakeQuotas quotas;
  std::unique_ptr<Admission> admission;
};

TEST_F(AdmissionTest, EveryKindOfShortageIsRefusedAndSaidToBePassing) {
  for (auto field : {&Headroom::memory_bytes, &Headroom::disk_bytes, &Headroom::pids}) {
    const Headroom before = headroom;
    headroom.*field = 1;
    Open();
    auto refused = Admit();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::kResourceExhausted);
    EXPECT_TRUE(InfoOf(refused.error().code()).retryable);
    EXPECT_FALSE(refused.error().remedy().empty());
    headroom = before;
  }
  EXPECT_EQ(quotas.held, 0);
}

TEST_F(AdmissionTest, WhatIsBeingMadeCountsUntilTheHostShowsIt) {
  headroom.memory_bytes = options.memory_reserve + 2 * options.expected_memory;
  Open();
  auto first = Admit();
  auto second = Admit();
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(Admit());
  first->Made();
  EXPECT_TRUE(Admit());
}

TEST_F(AdmissionTest, LeasesGiveBackPlacesAndQuotas) {
  options.max_sessions = 2;
  Open();
  {
    auto first = Admit(), second = Admit();
    ASSERT_TRUE(first && second);
    EXPECT_EQ(quotas.held, 2);
    EXPECT_FALSE(Admit());
    Admission::Lease moved = *std::move(first);
    EXPECT_EQ(admission->admitted(), 2u);
  }
  EXPECT_EQ(quotas.held, 0);
  EXPECT_EQ(admission->admitted(), 0u);
  EXPECT_FALSE(Admit(std::nullopt, "full"));
  EXPECT_EQ(admission->admitted(), 0u);
}

Task<void> WaitInLine(Admission* admission, int number, std::vector<int>* order,
                      std::vector<Admission::Lease>* leases, std::chrono::milliseconds wait) {
  auto lease = co_await admission->Admit({"t", "k"}, {}, wait);
  order->push_back(lease ? number : -number);
  if (lease) leases->push_back(*std::move(lease));
}

TEST_F(AdmissionTest, ThoseWhoWaitAreServedInOrderAndGiveUpInTime) {
  options.max_sessions = 1;
  options.max_waiting = 3;
  Open();
  std::vector<int> order;
  std::vector<Admission::Lease> leases;
  auto first = Admit();
  ASSERT_TRUE(first);
  async::TaskSet tasks(loop);
  for (int i = 1; i <= 3; ++i)
    tasks.Spawn(WaitInLine(admission.get(), i, &order, &leases, i == 2 ? 5ms : 1h));
  EXPECT_EQ(admission->waiting(), 3u);
  EXPECT_EQ(Admit(1h).error().code(), ErrorCode::kResourceExhausted);  // the queue is full
  EXPECT_EQ(Admit().error().code(), ErrorCode::kResourceExhausted);    // nobody overtakes
  auto until = [this](size_t count, std::vector<int>* seen) {
    loop.RunUntilDone([](async::Loop* l, size_t n, std::vector<int>* s) -> Task<void> {
      while (s->size() < n) co_await l->Sleep(1ms);
    }(&loop, count, seen));
  };
  until(1, &order);
  EXPECT_EQ(order, std::vector<int>{-2});
  first = Error(ErrorCode::kCancelled, "given back");
  until(2, &order);
  leases.clear();
  until(3, &order);
  EXPECT_EQ(order, (std::vector<int>{-2, 1, 3}));
  EXPECT_EQ(admission->waiting(), 0u);
}

TEST_F(AdmissionTest, OneThatExistsIsCountedWhateverTheRoom) {
  options.max_sessions = 1;
  Open();
  auto first = admission->Count({"full", "k"}, {});
  auto second = admission->Count({"t", "k"}, {});
  EXPECT_EQ(admission->admitted(), 2u);
  EXPECT_FALSE(Admit());
}

TEST_F(AdmissionTest, TheHostsOwnFiguresAreRead) {
  const auto read = ReadHeadroom("/");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_GT(read->memory_bytes, 0u);
  EXPECT_GT(read->pids, 0u);
  EXPECT_FALSE(ReadHeadroom("/nothing/there"));
}

}  // namespace
}  // namespace caisson::sandbox
