// ThreadPool: threads for work that blocks (disks, hashing, name lookups). Offload: such work,
// awaited.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "async/event.h"

namespace caisson::async {

class ThreadPool {
 public:
  explicit ThreadPool(unsigned threads);
  // Finishes what was submitted.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // From any thread.
  void Submit(std::function<void()> work);

 private:
  void Work();

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> queue_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

// Runs `work` on a thread of the pool and gives its value. When the task is destroyed meanwhile,
// the work is still done; its value is dropped. The loop outlives the pool.
template <typename Work>
Task<std::invoke_result_t<Work>> Offload(Loop* loop, ThreadPool* pool, Work work) {
  using T = std::invoke_result_t<Work>;
  struct Shared {
    explicit Shared(Loop& loop, Work work) : work(std::move(work)), done(loop) {}
    Work work;
    std::optional<T> value;
    std::exception_ptr thrown;
    Event done;
  };
  auto shared = std::make_shared<Shared>(*loop, std::move(work));
  pool->Submit([loop, shared]() mutable {
    try {
      shared->value.emplace(shared->work());
    } catch (...) {
      shared->thrown = std::current_exception();
    }
    // The last reference goes on the loop's thread.
    loop->Post([shared = std::move(shared)] { shared->done.Set(); });
  });
  co_await shared->done.Wait();
  if (shared->thrown) std::rethrow_exception(shared->thrown);
  co_return *std::move(shared->value);
}

}  // namespace caisson::async
