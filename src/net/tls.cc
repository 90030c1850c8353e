#include "net/tls.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>

#include "base/text.h"
#include "net/transport.h"

namespace caisson::net {
namespace {

template <auto kFree>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Ssl = std::unique_ptr<SSL, Free<SSL_free>>;
using Context = std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;

// What OpenSSL last complained about on this thread; forgets the rest.
std::string LastComplaint() {
  char text[256] = "no reason given";
  if (const unsigned long code = ERR_get_error(); code != 0)
    ERR_error_string_n(code, text, sizeof(text));
  ERR_clear_error();
  return text;
}

Error Bad(std::initializer_list<std::string_view> message) {
  return {ErrorCode::kInvalidArgument, Concat(message)};
}

Context NewContext(const SSL_METHOD* method) {
  Context context(SSL_CTX_new(method));
  if (!context) return context;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                         SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  return context;
}

int ChooseHttp11(SSL* /*ssl*/, const unsigned char** out, unsigned char* size,
                 const unsigned char* offered, unsigned int offered_size, void* /*none*/) {
  static constexpr unsigned char kOurs[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, size, kOurs, sizeof(kOurs) - 1, offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

Context ServerContext() {
  Context context = NewContext(TLS_server_method());
  if (!context) return context;
  SSL_CTX_set_alpn_select_cb(context.get(), ChooseHttp11, nullptr);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  return context;
}

// Changes whenever either file does.
struct FileState {
  timespec certificate{}, key{};
  ino_t certificate_inode = 0, key_inode = 0;
  bool operator==(const FileState& other) const {
    const auto same = [](const timespec& a, const timespec& b) {
      return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
    };
    return same(certificate, other.certificate) && same(key, other.key) &&
           certificate_inode == other.certificate_inode && key_inode == other.key_inode;
  }
};

class Server final : public TlsServer {
 public:
  // Of files; the first Load decides whether they can be used.
  Server(std::string certificate, std::string key)
      : certificate_(std::move(certificate)), key_(std::move(key)) {}
  explicit Server(Context context) : context_(std::move(context)) {}

  Status Load() {
    FileState state = Look();
    Context context = ServerContext();
    if (!context) return Error(ErrorCode::kInternal, "OpenSSL: " + LastComplaint());
    if (SSL_CTX_use_certificate_chain_file(context.get(), certificate_.c_str()) != 1)
      return Bad({"the certificate ", Quoted(certificate_), " cannot be used: ", LastComplaint()});
    if (SSL_CTX_use_PrivateKey_file(context.get(), key_.c_str(), SSL_FILETYPE_PEM) != 1)
      return Bad(
          {"the key ", Quoted(key_), " cannot be used with its certificate: ", LastComplaint()});
    if (SSL_CTX_check_private_key(context.get()) != 1)
      return Bad({"the key ", Quoted(key_), " is not the certificate's: ", LastComplaint()});
    context_ = std::move(context);
    loaded_ = state;
    return {};
  }

  Ssl NewSession() {
    const auto now = std::chrono::steady_clock::now();
    if (!certificate_.empty() && now - looked_ >= std::chrono::seconds(1)) {
      looked_ = now;
      // Files that are being replaced may be broken for a moment: the old ones stay in use.
      if (!(Look() == loaded_)) static_cast<void>(Load().has_value());
    }
    Ssl ssl(SSL_new(context_.get()));
    if (ssl) SSL_set_accept_state(ssl.get());
    return ssl;
  }

  std::string CertificatePem() const override {
    const Bio bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_X509(bio.get(), SSL_CTX_get0_certificate(context_.get()));
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return {data, static_cast<size_t>(size)};
  }

  std::string Fingerprint() const override {
    static constexpr char kHex[] = "0123456789abcdef";
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    X509_digest(SSL_CTX_get0_certificate(context_.get()), EVP_sha256(), digest, &size);
    std::string text;
    for (unsigned i = 0; i < size; ++i) {
      text += kHex[digest[i] >> 4];
      text += kHex[digest[i] & 15];
    }
    return text;
  }

 private:
  FileState Look() const {
    FileState state;
    struct stat info{};
    if (stat(certificate_.c_str(), &info) == 0) {
      state.certificate = info.st_mtim;
      state.certificate_inode = info.st_ino;
    }
    if (stat(key_.c_str(), &info) == 0) {
      state.key = info.st_mtim;
      state.key_inode = info.st_ino;
    }
    return state;
  }

  std::string certificate_, key_;  // empty when self-signed
  Context context_;
  FileState loaded_;
  std::chrono::steady_clock::time_point looked_;
};

class Client final : public TlsClient {
 public:
  explicit Client(Context context) : context_(std::move(context)) {}
  Ssl NewSession(const std::string& host) {
    Ssl ssl(SSL_new(context_.get()));
    if (!ssl) return ssl;
    in6_addr address{};
    const bool numeric = inet_pton(AF_INET, host.c_str(), &address) == 1 ||
                         inet_pton(AF_INET6, host.c_str(), &address) == 1;
    const bool named =
        numeric ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), host.c_str()) == 1
                : SSL_set1_host(ssl.get(), host.c_str()) == 1 &&
                      SSL_set_tlsext_host_name(ssl.get(), host.c_str()) == 1;
    if (!named) return nullptr;
    SSL_set_connect_state(ssl.get());
    return ssl;
  }

 private:
  Context context_;
};

// A BIO over a socket that never raises SIGPIPE.
int WriteSocket(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const auto fd = static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio)));
  const ssize_t sent = send(fd, data, static_cast<size_t>(size), MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}
