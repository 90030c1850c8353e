// CrashPoint: a place where a test may end the server, between two effects.
//
// In the shipped program it does nothing, and nothing can make it. `caisson-hooks`, which is built
// for tests alone, links tests/hooks/crash_point.cc in place of crash_point.cc: there the process
// kills itself when it passes the point that CAISSON_SERVER_CRASH names.
#pragma once

namespace caisson {

// `name` is OPERATION.EFFECT; tests/reliability/test_server_crash_points.py finds every one in the
// sources and expects the operation to pass it.
void CrashPoint(const char* name);

}  // namespace caisson
