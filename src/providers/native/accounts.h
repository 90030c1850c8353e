// The user and group files of the environment `host`, made from the host's own.
#pragma once

#include <string>
#include <string_view>

namespace caisson::native {

// The account that commands run as unless told otherwise.
inline constexpr unsigned kUserId = 1000;
inline constexpr std::string_view kUserName = "user";

struct Accounts {
  std::string passwd;
  std::string group;
  std::string shadow;  // every account locked
  std::string gshadow;
  unsigned shadow_gid = 0;  // of the group `shadow`, which may read the last two
};

// Takes over the host's system accounts (ids below 1000, and nobody) without passwords and without
// real names, and adds the account `user`. People of the host do not appear, also not as
// members of groups. Lines that are malformed are left out.
Accounts MakeAccounts(std::string_view host_passwd, std::string_view host_group);

}  // namespace caisson::native
