// A command on a server and our own streams, joined over a WebSocket (api/process_stream.h has the
// messages) until the command ends or we leave it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/api_client.h"
#include "json/json.h"
#include "net/websocket.h"

namespace caisson::cli {

// kOwned: signals to us go to the command, a second one kills it, and so does nobody reading our
// output. kVisited: then we leave it alone.
enum class Bond { kOwned, kVisited };
enum class Input { kNone, kForwarded };
enum class Screen { kPlain, kRaw };      // kRaw: our terminal is the command's
enum class LeaveBy { kNothing, kKeys };  // kKeys: Ctrl-P Ctrl-Q
enum class Keep { kPassOn, kCollect };   // kCollect: output is kept, not written

struct LinkPlan {
  std::optional<json::Value> first;  // the message that starts the command
  Bond bond = Bond::kOwned;
  Input input = Input::kForwarded;
  Screen screen = Screen::kPlain;
  LeaveBy leave_by = LeaveBy::kNothing;
  Keep keep = Keep::kPassOn;
  uint64_t out_from = 0, err_from = 0;  // what the server was asked to begin with
};

struct LinkEnd {
  std::optional<json::Value> ended;  // how the command ended; nothing when we left it
  uint64_t process_id = 0;
  uint64_t out_seen = 0, err_seen = 0;  // offsets to go on from
  std::string out, err;                 // collected
};

// The Error of a command that could not be started is the server's. A connection that breaks is
// kUnavailable.
Task<Result<LinkEnd>> JoinProcess(async::Loop* loop, net::WebSocket* socket, LinkPlan plan);

// Writes all of `data`; false when nobody reads it.
bool WriteTo(int fd, std::string_view data);

}  // namespace caisson::cli
