#include "providers/native/host_etc.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <memory>
#include <utility>

#include "sys/mounts.h"
#include "sys/unique_fd.h"

namespace caisson::native {
namespace {

using sys::UniqueFd;
using enum EtcFilter;

constexpr size_t kMaxFile = 8 << 20;
constexpr size_t kMaxItems = 20'000;
constexpr uint64_t kMaxTotal = 64 << 20;
constexpr int kMaxDepth = 8;

struct EtcRule {
  std::string_view path;  // below /etc; a trailing * matches names that begin so
  EtcFilter filter = kPlain;
};

constexpr EtcRule kRules[] = {
    // programs and libraries
    {"alternatives"},
    {"ld.so.cache"},
    {"ld.so.conf"},
    {"ld.so.conf.d"},
    {"python3*"},
    {"perl"},
    {"java-*"},
    {"dotnet"},
    {"fonts"},
    {"terminfo"},
    {"magic"},
    {"magic.mime"},
    {"mime.types"},
    {"manpath.config"},
    {"groff"},
    {"xattr.conf"},
    {"ImageMagick-*"},
    {"texmf"},
    {"gdb"},
    {"R/Makeconf"},
    {"R/ldpaths"},
    {"R/javaconf"},
    {"R/repositories"},
    {"R/Renviron", kShell},
    // name services and time
    {"services"},
    {"protocols"},
    {"rpc"},
    {"networks"},
    {"netconfig"},
    {"gai.conf"},
    {"host.conf"},
    {"localtime"},
    {"timezone"},
    {"locale.alias"},
    {"locale.gen"},
    {"locale.conf"},
    {"default/locale"},
    // certificates, public by nature
    {"ssl/certs"},
    {"ssl/cert.pem"},
    {"ssl/openssl.cnf"},
    {"ca-certificates"},
    {"ca-certificates.conf"},
    {"pki/tls/certs"},
    {"pki/tls/cert.pem"},
    {"pki/tls/openssl.cnf"},
    {"pki/ca-trust/extracted"},
    {"crypto-policies"},
    // the distribution and its package manager
    {"os-release"},
    {"debian_version"},
    {"lsb-release"},
    {"redhat-release"},
    {"alpine-release"},
    {"issue"},
    {"issue.net"},
    {"dpkg"},
    {"debconf.conf"},
    {"apt/sources.list", kApt},
    {"apt/sources.list.d", kApt},
    {"apt/apt.conf"},
    {"apt/apt.conf.d"},
    {"apt/preferences"},
    {"apt/preferences.d"},
    {"apt/keyrings"},
    {"apt/trusted.gpg"},
    {"apt/trusted.gpg.d"},
    // accounts and shells
    {"adduser.conf"},
    {"deluser.conf"},
    {"default/useradd"},
    {"login.defs"},
    {"shells"},
    {"inputrc"},
    {"skel/.bashrc", kShell},
    {"skel/.profile", kShell},
    {"skel/.bash_logout", kShell},
};

constexpr std::string_view kSecretWords[] = {"secret",      "passw",      "token",
                                             "api_key",     "apikey",     "credential",
                                             "private_key", "access_key", "auth_key"};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// "scheme://user:password@host" or "scheme://token@host" anywhere in the text.
bool HasAddressWithUser(std::string_view text) {
  for (size_t at = text.find("://"); at != std::string_view::npos; at = text.find("://", at + 3)) {
    const std::string_view rest = text.substr(at + 3, 512);
    const std::string_view authority = rest.substr(0, rest.find_first_of(" \t\r\n/\"'<>?#;,)"));
    if (authority.contains('@')) return true;
  }
  return false;
}

bool SetsSecretVariable(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string_view::npos) continue;
    const std::string name = Lower(line.substr(0, equals));
    if (std::ranges::any_of(kSecretWords, [&](auto word) { return name.contains(word); }))
      return true;
  }
  return false;
}

