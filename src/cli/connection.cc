#include "cli/connection.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/text.h"
#include "json/json.h"
#include "json/reader.h"
#include "sys/unique_fd.h"

namespace caisson::cli {
namespace {

constexpr size_t kMaxLogin = 64 << 10;

std::string ConfigDirectory() {
  const char* xdg = getenv("XDG_CONFIG_HOME");
  if (xdg != nullptr && xdg[0] == '/') return std::string(xdg) + "/caisson";
  const char* home = getenv("HOME");
  return std::string(home == nullptr || *home == '\0' ? "/" : home) + "/.config/caisson";
}

Status MakeDirectories(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST)
      return Error::FromErrno("making the directory " + part);
    if (slash == std::string::npos) return {};
  }
}

Result<std::string> ReadPrivately(int fd, const std::string& path) {
  struct stat info{};
  if (fstat(fd, &info) != 0) return Error::FromErrno("reading " + path);
  if ((info.st_mode & 077) != 0 || info.st_uid != geteuid())
    return Error(ErrorCode::kPermissionDenied, path + " can be read or changed by others")
        .WithRemedy("chmod 600 it, or remove it and log in again; a key in it may be known");
  std::string text(kMaxLogin + 1, '\0');
  size_t size = 0;
  for (ssize_t got; size < text.size(); size += static_cast<size_t>(got)) {
    got = read(fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR)
      got = 0;
    else if (got < 0)
      return Error::FromErrno("reading " + path);
    else if (got == 0)
      break;
  }
  text.resize(size);
  return text;
}

Status WriteAndSync(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t wrote = write(fd, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return Error::FromErrno("writing " + path);
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  if (fsync(fd) != 0) return Error::FromErrno("writing " + path);
  return {};
}

// One setting: the option as it was given, or what is stored, or the default.
Setting Resolve(const Parsed& parsed, std::string_view name, std::string_view env,
                const std::string& stored, std::string_view otherwise) {
  if (const auto given = parsed.Get<std::string>(name)) {
    const bool line = parsed.SourceOf(name) == ValueSource::kCommandLine;
    return {*given, line ? Concat({"--", name}) : std::string(env)};
  }
  if (!stored.empty()) return {stored, LoginPath()};
  return {std::string(otherwise), "default"};
}

}  // namespace

std::string LoginPath() { return ConfigDirectory() + "/client.json"; }

Result<std::optional<Login>> LoadLogin() {
  const std::string path = LoginPath();
  const sys::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) return std::optional<Login>();
  if (!fd) return Error::FromErrno("opening " + path);
  CAISSON_ASSIGN(const std::string text, ReadPrivately(fd.get(), path));
  const auto refused = [&](Error error) {
    return std::move(error).Because(path).WithRemedy("log in again: caisson login");
  };
  auto value = json::Parse(text, {.max_bytes = kMaxLogin});
  if (!value) return refused(std::move(value).error());
  json::Reader in(*value);
  Login login;
  login.url = in.Required<std::string>("url", {.min = 1});
  login.key = in.Optional<std::string>("key").value_or("");
  login.ca_file = in.Optional<std::string>("ca_file").value_or("");
  if (auto read = in.Finish(); !read) return refused(std::move(read).error());
  return std::optional(std::move(login));
}

Status StoreLogin(const Login& login) {
  const std::string path = LoginPath(), fresh = path + ".new";
  CAISSON_TRY(MakeDirectories(ConfigDirectory()));
  if (unlink(fresh.c_str()) != 0 && errno != ENOENT) return Error::FromErrno("removing " + fresh);
  const sys::UniqueFd fd(
      open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return Error::FromErrno("making " + fresh);
  json::Object object{{"url", login.url}};
  if (!login.key.empty()) object["key"] = login.key;
  if (!login.ca_file.empty()) object["ca_file"] = login.ca_file;
  auto written = WriteAndSync(fd.get(), json::Write(object) + "\n", fresh);
  if (written && rename(fresh.c_str(), path.c_str()) == 0) return {};
  Error error = written ? Error::FromErrno("writing " + path) : std::move(written).error();
  unlink(fresh.c_str());
  return error;
}

Result<bool> ForgetLogin() {
  const std::string path = LoginPath();
  if (unlink(path.c_str()) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return Error::FromErrno("removing " + path);
}

Result<Connection> ResolveConnection(const Parsed& parsed) {
  // What is given whole needs nothing that is stored, not even that it can be read.
  const bool whole = parsed.Given("url") && parsed.Given("key");
  std::optional<Login> login;
  if (!whole) {
    CAISSON_ASSIGN(login, LoadLogin());
  }
  const Login stored = login.value_or(Login());
  Connection connection;
  connection.url = Resolve(parsed, "url", "CAISSON_API_URL", stored.url, kDefaultUrl);
  const bool same = connection.url.value == stored.url;
  connection.key = Resolve(parsed, "key", "CAISSON_API_KEY", same ? stored.key : "", "");
  connection.ca_file =
      Resolve(parsed, "ca-file", "CAISSON_CA_FILE", same ? stored.ca_file : "", "");
  return connection;
}

}  // namespace caisson::cli
