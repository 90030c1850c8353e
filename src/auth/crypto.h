// The few primitives of auth/, on OpenSSL. Pure functions, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "store/data_dir.h"

namespace caisson::auth {

// 32 bytes.
std::string HmacSha256(std::string_view key, std::string_view message);

// A key for one purpose from a master secret; different purposes give unrelated keys.
std::string DeriveKey(std::string_view master, std::string_view purpose);

// The 32-byte secret in the file `name` of the data directory; made when there is none. It stands
// apart from the database so that a stolen copy of that is of no use. kIo when the file is damaged.
Result<std::string> LoadOrMakeSecret(store::DataDir& dir, const std::string& name);

}  // namespace caisson::auth