class Scanner {
 public:
  explicit Scanner(int host_root) : host_root_(host_root) {}

  Result<EtcScan> Run() {
    CAISSON_ASSIGN(const std::vector<std::string> names, List("etc"));
    for (const EtcRule& rule : kRules) {
      if (!rule.path.ends_with('*')) {
        CAISSON_TRY(Visit(fmt::format("etc/{}", rule.path), rule.filter, 0));
        continue;
      }
      const std::string_view prefix = rule.path.substr(0, rule.path.size() - 1);
      for (const std::string& name : names)
        if (name.starts_with(prefix)) CAISSON_TRY(Visit("etc/" + name, rule.filter, 0));
    }
    return std::move(scan_);
  }

 private:
  Result<std::vector<std::string>> List(const std::string& path) {
    std::vector<std::string> names;
    scan_.looked_at.push_back(path);
    const int fd = sys::OpenBeneath(host_root_, path.c_str(), O_RDONLY | O_DIRECTORY);
    std::unique_ptr<DIR, int (*)(DIR*)> dir(fd < 0 ? nullptr : ::fdopendir(fd), ::closedir);
    if (!dir) return names;  // not there, or not ours to read: nothing to show
    while (const dirent* entry = ::readdir(dir.get())) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      if (names.size() > kMaxItems)
        return Error(ErrorCode::kResourceExhausted, "too many files in the host's /" + path);
    }
    std::ranges::sort(names);
    return names;
  }

  Status Visit(const std::string& path, EtcFilter filter, int depth) {
    const size_t slash = path.rfind('/');
    if (IsSuspiciousName(std::string_view(path).substr(slash + 1))) return {};
    UniqueFd parent(
        sys::OpenBeneath(host_root_, path.substr(0, slash).c_str(), O_PATH | O_DIRECTORY));
    EtcItem item{.path = path, .filter = filter};
    if (depth == 0) scan_.looked_at.push_back(path.substr(0, slash));
    if (!parent ||
        ::fstatat(parent.get(), path.c_str() + slash + 1, &item.info, AT_SYMLINK_NOFOLLOW) != 0)
      return {};
    if (scan_.items.size() >= kMaxItems)
      return Error(ErrorCode::kResourceExhausted, "too many files in the host's /etc");
    if (S_ISLNK(item.info.st_mode)) return AddLink(parent.get(), std::move(item));
    if (S_ISDIR(item.info.st_mode)) return AddDirectory(std::move(item), depth);
    if (S_ISREG(item.info.st_mode)) return AddFile(std::move(item));
    return {};
  }

  Status AddLink(int parent, EtcItem item) {
    char target[4096];
    const ssize_t size =
        ::readlinkat(parent, item.path.c_str() + item.path.rfind('/') + 1, target, sizeof target);
    if (size <= 0 || size >= static_cast<ssize_t>(sizeof target)) return {};
    item.kind = EtcItem::Kind::kLink;
    item.target.assign(target, static_cast<size_t>(size));
    if (IsSystemLink(item.path, item.target)) scan_.items.push_back(std::move(item));
    return {};
  }

  Status AddDirectory(EtcItem item, int depth) {
    const bool open_to_all = (item.info.st_mode & 05) == 05;
    const std::string path = item.path;
    const EtcFilter filter = item.filter;
    if (!open_to_all || depth >= kMaxDepth) return scan_.looked_at.push_back(path), Status();
    item.kind = EtcItem::Kind::kDirectory;
    scan_.items.push_back(std::move(item));
    CAISSON_ASSIGN(const std::vector<std::string> names, List(path));
    for (const std::string& name : names) CAISSON_TRY(Visit(path + "/" + name, filter, depth + 1));
    return {};
  }

  Status AddFile(EtcItem item) {
    scan_.looked_at.push_back(item.path);
    if ((item.info.st_mode & 04) == 0 || item.info.st_size > static_cast<off_t>(kMaxFile))
      return {};
    total_ += static_cast<uint64_t>(item.info.st_size);
    if (total_ > kMaxTotal)
      return Error(ErrorCode::kResourceExhausted, "the host's /etc is too large to copy");
    item.kind = EtcItem::Kind::kFile;
    scan_.items.push_back(std::move(item));
    return {};
  }

  int host_root_;
  uint64_t total_ = 0;
  EtcScan scan_;
};

}  // namespace

