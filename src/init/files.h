// Files: the file requests, carried out inside the sandbox with the identity of the request's user.
//
// Only regular files are opened. Open handles are bounded and belong to the owner of the control
// socket: CloseAll forgets them and removes the temporaries of unfinished replacements. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "init/identity.h"
#include "init/paths.h"
#include "sys/unique_fd.h"
#include "wire/init_protocol.h"

namespace caisson::init {

inline constexpr size_t kMaxHandles = 256;

class Files {
 public:
  Files(const Privileges& privileges, std::string default_user)
      : privileges_(privileges), default_user_(std::move(default_user)) {}
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  ~Files() { CloseAll(); }

  Result<wire::init::StatReply> Handle(wire::init::Stat& request);
  Result<wire::init::Entries> Handle(wire::init::ListDir& request);
  Result<wire::init::Opened> Handle(wire::init::Open& request);
  Result<wire::init::Data> Handle(wire::init::Read& request);
  Result<wire::init::Written> Handle(wire::init::Write& request);
  Result<wire::init::Done> Handle(wire::init::Close& request);
  Result<wire::init::Done> Handle(wire::init::Mkdir& request);
  Result<wire::init::Done> Handle(wire::init::Move& request);
  Result<wire::init::Done> Handle(wire::init::SetMode& request);
  Result<wire::init::Done> Handle(wire::init::Symlink& request);
  // One entry; a directory must be empty. Trees are removed by Jobs.
  Result<wire::init::Done> RemoveOne(const wire::init::Remove& request);

  // The user a request acts as; EPERM when init cannot be it.
  Result<User> UserOf(const std::string& name) const;
  void CloseAll();

 private:
  struct Handle_ {
    sys::UniqueFd fd;
    User user;
    // Of a replacement: where it goes, and the temporary's name there. Empty otherwise.
    Place target;
    std::string temporary;
  };

  Result<Handle_> OpenReplacement(const wire::init::Open& request);
  Result<Handle_> OpenInPlace(const wire::init::Open& request);
  Status Discard(Handle_& handle);
  Result<Handle_*> Find(uint32_t id);

  const Privileges& privileges_;
  const std::string default_user_;
  std::unordered_map<uint32_t, Handle_> handles_;
  uint32_t last_handle_ = 0;
};

}  // namespace caisson::init
