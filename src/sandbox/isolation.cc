#include "sandbox/isolation.h"

#include <fmt/core.h>

namespace caisson::sandbox {
namespace {

struct Named {
  IsolationLevel level;
  std::string_view name;
};
constexpr Named kLevels[] = {{IsolationLevel::kAny, "any"},
                             {IsolationLevel::kNamespacesRootless, "namespaces-rootless"},
                             {IsolationLevel::kNamespaces, "namespaces"}};

}  // namespace

std::string_view NameOf(IsolationLevel level) { return kLevels[static_cast<size_t>(level)].name; }

std::optional<IsolationLevel> ParseIsolation(std::string_view name) {
  for (const auto& row : kLevels)
    if (row.name == name) return row.level;
  return std::nullopt;
}

Status CheckIsolation(IsolationLevel offered, IsolationLevel demanded) {
  if (offered >= demanded) return {};
  return Error(ErrorCode::kUnsupported,
               fmt::format("a sandbox here would have the isolation \"{}\", less than the \"{}\" "
                           "that is demanded",
                           NameOf(offered), NameOf(demanded)))
      .WithRemedy(demanded == IsolationLevel::kNamespaces ? "run as root, or demand less"
                                                          : "use another provider");
}

}  // namespace caisson::sandbox
