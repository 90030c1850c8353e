// Files of a native sandbox, done by its init.
#pragma once

#include "providers/native/init_client.h"
#include "sandbox/files.h"

namespace caisson::native {

class NativeFiles : public sandbox::Files {
 public:
  explicit NativeFiles(std::shared_ptr<InitClient> init) : init_(std::move(init)) {}
  Task<Result<sandbox::FileInfo>> Stat(std::string path, std::string user,
                                       sandbox::Follow follow) override;
  Task<Result<sandbox::FilePage>> List(std::string path, std::string user, uint64_t cursor,
                                       uint32_t max) override;
  Task<Result<std::unique_ptr<sandbox::File>>> OpenRead(std::string path,
                                                        std::string user) override;
  Task<Result<std::unique_ptr<sandbox::File>>> OpenWrite(std::string path, std::string user,
                                                         sandbox::WriteMode mode,
                                                         uint32_t permissions,
                                                         sandbox::Parents parents) override;
  Task<Status> Mkdir(std::string path, std::string user, uint32_t permissions,
                     sandbox::Parents parents) override;
  Task<Status> Move(std::string from, std::string to, std::string user,
                    sandbox::Existing existing) override;
  Task<Status> Remove(std::string path, std::string user, sandbox::Recursion recursion) override;
  Task<Status> SetMode(std::string path, std::string user, uint32_t permissions) override;
  Task<Status> Symlink(std::string target, std::string path, std::string user) override;
  Task<Result<std::unique_ptr<sandbox::FileWatch>>> Watch(std::string path, std::string user,
                                                          sandbox::Recursion recursion) override;

 private:
  std::shared_ptr<InitClient> init_;
};

}  // namespace caisson::native
