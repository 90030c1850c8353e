// Transport: how bytes go over a socket that does not block: as they are, or in TLS.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "net/tls.h"

namespace caisson::net {

struct IoResult {
  enum class Kind {
    kBytes,         // some, at least one
    kWaitReadable,  // try again when the socket can be read
    kWaitWritable,  // … or written
    kEnd,           // reading: the other end has finished
    kBroken,        // errno or TLS: the connection cannot be used any more
  };
  Kind kind;
  size_t bytes = 0;
  int error = 0;  // kBroken: an errno, EPROTO for TLS
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual IoResult Read(char* into, size_t size) = 0;
  virtual IoResult Write(std::span<const iovec> parts) = 0;
  // Says that nothing more will be written; does not wait.
  virtual void FinishWriting() = 0;
};

std::unique_ptr<Transport> PlainTransport(int fd);
// Null when OpenSSL is out of memory. The descriptor outlives them.
std::unique_ptr<Transport> TlsTransport(int fd, TlsServer& server);
// `host` is checked against the server's certificate: a name or an address.
std::unique_ptr<Transport> TlsTransport(int fd, TlsClient& client, const std::string& host);

}  // namespace caisson::net
