// Jobs: requests that may take long and therefore run in a child process of their own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "init/files.h"
#include "init/outbox.h"
#include "init/poller.h"

namespace caisson::init {

inline constexpr size_t kMaxJobs = 16;

class Jobs {
 public:
  Jobs(const Privileges& privileges, Files& files, Poller& poller, Outbox& outbox)
      : privileges_(privileges), files_(files), poller_(poller), outbox_(outbox) {}

  // Removes a tree as the request's user. Replies when the child is done; EAGAIN when too many run.
  void RemoveRecursively(const wire::init::Remove& request, uint32_t tag);

  void OnEvent(uint32_t id);
  // Jobs go on, their replies are not sent.
  void ForgetOwner();

 private:
  struct Job {
    sys::UniqueFd report;
    std::optional<uint32_t> tag;
  };

  const Privileges& privileges_;
  Files& files_;
  Poller& poller_;
  Outbox& outbox_;
  std::unordered_map<uint32_t, Job> jobs_;
  uint32_t last_id_ = 0;
};

}  // namespace caisson::init
