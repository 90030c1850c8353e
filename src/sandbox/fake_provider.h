// A provider made of memory, with scripted behaviour: for tests of what stands above providers.
//
// Commands do nothing by themselves: a test finds the FakeProcess and says what it writes and how
// it ends. Sandboxes survive their Sandbox objects, as real ones do, until destroyed or lost.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/event.h"
#include "sandbox/provider.h"

namespace caisson::sandbox {

// One command's life, seen from both ends.
struct FakeCommand {
  explicit FakeCommand(async::Loop& loop) : changed(loop) {}

  void Out(std::string data) { Write(Stream::kStdout, std::move(data)); }
  void Err(std::string data) { Write(Stream::kStderr, std::move(data)); }
  void Write(Stream stream, std::string data) {
    uint64_t& offset = stream == Stream::kStdout ? out_end : err_end;
    const uint64_t at = offset;
    offset += data.size();
    output.push_back({stream, at, std::move(data)});
    changed.Wake();
  }
  void End(OutcomeStatus status, int exit_code, std::string reason = "") {
    if (outcome) return;
    outcome.emplace();
    outcome->status = status;
    outcome->exit_code = exit_code;
    outcome->reason = std::move(reason);
    outcome->usage.stdout_bytes = out_end;
    outcome->usage.stderr_bytes = err_end;
    changed.Wake();
  }
  void Exit(int code) { End(OutcomeStatus::kExited, code, "exit code " + std::to_string(code)); }

  ExecSpec spec;
  uint32_t handle = 0;
  std::deque<OutputChunk> output;  // not fetched yet
  std::vector<OutputChunk> fetched;
  uint64_t out_end = 0, err_end = 0;
  std::optional<ExecOutcome> outcome;
  bool broken = false;  // the connection to it
  bool obeys = true;    // ends when it is killed
  std::string input;    // what came on stdin
  bool stdin_closed = false;
  std::vector<int> signals;
  bool released = false;
  uint16_t rows = 0, cols = 0;
  async::Event changed;
};

// A sandbox as the kernel would know it.
struct FakeBox {
  std::string id;
  SandboxSpec spec;
  std::map<uint32_t, std::shared_ptr<FakeCommand>> commands;
  std::map<std::string, std::string> files;  // path → content
  bool paused = false;
  uint32_t next_handle = 1;
  std::vector<Limits> updates;
  SandboxStats stats;
};

// What the provider does wrong, and how slowly.
struct FakeScript {
  explicit FakeScript(async::Loop& loop) : gate(loop), destroy_gate(loop) {
    gate.Set();
    destroy_gate.Set();
  }
  async::Event gate;          // creates wait for it
  async::Event destroy_gate;  // destroys wait for it
  std::optional<Error> create_error, start_error, destroy_error, pause_error, update_error,
      list_error, adopt_error;
  int creates = 0, destroys = 0, adoptions = 0;
};

class FakeProcess : public Process {
 public:
  explicit FakeProcess(std::shared_ptr<FakeCommand> command) : command_(std::move(command)) {}
  uint32_t handle() const override { return command_->handle; }
  int pid() const override { return static_cast<int>(command_->handle) + 100; }
  Task<Result<ProcessEvent>> Next() override {
    for (;;) {
      if (command_->broken) co_return Error(ErrorCode::kUnavailable, "the connection broke");
      if (!command_->output.empty()) {
        OutputChunk chunk = std::move(command_->output.front());
        command_->output.pop_front();
        command_->fetched.push_back(chunk);
        co_return ProcessEvent(std::move(chunk));
      }
      if (command_->outcome) co_return ProcessEvent(*command_->outcome);
      co_await command_->changed.Wait();
    }
  }
  Task<Status> Write(std::string data) override {
    command_->input += data;
    command_->changed.Wake();
    co_return Status();
  }
  Task<Status> CloseStdin() override {
    command_->stdin_closed = true;
    command_->changed.Wake();
    co_return Status();
  }
  Task<Status> Signal(int signo, SignalScope) override {
    command_->signals.push_back(signo);
    if (signo == 9 && command_->obeys)
      command_->End(OutcomeStatus::kCancelled, -1, "the caller ended it");
    command_->changed.Wake();
    co_return Status();
  }
  Task<Status> Resize(uint16_t rows, uint16_t cols) override {
    command_->rows = rows;
    command_->cols = cols;
    co_return Status();
  }

