// Which files of the host's /etc a sandbox of the environment `host` may see.
//
// Allow-list first: what no rule names does not exist inside. Of what a rule names, only files that
// every user of the host can read are taken, so root's rights never widen the view; and of those,
// none whose name or content looks like a credential. Links are taken only when they lead into the
// system directories or /etc; they are copied as links and never followed.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace caisson::native {

enum class EtcFilter {
  kPlain,  // dropped whole when a credential shows
  kShell,  // also dropped when a variable named like a secret is set
  kApt,    // entries with a user or password in their address are cut out, the rest stays
};

struct EtcItem {
  enum class Kind { kDirectory, kFile, kLink };
  Kind kind;
  std::string path;    // relative to the host's root: "etc/ssl/certs/x.pem"
  std::string target;  // of a link
  EtcFilter filter = EtcFilter::kPlain;
  struct stat info{};
};

struct EtcScan {
  std::vector<EtcItem> items;          // parents before children
  std::vector<std::string> looked_at;  // every directory and file whose change may change items
};

// Walks the allow-list below the directory `host_root`. kResourceExhausted when /etc is absurdly
// large.
Result<EtcScan> ScanHostEtc(int host_root);

// The content of a kFile item fit for a sandbox. kNotFound when the item must not be shown: not a
// regular file any more, not readable for everybody, too large, or holding a credential.
Result<std::string> ReadEtcFile(int host_root, const EtcItem& item);

// The text rules, for tests.
bool HoldsCredential(std::string_view content, EtcFilter filter);
std::string CutAptCredentials(std::string_view path, std::string_view content);
bool IsSuspiciousName(std::string_view name);
// Whether a link at `path` ("etc/x/y") to `target` stays within /usr, /bin, /sbin, /lib* and /etc.
bool IsSystemLink(std::string_view path, std::string_view target);

}  // namespace caisson::native
