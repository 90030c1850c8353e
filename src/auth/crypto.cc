#include "auth/crypto.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstdlib>

#include "base/encoding.h"
#include "base/random.h"
#include "base/text.h"

namespace caisson::auth {

std::string HmacSha256(std::string_view key, std::string_view message) {
  std::string digest(32, '\0');
  unsigned size = 0;
  const auto* given = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                           reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                           reinterpret_cast<unsigned char*>(digest.data()), &size);
  if (given == nullptr || size != digest.size()) std::abort();  // no check goes on without it
  return digest;
}

std::string DeriveKey(std::string_view master, std::string_view purpose) {
  return HmacSha256(master, Concat({"caisson:", purpose}));
}

Result<std::string> LoadOrMakeSecret(store::DataDir& dir, const std::string& name) {
  auto text = store::ReadSmallFile(dir.fd(), name, 65);
  if (!text && text.error().code() == ErrorCode::kNotFound) {
    std::string secret = RandomBytes(32);
    CAISSON_TRY(store::WriteFileAtomically(dir.fd(), name, ToHex(secret) + "\n"));
    return secret;
  }
  if (!text) return std::move(text).error();
  if (text->ends_with('\n')) text->pop_back();
  auto secret = FromHex(*text);
  if (!secret || secret->size() != 32) {
    return Error(ErrorCode::kIo, Concat({dir.PathOf(name), " is damaged"}))
        .WithRemedy("restore it from a backup; without it no API key can be checked");
  }
  return *std::move(secret);
}

}  // namespace caisson::auth