 private:
  std::shared_ptr<FakeCommand> command_;
};

class FakeFile : public File {
 public:
  explicit FakeFile(std::string content) : content_(std::move(content)) {
    info_.size = content_.size();
    info_.mode = 0100644;
  }
  const FileInfo& info() const override { return info_; }
  Task<Result<std::string>> Read(uint64_t offset, uint32_t size) override {
    if (offset >= content_.size()) co_return std::string();
    co_return content_.substr(offset, std::min<uint32_t>(size, 65536));
  }
  Task<Status> Write(uint64_t, std::string) override {
    co_return Error(ErrorCode::kUnsupported, "read only");
  }
  Task<Status> Commit() override { co_return Error(ErrorCode::kUnsupported, "read only"); }

 private:
  std::string content_;
  FileInfo info_;
};

// Reading and listing of FakeBox::files; folders are what their paths imply.
class FakeFiles : public Files {
 public:
  explicit FakeFiles(std::shared_ptr<FakeBox> box) : box_(std::move(box)) {}
  Task<Result<FileInfo>> Stat(std::string path, std::string, Follow) override {
    const auto file = box_->files.find(path);
    FileInfo info;
    info.name = path.substr(path.rfind('/') + 1);
    if (file != box_->files.end()) {
      info.mode = 0100644;
      info.size = file->second.size();
      co_return info;
    }
    if (IsFolder(path)) {
      info.mode = 040755;
      co_return info;
    }
    co_return Error(ErrorCode::kNotFound, "no file " + path);
  }
  Task<Result<FilePage>> List(std::string path, std::string, uint64_t cursor,
                              uint32_t max) override {
    if (!IsFolder(path)) co_return Error(ErrorCode::kNotFound, "no folder " + path);
    std::map<std::string, FileInfo> entries;
    const std::string prefix = path == "/" ? "/" : path + "/";
    for (const auto& [name, content] : box_->files) {
      if (!name.starts_with(prefix)) continue;
      const std::string rest = name.substr(prefix.size());
      const size_t slash = rest.find('/');
      FileInfo info;
      info.name = rest.substr(0, slash);
      info.mode = slash == std::string::npos ? 0100644 : 040755;
      info.size = slash == std::string::npos ? content.size() : 0;
      entries.emplace(info.name, info);
    }
    FilePage page;
    uint64_t at = 0;
    for (auto& [name, info] : entries) {
      if (at++ < cursor) continue;
      if (page.entries.size() == max) {
        page.next = at - 1;
        break;
      }
      page.entries.push_back(std::move(info));
    }
    co_return page;
  }
  Task<Result<std::unique_ptr<File>>> OpenRead(std::string path, std::string) override {
    const auto file = box_->files.find(path);
    if (file == box_->files.end()) co_return Error(ErrorCode::kNotFound, "no file " + path);
    co_return std::unique_ptr<File>(new FakeFile(file->second));
  }
  Task<Result<std::unique_ptr<File>>> OpenWrite(std::string, std::string, WriteMode, uint32_t,
                                                Parents) override {
    co_return Unsupported();
  }
  Task<Status> Mkdir(std::string, std::string, uint32_t, Parents) override {
    co_return Unsupported();
  }
  Task<Status> Move(std::string, std::string, std::string, Existing) override {
    co_return Unsupported();
  }
  Task<Status> Remove(std::string, std::string, Recursion) override { co_return Unsupported(); }
  Task<Status> SetMode(std::string, std::string, uint32_t) override { co_return Unsupported(); }
  Task<Status> Symlink(std::string, std::string, std::string) override { co_return Unsupported(); }
  Task<Result<std::unique_ptr<FileWatch>>> Watch(std::string, std::string, Recursion) override {
    co_return Unsupported();
  }

