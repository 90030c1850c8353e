// TlsServer, TlsClient: certificates and rules for TLS connections, at least version 1.2.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace caisson::net {

// A server's certificate and key. When the files change, connections accepted a second later or
// more use the new ones; when the new ones are broken, the old ones stay in use.
class TlsServer {
 public:
  // PEM files: the chain, its own certificate first, and the key. Errors: kInvalidArgument (cannot
  // be read, do not belong together).
  static Result<std::shared_ptr<TlsServer>> FromFiles(std::string certificate, std::string key);
  // A key made now and a certificate for `host` (a name or an address) signed by itself, good for
  // 90 days: for trials.
  static Result<std::shared_ptr<TlsServer>> SelfSigned(std::string host);

  virtual ~TlsServer() = default;
  // The certificate in PEM, as a client's trusted file would have it.
  virtual std::string CertificatePem() const = 0;
  // SHA-256 of the certificate in hex, for people to compare.
  virtual std::string Fingerprint() const = 0;
};

// Whom a client believes. Always checks the name; there is no way not to.
class TlsClient {
 public:
  // `roots`: a PEM file of trusted certificates, or empty for the system's.
  static Result<std::shared_ptr<TlsClient>> Create(std::string roots);
  static Result<std::shared_ptr<TlsClient>> FromPem(std::string pem);
  virtual ~TlsClient() = default;
};

}  // namespace caisson::net