int ReadSocket(BIO* bio, char* into, int size) {
  BIO_clear_retry_flags(bio);
  const auto fd = static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio)));
  const ssize_t got = recv(fd, into, static_cast<size_t>(size), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (got == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(got);
}
long ControlSocket(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

class Tls final : public Transport {
 public:
  Tls(int fd, Ssl ssl)
      : fd_(fd), method_(BIO_meth_new(BIO_TYPE_SOURCE_SINK, "socket")), ssl_(std::move(ssl)) {
    BIO_meth_set_write(method_.get(), WriteSocket);
    BIO_meth_set_read(method_.get(), ReadSocket);
    BIO_meth_set_ctrl(method_.get(), ControlSocket);
    BIO* bio = BIO_new(method_.get());
    BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
  }

  IoResult Read(char* into, size_t size) override {
    ERR_clear_error();
    size_t got = 0;
    if (SSL_read_ex(ssl_.get(), into, size, &got) == 1) return {IoResult::Kind::kBytes, got};
    return Why();
  }

  IoResult Write(std::span<const iovec> parts) override {
    // One record at a time, so that small parts travel together.
    char record[16384];
    size_t size = 0;
    for (const iovec& part : parts) {
      const size_t take = std::min(part.iov_len, sizeof(record) - size);
      memcpy(record + size, part.iov_base, take);
      size += take;
    }
    ERR_clear_error();
    size_t sent = 0;
    if (size == 0) return {IoResult::Kind::kBytes, 0};
    if (SSL_write_ex(ssl_.get(), record, size, &sent) == 1) return {IoResult::Kind::kBytes, sent};
    return Why();
  }

  void FinishWriting() override {
    ERR_clear_error();
    if (!broken_) SSL_shutdown(ssl_.get());
    shutdown(fd_, SHUT_WR);
  }

 private:
  IoResult Why() {
    const int error_number = errno;
    switch (SSL_get_error(ssl_.get(), 0)) {
      case SSL_ERROR_WANT_READ:
        return {IoResult::Kind::kWaitReadable};
      case SSL_ERROR_WANT_WRITE:
        return {IoResult::Kind::kWaitWritable};
      case SSL_ERROR_ZERO_RETURN:
        return {IoResult::Kind::kEnd};
      case SSL_ERROR_SYSCALL:
        broken_ = true;
        return {IoResult::Kind::kBroken, 0, error_number != 0 ? error_number : ECONNRESET};
      default:
        broken_ = true;
        return {IoResult::Kind::kBroken, 0, EPROTO};
    }
  }

  int fd_;
  std::unique_ptr<BIO_METHOD, Free<BIO_meth_free>> method_;
  Ssl ssl_;  // and its BIO
  bool broken_ = false;
};

bool AddExtension(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

std::string AlternativeNames(const std::string& host) {
  in6_addr address{};
  const bool numeric = inet_pton(AF_INET, host.c_str(), &address) == 1 ||
                       inet_pton(AF_INET6, host.c_str(), &address) == 1;
  return Concat({numeric ? "IP:" : "DNS:", host, ",DNS:localhost,IP:127.0.0.1,IP:::1"});
}

Certificate SelfSignedCertificate(EVP_PKEY* key, const std::string& host) {
  constexpr long kLifetime = 90L * 24 * 3600;
  Certificate certificate(X509_new());
  uint64_t serial = 0;
  if (!certificate || RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial)) != 1)
    return nullptr;
  X509* x509 = certificate.get();
  X509_set_version(x509, X509_VERSION_3);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(x509), serial >> 1);
  X509_gmtime_adj(X509_getm_notBefore(x509), -300);
  X509_gmtime_adj(X509_getm_notAfter(x509), kLifetime);
  X509_set_pubkey(x509, key);
  X509_NAME* name = X509_get_subject_name(x509);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>("caisson"), -1, -1, 0);
  X509_set_issuer_name(x509, name);
  const bool extended = AddExtension(x509, NID_subject_alt_name, AlternativeNames(host)) &&
                        AddExtension(x509, NID_basic_constraints, "critical,CA:TRUE") &&
                        AddExtension(x509, NID_ext_key_usage, "serverAuth");
  if (!extended || X509_sign(x509, key, EVP_sha256()) == 0) return nullptr;
  return certificate;
}

}  // namespace

