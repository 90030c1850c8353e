#include "providers/native/accounts.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <vector>

namespace caisson::native {
namespace {

constexpr unsigned kNobody = 65534;
constexpr size_t kMaxAccounts = 2000;

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<unsigned> SystemId(std::string_view text) {
  unsigned id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return id < kUserId || id == kNobody ? std::optional(id) : std::nullopt;
}

bool IsName(std::string_view name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  return !name.empty() && name.size() <= 32 && name[0] != '-' &&
         name.find_first_not_of(kAllowed) == std::string_view::npos && name != kUserName;
}

bool IsPath(std::string_view path) {
  return path.size() <= 256 && (path.empty() || path[0] == '/') &&
         std::ranges::all_of(path, [](unsigned char c) { return c > ' ' && c < 127; });
}

struct Names {
  std::set<std::string_view> users;
  std::set<std::string_view> groups;
};

void AddUser(Accounts& accounts, std::string_view name, unsigned uid, unsigned gid,
             std::string_view home, std::string_view shell) {
  accounts.passwd += fmt::format("{}:x:{}:{}::{}:{}\n", name, uid, gid, home, shell);
  accounts.shadow += fmt::format("{}:!*:1:0:99999:7:::\n", name);
}

void AddGroup(Accounts& accounts, std::string_view name, unsigned gid, std::string_view members) {
  accounts.group += fmt::format("{}:x:{}:{}\n", name, gid, members);
  accounts.gshadow += fmt::format("{}:!::{}\n", name, members);
  if (name == "shadow") accounts.shadow_gid = gid;
}

}  // namespace

Accounts MakeAccounts(std::string_view host_passwd, std::string_view host_group) {
  Accounts accounts;
  Names seen;
  AddUser(accounts, "root", 0, 0, "/root", "/bin/bash");
  seen.users.insert("root");
  for (const std::string_view line : Split(host_passwd, '\n')) {
    const auto field = Split(line, ':');
    if (field.size() != 7 || seen.users.size() >= kMaxAccounts) continue;
    const auto uid = SystemId(field[2]);
    const auto gid = SystemId(field[3]);
    if (!uid || *uid == 0 || !gid || !IsName(field[0]) || !IsPath(field[5]) || !IsPath(field[6]))
      continue;
    if (seen.users.insert(field[0]).second)
      AddUser(accounts, field[0], *uid, *gid, field[5], field[6]);
  }
  AddUser(accounts, kUserName, kUserId, kUserId, "/home/user", "/bin/bash");

  AddGroup(accounts, "root", 0, "");
  seen.groups.insert("root");
  for (const std::string_view line : Split(host_group, '\n')) {
    const auto field = Split(line, ':');
    if (field.size() != 4 || seen.groups.size() >= kMaxAccounts) continue;
    const auto gid = SystemId(field[2]);
    if (!gid || *gid == 0 || !IsName(field[0]) || !seen.groups.insert(field[0]).second) continue;
    std::string members;
    for (const std::string_view member : Split(field[3], ','))
      if (seen.users.contains(member)) members.append(members.empty() ? "" : ",").append(member);
    AddGroup(accounts, field[0], *gid, members);
  }
  AddGroup(accounts, kUserName, kUserId, "");
  return accounts;
}

}  // namespace caisson::native
