#include "init/passwd.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "sys/unique_fd.h"

namespace caisson::init {
namespace {

constexpr size_t kMaxLine = 16 * 1024;
constexpr size_t kMaxNameShown = 64;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Cuts the text up to `separator` off the front of `rest`.
std::string_view Cut(std::string_view& rest, char separator) {
  const size_t at = std::min(rest.find(separator), rest.size());
  const std::string_view head = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return head;
}

std::string Quoted(std::string_view spec) {
  std::string out = "user \"";
  for (const char c : spec.substr(0, kMaxNameShown)) out += c >= ' ' && c <= '~' ? c : '?';
  return out += '"';
}

struct PasswdLine {
  std::string_view name, uid, gid, home;
};

std::optional<PasswdLine> ParsePasswdLine(std::string_view line) {
  if (line.size() > kMaxLine || std::ranges::count(line, ':') != 6) return std::nullopt;
  PasswdLine parsed;
  parsed.name = Cut(line, ':');
  Cut(line, ':');  // password
  parsed.uid = Cut(line, ':');
  parsed.gid = Cut(line, ':');
  Cut(line, ':');  // comment
  parsed.home = Cut(line, ':');
  return parsed;
}

bool ListHas(std::string_view members, std::string_view name) {
  while (!members.empty()) {
    if (Cut(members, ',') == name) return true;
  }
  return false;
}

std::vector<uint32_t> MembershipsOf(std::string_view name, uint32_t primary,
                                    std::string_view group) {
  std::vector<uint32_t> groups;
  while (!group.empty() && groups.size() < kMaxGroups) {
    std::string_view line = Cut(group, '\n');
    if (line.size() > kMaxLine * 4) continue;
    Cut(line, ':');
    Cut(line, ':');
    const auto gid = ParseId(Cut(line, ':'));
    if (!gid || *gid == primary || !ListHas(line, name)) continue;
    if (std::ranges::find(groups, *gid) == groups.end()) groups.push_back(*gid);
  }
  return groups;
}

std::string ReadDatabase(const char* etc, const char* name) {
  const std::string path = std::string(etc) + name;
  const sys::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info;
  if (!fd || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  if (info.st_size <= 0 || info.st_size > static_cast<off_t>(kMaxDatabaseSize)) return {};
  std::string text(static_cast<size_t>(info.st_size), '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = read(fd.get(), text.data() + have, text.size() - have);
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  text.resize(have);
  return text;
}

}  // namespace

bool IsUserName(std::string_view text) {
  if (text.empty() || text.size() > 32) return false;
  const auto starts = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  if (!starts(text[0])) return false;
  if (text.back() == '$') text.remove_suffix(1);
  return std::ranges::all_of(text, [&](char c) { return starts(c) || IsDigit(c) || c == '-'; });
}

std::optional<uint32_t> ParseId(std::string_view text) {
  if (text.empty() || text.size() > 5 || !std::ranges::all_of(text, IsDigit)) return std::nullopt;
  if (text.size() > 1 && text[0] == '0') return std::nullopt;
  uint32_t value = 0;
  for (const char c : text) value = value * 10 + static_cast<uint32_t>(c - '0');
  if (value > kMaxId) return std::nullopt;
  return value;
}

Result<User> FindUser(std::string_view spec, std::string_view passwd, std::string_view group) {
  const auto number = ParseId(spec);
  if (!number && !IsUserName(spec)) {
    return Error::FromErrno(Quoted(spec) + " is neither a name of /etc/passwd nor a uid 0..65534",
                            EINVAL);
  }
  while (!passwd.empty()) {
    const auto line = ParsePasswdLine(Cut(passwd, '\n'));
    if (!line || (number ? line->uid != spec : line->name != spec)) continue;
    const auto uid = ParseId(line->uid);
    const auto gid = ParseId(line->gid);
    if (!uid || !gid) {
      return Error::FromErrno(Quoted(spec) + " has ids out of range in /etc/passwd", EINVAL);
    }
    User user{.name = std::string(line->name), .uid = *uid, .gid = *gid};
    user.groups = MembershipsOf(line->name, *gid, group);
    const bool absolute = line->home.starts_with('/') && !line->home.contains('\0');
    if (absolute && line->home.size() < 4096) user.home = line->home;
    return user;
  }
  if (!number) return Error::FromErrno(Quoted(spec) + " is not in /etc/passwd", ENOENT);
  return User{.uid = *number, .gid = *number};
}

Result<User> ResolveUser(std::string_view spec, const char* etc) {
  return FindUser(spec, ReadDatabase(etc, "/passwd"), ReadDatabase(etc, "/group"));
}

}  // namespace caisson::init
