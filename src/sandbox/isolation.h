// How strong the wall around a sandbox is: what providers report, and what callers may demand.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace caisson::sandbox {

// From weakest to strongest.
enum class IsolationLevel : uint8_t {
  kAny,                 // as a demand: none
  kNamespacesRootless,  // the kernel's namespaces, made by an ordinary user
  kNamespaces,          // the same, made by root: ids of its own for each sandbox
};

std::string_view NameOf(IsolationLevel level);
std::optional<IsolationLevel> ParseIsolation(std::string_view name);

// kUnsupported when a sandbox would be isolated less than demanded.
Status CheckIsolation(IsolationLevel offered, IsolationLevel demanded);

}  // namespace caisson::sandbox
