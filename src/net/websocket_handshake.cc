#include "net/websocket_handshake.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <cstdlib>

#include "base/text.h"
#include "base/utf8.h"

namespace caisson::net {
namespace {

Error Bad(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message))
      .WithRemedy("ask with a WebSocket client, version 13");
}

// 16 bytes in base64: 22 characters and "==".
bool IsKey(std::string_view key) {
  if (key.size() != 24 || !key.ends_with("==")) return false;
  for (const char c : key.substr(0, 22)) {
    const bool legal = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '+' || c == '/';
    if (!legal) return false;
  }
  return true;
}

}  // namespace

std::string NewHandshakeKey() {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof(bytes)) != 1) std::abort();  // no randomness: nothing is safe
  return ToBase64({reinterpret_cast<const char*>(bytes), sizeof(bytes)});
}

std::string AcceptFor(std::string_view key) {
  const std::string text = Concat({key, "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"});
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha1(), nullptr) != 1) std::abort();
  return ToBase64({reinterpret_cast<const char*>(digest), size});
}

Result<HandshakeAnswer> AnswerHandshake(const Request& request, const WebSocketOptions& options) {
  if (request.method != "GET" || request.minor_version == 0)
    return Bad("a WebSocket is asked for with GET and HTTP/1.1");
  if (!request.headers.HasToken("upgrade", "websocket") ||
      !request.headers.HasToken("connection", "upgrade"))
    return Bad("the request does not ask for a WebSocket");
  if (request.headers.Get("sec-websocket-version") != "13")
    return Bad("not version 13 of the WebSocket protocol");
  if (request.headers.Count("sec-websocket-key") != 1 ||
      !IsKey(request.headers.Get("sec-websocket-key")))
    return Bad("the Sec-WebSocket-Key is not 16 bytes in base64");
  HandshakeAnswer answer;
  for (const std::string& ours : options.subprotocols) {
    if (!request.headers.HasToken("sec-websocket-protocol", ours)) continue;
    answer.subprotocol = ours;
    break;
  }
  answer.head =
      Concat({"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
              "Connection: Upgrade\r\nSec-WebSocket-Accept: ",
              AcceptFor(request.headers.Get("sec-websocket-key")), "\r\n"});
  if (!answer.subprotocol.empty())
    answer.head += Concat({"Sec-WebSocket-Protocol: ", answer.subprotocol, "\r\n"});
  for (const Header& header : options.headers) {
    if (!IsToken(header.name) || !IsFieldValue(header.value))
      return Error(ErrorCode::kInternal, "a malformed header for a WebSocket");
    answer.head += Concat({header.name, ": ", header.value, "\r\n"});
  }
  answer.head += "\r\n";
  return answer;
}

}  // namespace caisson::net