 private:
  static Error Unsupported() { return {ErrorCode::kUnsupported, "the fake cannot"}; }
  bool IsFolder(const std::string& path) const {
    const std::string prefix = path == "/" ? "/" : path + "/";
    const auto at = box_->files.lower_bound(prefix);
    return at != box_->files.end() && at->first.starts_with(prefix);
  }
  std::shared_ptr<FakeBox> box_;
};

class FakeProvider : public Provider {
 public:
  explicit FakeProvider(async::Loop& loop) : script(loop), loop_(loop) {}

  async::Loop& loop() const override { return loop_; }
  std::string_view name() const override { return "fake"; }
  ProviderCapabilities capabilities() const override { return abilities; }
  Task<Result<std::unique_ptr<Sandbox>>> Create(SandboxSpec spec) override;
  Task<Result<std::vector<std::string>>> List() override {
    co_await loop_.Yield();
    if (script.list_error) co_return *script.list_error;
    std::vector<std::string> ids;
    for (const auto& [id, box] : boxes) ids.push_back(id);
    co_return ids;
  }
  Task<Result<std::unique_ptr<Sandbox>>> Adopt(std::string id) override;
  Task<Status> Remove(std::string id) override {
    ++script.destroys;
    co_await script.destroy_gate.Wait();
    if (script.destroy_error) co_return *script.destroy_error;
    if (boxes.erase(id) == 0) co_return Error(ErrorCode::kNotFound, "no sandbox " + id);
    co_return Status();
  }

  void OnLoss(std::function<void(const Loss&)> handler) override { on_loss_ = std::move(handler); }

  // Makes all vanish and says so, as when the launcher dies.
  void LoseAll(std::string reason) {
    while (!boxes.empty()) Lose(boxes.begin()->first);
    if (on_loss_) on_loss_({"", std::move(reason)});
  }
  // Makes one vanish, unnoticed.
  void Lose(const std::string& id) {
    const auto box = boxes.find(id);
    if (box == boxes.end()) return;
    for (auto& [handle, command] : box->second->commands) {
      command->broken = true;
      command->changed.Wake();
    }
    boxes.erase(box);
  }
  FakeBox& Box(const std::string& id) { return *boxes.at(id); }
  FakeCommand& Command(const std::string& id, uint32_t handle = 1) {
    return *boxes.at(id)->commands.at(handle);
  }

  FakeScript script;
  ProviderCapabilities abilities{
      true, true, true, true, true, true, IsolationLevel::kNamespacesRootless};
  std::map<std::string, std::shared_ptr<FakeBox>> boxes;

 private:
  std::function<void(const Loss&)> on_loss_;
  async::Loop& loop_;
};

class FakeSandbox : public Sandbox {
 public:
  FakeSandbox(FakeProvider& provider, std::shared_ptr<FakeBox> box)
      : provider_(provider), box_(std::move(box)), files_(box_) {
    report_.provider = "fake";
    report_.level = "memory";
  }
  async::Loop& loop() const override { return provider_.loop(); }
  const std::string& id() const override { return box_->id; }
  const SandboxReport& report() const override { return report_; }
  bool gone() const override { return !Lives(); }