Result<EtcScan> ScanHostEtc(int host_root) { return Scanner(host_root).Run(); }

Result<std::string> ReadEtcFile(int host_root, const EtcItem& item) {
  UniqueFd file(sys::OpenBeneath(host_root, item.path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat info;
  if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      (info.st_mode & 04) == 0 || info.st_size > static_cast<off_t>(kMaxFile)) {
    return Error(ErrorCode::kNotFound, item.path + " is not for everybody");
  }
  std::string content(static_cast<size_t>(info.st_size) + 1, '\0');
  size_t size = 0;
  for (ssize_t rc; size < content.size(); size += static_cast<size_t>(rc)) {
    rc = ::read(file.get(), content.data() + size, content.size() - size);
    if (rc < 0) return Error::FromErrno("read " + item.path);
    if (rc == 0) break;
  }
  if (size == content.size())
    return Error(ErrorCode::kNotFound, item.path + " grows while it is read");
  content.resize(size);
  if (item.filter == kApt) content = CutAptCredentials(item.path, content);
  if (HoldsCredential(content, item.filter))
    return Error(ErrorCode::kNotFound, item.path + " holds a credential");
  return content;
}

bool HoldsCredential(std::string_view content, EtcFilter filter) {
  if (content.contains("PRIVATE KEY") || HasAddressWithUser(content)) return true;
  return filter == kShell && SetsSecretVariable(content);
}

std::string CutAptCredentials(std::string_view path, std::string_view content) {
  // One-line sources: a line is an entry. deb822 sources: a paragraph is.
  const std::string_view separator = path.ends_with(".sources") ? "\n\n" : "\n";
  std::string kept;
  while (!content.empty()) {
    const size_t end = content.find(separator);
    const size_t size = end == std::string_view::npos ? content.size() : end + separator.size();
    if (const std::string_view entry = content.substr(0, size); !HasAddressWithUser(entry))
      kept += entry;
    content.remove_prefix(size);
  }
  return kept;
}

bool IsSuspiciousName(std::string_view name) {
  const std::string lower = Lower(name);
  for (std::string_view word :
       {"private", "secret", "passw", "credential", "token", "auth.conf", "shadow", "netrc"})
    if (lower.contains(word)) return true;
  for (std::string_view end :
       {".key", ".p12", ".pfx", ".jks", ".kdbx", "~", ".bak", ".orig", ".save", ".swp", ".dpkg-old",
        ".dpkg-new", ".dpkg-dist", ".dpkg-bak", ".ucf-old", ".ucf-dist", ".rpmsave", ".rpmnew"})
    if (lower.ends_with(end)) return true;
  return lower.starts_with("id_") && !lower.ends_with(".pub");
}

bool IsSystemLink(std::string_view path, std::string_view target) {
  std::vector<std::string_view> parts;
  const auto walk = [&parts](std::string_view text) {
    while (!text.empty()) {
      const size_t slash = std::min(text.find('/'), text.size());
      const std::string_view part = text.substr(0, slash);
      text.remove_prefix(std::min(slash + 1, text.size()));
      if (part == "..") {
        if (!parts.empty()) parts.pop_back();
      } else if (!part.empty() && part != ".") {
        parts.push_back(part);
      }
    }
  };
  if (!target.starts_with('/')) walk(path.substr(0, path.rfind('/')));
  walk(target);
  if (parts.size() < 2) return false;
  constexpr std::array kTops = {"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc"};
  return std::ranges::find(kTops, parts[0]) != kTops.end();
}

}  // namespace caisson::native
