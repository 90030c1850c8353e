// The handlers of a file's content, for the two ways to it: with a key (file_content_routes.cc) and
// with a signed URL (signed_file_routes.cc). Both take the session from the path's {id}.
#pragma once

#include "api/call.h"
#include "api/reply.h"

namespace caisson::api {

Task<Result<Reply>> ReadFileContent(Call* call);
Task<Result<Reply>> WriteFileContent(Call* call);

}  // namespace caisson::api
