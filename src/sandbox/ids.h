// Ids of sessions and sandboxes: opaque, unguessable, fit for paths, host names and URLs.
#pragma once

#include <string>
#include <string_view>

namespace caisson::sandbox {

// 160 random bits from the kernel as 32 characters of [0-9a-v].
std::string NewId();

// Whether `text` could be an id of ours: [a-z0-9]{8,40}.
bool LooksLikeId(std::string_view text);

}  // namespace caisson::sandbox