Result<std::shared_ptr<TlsServer>> TlsServer::FromFiles(std::string certificate, std::string key) {
  auto server = std::make_shared<Server>(std::move(certificate), std::move(key));
  CAISSON_TRY(server->Load());
  return std::shared_ptr<TlsServer>(std::move(server));
}

Result<std::shared_ptr<TlsServer>> TlsServer::SelfSigned(std::string host) {
  const auto legal = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == ':';
  };
  if (host.empty() || !std::ranges::all_of(host, legal))
    return Bad({"not a host name or address: ", Quoted(host)});
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate = key ? SelfSignedCertificate(key.get(), host) : nullptr;
  Context context = ServerContext();
  if (!context || !certificate || SSL_CTX_use_certificate(context.get(), certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1)
    return Error(ErrorCode::kInternal, "making a certificate: " + LastComplaint());
  return std::shared_ptr<TlsServer>(std::make_shared<Server>(std::move(context)));
}

Result<std::shared_ptr<TlsClient>> TlsClient::Create(std::string roots) {
  Context context = NewContext(TLS_client_method());
  if (!context) return Error(ErrorCode::kInternal, "OpenSSL: " + LastComplaint());
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  if (roots.empty() ? SSL_CTX_set_default_verify_paths(context.get()) != 1
                    : SSL_CTX_load_verify_file(context.get(), roots.c_str()) != 1)
    return Bad({"the trusted certificates ", Quoted(roots), " cannot be used: ", LastComplaint()});
  return std::shared_ptr<TlsClient>(std::make_shared<Client>(std::move(context)));
}

Result<std::shared_ptr<TlsClient>> TlsClient::FromPem(std::string pem) {
  Context context = NewContext(TLS_client_method());
  if (!context) return Error(ErrorCode::kInternal, "OpenSSL: " + LastComplaint());
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  size_t added = 0;
  while (const Certificate certificate{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)})
    added +=
        X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), certificate.get()) == 1 ? 1 : 0;
  ERR_clear_error();
  if (added == 0) return Bad({"no certificate in the PEM text given"});
  return std::shared_ptr<TlsClient>(std::make_shared<Client>(std::move(context)));
}

std::unique_ptr<Transport> TlsTransport(int fd, TlsServer& server) {
  Ssl ssl = static_cast<Server&>(server).NewSession();
  if (!ssl) return nullptr;
  return std::make_unique<Tls>(fd, std::move(ssl));
}

std::unique_ptr<Transport> TlsTransport(int fd, TlsClient& client, const std::string& host) {
  Ssl ssl = static_cast<Client&>(client).NewSession(host);
  if (!ssl) return nullptr;
  return std::make_unique<Tls>(fd, std::move(ssl));
}

}  // namespace caisson::net
