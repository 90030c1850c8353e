#include "providers/native/skeleton.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "providers/native/accounts.h"
#include "sys/mounts.h"
#include "sys/text_file.h"
#include "sys/unique_fd.h"

namespace caisson::native {
namespace {

using sys::UniqueFd;

constexpr std::string_view kHostname = "sandbox";

struct PlainDir {
  const char* path;
  mode_t mode = 0755;
  unsigned owner = 0;
};

constexpr PlainDir kDirs[] = {
    {"proc", 0555},
    {"sys", 0555},
    {"dev"},
    {"tmp", 01777},
    {"workspace", 0755, kUserId},
    {"home"},
    {"home/user", 0755, kUserId},
    {"root", 0700},
    {"run"},
    {"run/lock", 01777},
    {"mnt"},
    {"media"},
    {"opt"},
    {"srv"},
    {"usr"},
    {"etc"},
    {"var"},
    {"var/tmp", 01777},
    {"var/cache"},
    {"var/cache/apt"},
    {"var/cache/apt/archives"},
    {"var/cache/apt/archives/partial", 0700},
    {"var/cache/debconf"},
    {"var/lib"},
    {"var/lib/dpkg"},
    {"var/lib/apt"},
    {"var/lib/apt/lists"},
    {"var/lib/apt/lists/partial", 0700},
    {"var/lib/misc"},
    {"var/lib/pam"},
    {"var/lib/ucf"},
    {"var/log"},
    {"var/log/apt"},
    {"var/spool"},
    {"var/local"},
    {"var/opt"},
    {"var/backups"},
    {"var/mail"},
    {"etc/init.d"},
    {"etc/rc0.d"},
    {"etc/rc1.d"},
    {"etc/rc2.d"},
    {"etc/rc3.d"},
    {"etc/rc4.d"},
    {"etc/rc5.d"},
    {"etc/rc6.d"},
    {"etc/rcS.d"},
    {"etc/systemd"},
    {"etc/systemd/system"},
    {"etc/cron.d"},
    {"etc/cron.daily"},
    {"etc/logrotate.d"},
    {"etc/profile.d"},
    {"etc/default"},
    {"etc/pam.d"},
    {"etc/skel"},
    {"etc/opt"},
};

constexpr std::string_view kProfile = R"sh(# System-wide settings of login shells.
if [ "$(id -u)" -eq 0 ]; then
  PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
else
  PATH="/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"
fi
export PATH
if [ "${PS1-}" ]; then
  if [ "${BASH-}" ] && [ "$BASH" != "/bin/sh" ]; then
    [ -f /etc/bash.bashrc ] && . /etc/bash.bashrc
  elif [ "$(id -u)" -eq 0 ]; then
    PS1='# '
  else
    PS1='$ '
  fi
fi
for i in /etc/profile.d/*.sh; do
  [ -r "$i" ] && . "$i"
done
unset i
)sh";

constexpr std::string_view kBashrc = R"(# System-wide settings of interactive bash shells.
[ -z "${PS1-}" ] && return
shopt -s checkwinsize
PS1='\u@\h:\w\$ '
)";

constexpr std::string_view kNsswitch = R"(passwd: files
group: files
shadow: files
gshadow: files
hosts: files dns
networks: files
protocols: files
services: files
ethers: files
rpc: files
)";

// Accounts live in files only, so one stack serves every tool; root needs no password.
constexpr std::string_view kPam = R"(auth sufficient pam_rootok.so
auth required pam_unix.so
account required pam_unix.so
session required pam_unix.so
password required pam_unix.so sha512
)";
constexpr std::string_view kPamOther = R"(auth required pam_deny.so
account required pam_deny.so
password required pam_deny.so
session required pam_deny.so
)";
constexpr const char* kPamServices[] = {"su",       "su-l",     "runuser",  "runuser-l", "login",
                                        "sudo",     "passwd",   "chpasswd", "newusers",  "chfn",
                                        "chsh",     "chage",    "useradd",  "usermod",   "userdel",
                                        "groupadd", "groupmod", "groupdel", "groupmems", "cron"};
constexpr std::string_view kPamCommon[][2] = {
    {"common-auth", "auth sufficient pam_rootok.so\nauth required pam_unix.so\n"},
    {"common-account", "account required pam_unix.so\n"},
    {"common-password", "password required pam_unix.so sha512\n"},
    {"common-session", "session required pam_unix.so\n"},
    {"common-session-noninteractive", "session required pam_unix.so\n"},
};

// Writes into a directory that nobody else touches. Ids are set only as root.
class Writer {
 public:
  explicit Writer(int root) : root_(root) {}

  Status Dir(const std::string& path, mode_t mode, unsigned owner) {
    if (::mkdirat(root_, path.c_str(), 0700) != 0 && errno != EEXIST)
      return Error::FromErrno("mkdir " + path);
    if (::fchmodat(root_, path.c_str(), mode, 0) != 0) return Error::FromErrno("chmod " + path);
    return Own(path, owner, owner);
  }

  // Makes `path` and what is missing above it, and leaves alone what is there.
  Status Dirs(const std::string& path) {
    for (size_t slash = path.find('/');; slash = path.find('/', slash + 1)) {
      const std::string part = path.substr(0, slash);
      if (::mkdirat(root_, part.c_str(), 0755) == 0) {
        if (::fchmodat(root_, part.c_str(), 0755, 0) != 0) return Error::FromErrno("chmod " + part);
      } else if (errno != EEXIST) {
        return Error::FromErrno("mkdir " + part);
      }
      if (slash == std::string::npos) return {};
    }
  }

  Status File(const std::string& path, std::string_view content, mode_t mode = 0644,
              unsigned owner = 0, unsigned group = 0) {
    UniqueFd file(
        ::openat(root_, path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return Error::FromErrno("create " + path);
    while (!content.empty()) {
      const ssize_t rc = ::write(file.get(), content.data(), content.size());
      if (rc < 0 && errno == EINTR) continue;
      if (rc <= 0) return Error::FromErrno("write " + path);
      content.remove_prefix(static_cast<size_t>(rc));
    }
    if (::fchmod(file.get(), mode) != 0) return Error::FromErrno("chmod " + path);
    return Own(path, owner, group);
  }

  Status Link(const std::string& path, const std::string& target) {
    if (::symlinkat(target.c_str(), root_, path.c_str()) != 0)
      return Error::FromErrno("symlink " + path);
    return {};
  }

 private:
  Status Own(const std::string& path, unsigned owner, unsigned group) {
    if ((owner == 0 && group == 0) || ::geteuid() != 0) return {};
    if (::fchownat(root_, path.c_str(), owner, group, AT_SYMLINK_NOFOLLOW) != 0)
      return Error::FromErrno("chown " + path);
    return {};
  }

  int root_;
};

std::string ReadHostText(int host_root, const char* path) {
  UniqueFd parent(sys::OpenBeneath(host_root, "etc", O_PATH | O_DIRECTORY));
  auto text =
      parent ? sys::ReadText(parent.get(), path, 4 << 20) : Result<std::string>(std::string());
  return std::move(text).value_or({});  // a host without accounts gets the generated ones only
}

Status WriteAccounts(Writer& out, int host_root) {
  const Accounts accounts =
      MakeAccounts(ReadHostText(host_root, "passwd"), ReadHostText(host_root, "group"));
  CAISSON_TRY(out.File("etc/passwd", accounts.passwd));
  CAISSON_TRY(out.File("etc/group", accounts.group));
  CAISSON_TRY(out.File("etc/shadow", accounts.shadow, 0640, 0, accounts.shadow_gid));
  return out.File("etc/gshadow", accounts.gshadow, 0640, 0, accounts.shadow_gid);
}

Status WriteGenerated(Writer& out) {
  CAISSON_TRY(out.File("etc/hostname", fmt::format("{}\n", kHostname)));
  CAISSON_TRY(out.File(
      "etc/hosts",
      fmt::format("127.0.0.1 localhost {0}\n::1 localhost ip6-localhost ip6-loopback {0}\n",
                  kHostname)));
  CAISSON_TRY(out.File("etc/resolv.conf", "# This sandbox has no name server.\n"));
  CAISSON_TRY(out.File("etc/nsswitch.conf", kNsswitch));
  CAISSON_TRY(out.File("etc/profile", kProfile));
  CAISSON_TRY(out.File("etc/bash.bashrc", kBashrc));
  CAISSON_TRY(out.File("etc/pam.d/other", kPamOther));
  for (const char* service : kPamServices)
    CAISSON_TRY(out.File(fmt::format("etc/pam.d/{}", service), kPam));
  for (const auto& [name, text] : kPamCommon)
    CAISSON_TRY(out.File(fmt::format("etc/pam.d/{}", name), text));
  CAISSON_TRY(out.Link("etc/mtab", "/proc/self/mounts"));
  CAISSON_TRY(out.Link("var/run", "/run"));
  return out.Link("var/lock", "/run/lock");
}

Status WriteEtc(Writer& out, int host_root, const std::vector<EtcItem>& items) {
  for (const EtcItem& item : items) {
    CAISSON_TRY(out.Dirs(item.path.substr(0, item.path.rfind('/'))));
    if (item.kind == EtcItem::Kind::kDirectory) CAISSON_TRY(out.Dirs(item.path));
    if (item.kind == EtcItem::Kind::kLink) CAISSON_TRY(out.Link(item.path, item.target));
    if (item.kind != EtcItem::Kind::kFile) continue;
    auto content = ReadEtcFile(host_root, item);
    if (!content && content.error().code() == ErrorCode::kNotFound) continue;  // not to be shown
    CAISSON_TRY(content);
    CAISSON_TRY(out.File(item.path, *content, 0644 | (item.info.st_mode & 0111)));
    constexpr std::string_view kSkel = "etc/skel/";
    if (item.path.starts_with(kSkel))
      CAISSON_TRY(out.File("home/user/" + item.path.substr(kSkel.size()), *content, 0644, kUserId,
                           kUserId));
  }
  return {};
}

}  // namespace

Status WriteSkeleton(int target, int host_root, const SkeletonPlan& plan) {
  Writer out(target);
  for (const PlainDir& dir : kDirs) CAISSON_TRY(out.Dir(dir.path, dir.mode, dir.owner));
  for (const std::string& mount_point : plan.mount_points) CAISSON_TRY(out.Dirs(mount_point));
  for (const SkeletonLink& link : plan.links) CAISSON_TRY(out.Link(link.name, link.target));
  CAISSON_TRY(WriteEtc(out, host_root, plan.etc));
  CAISSON_TRY(WriteAccounts(out, host_root));
  return WriteGenerated(out);
}

}  // namespace caisson::native