  Task<Result<std::unique_ptr<Process>>> Start(ExecSpec spec) override {
    co_await provider_.loop().Yield();
    if (!Lives()) co_return Error(ErrorCode::kUnavailable, "the sandbox has gone");
    if (provider_.script.start_error) co_return *provider_.script.start_error;
    auto command = std::make_shared<FakeCommand>(provider_.loop());
    command->spec = std::move(spec);
    command->handle = box_->next_handle++;
    box_->commands[command->handle] = command;
    co_return std::unique_ptr<Process>(new FakeProcess(command));
  }
  Task<Result<std::unique_ptr<Process>>> Attach(uint32_t handle, uint64_t, uint64_t) override {
    auto command = box_->commands.at(handle);
    // The ring gives again what was on its way to whoever attached before.
    for (auto chunk = command->fetched.rbegin(); chunk != command->fetched.rend(); ++chunk)
      command->output.push_front(*chunk);
    command->fetched.clear();
    co_return std::unique_ptr<Process>(new FakeProcess(command));
  }
  Task<Result<std::vector<ProcessInfo>>> Processes() override {
    std::vector<ProcessInfo> infos;
    for (const auto& [handle, command] : box_->commands)
      infos.push_back({.handle = handle,
                       .pid = static_cast<int>(handle) + 100,
                       .ended = command->outcome.has_value(),
                       .command = command->spec.argv.empty() ? "" : command->spec.argv[0],
                       .label = command->spec.label});
    co_return infos;
  }
  Task<Status> Release(uint32_t handle) override {
    const auto command = box_->commands.find(handle);
    if (command == box_->commands.end()) co_return Error(ErrorCode::kNotFound, "no process");
    command->second->released = true;
    box_->commands.erase(command);
    co_return Status();
  }
  Files& files() override { return files_; }
  Task<Result<std::vector<LimitState>>> Update(Limits limits) override {
    co_await provider_.loop().Yield();
    if (provider_.script.update_error) co_return *provider_.script.update_error;
    box_->updates.push_back(limits);
    co_return std::vector<LimitState>{};
  }
  Task<Status> Pause() override {
    co_await provider_.loop().Yield();
    if (provider_.script.pause_error) co_return *provider_.script.pause_error;
    box_->paused = true;
    co_return Status();
  }
  Task<Status> Resume() override {
    co_await provider_.loop().Yield();
    box_->paused = false;
    co_return Status();
  }
  Task<Result<SandboxStats>> Stats() override {
    if (!Lives()) co_return Error(ErrorCode::kNotFound, "the sandbox has gone");
    co_return box_->stats;
  }
  Task<Result<SandboxStats>> Destroy() override {
    ++provider_.script.destroys;
    co_await provider_.script.destroy_gate.Wait();
    if (provider_.script.destroy_error) co_return *provider_.script.destroy_error;
    for (auto& [handle, command] : box_->commands)
      command->End(OutcomeStatus::kLost, -1, "the sandbox ended under it");
    provider_.boxes.erase(box_->id);
    co_return box_->stats;
  }

 private:
  bool Lives() const { return provider_.boxes.contains(box_->id); }
  FakeProvider& provider_;
  std::shared_ptr<FakeBox> box_;
  SandboxReport report_;
  FakeFiles files_;
};

inline Task<Result<std::unique_ptr<Sandbox>>> FakeProvider::Create(SandboxSpec spec) {
  ++script.creates;
  co_await loop_.Yield();
  co_await script.gate.Wait();
  if (script.create_error) co_return *script.create_error;
  auto box = std::make_shared<FakeBox>();
  box->id = spec.id;
  box->spec = std::move(spec);
  boxes[box->id] = box;
  co_return std::unique_ptr<Sandbox>(new FakeSandbox(*this, box));
}

inline Task<Result<std::unique_ptr<Sandbox>>> FakeProvider::Adopt(std::string id) {
  ++script.adoptions;
  co_await loop_.Yield();
  if (script.adopt_error) co_return *script.adopt_error;
  const auto box = boxes.find(id);
  if (box == boxes.end()) co_return Error(ErrorCode::kNotFound, "no sandbox " + id);
  box->second->paused = false;
  co_return std::unique_ptr<Sandbox>(new FakeSandbox(*this, box->second));
}

}  // namespace caisson::sandbox
