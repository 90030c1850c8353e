#include "auth/jws.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>

#include <algorithm>
#include <array>

#include "auth/crypto.h"
#include "base/encoding.h"
#include "base/text.h"
#include "json/json.h"

namespace caisson::auth {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"HS256", "RS256", "ES256", "EdDSA"};
constexpr size_t kEs256Half = 32;
constexpr size_t kMaxJwks = 1 << 20;

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using PkeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using ContextPtr = std::unique_ptr<EVP_PKEY_CTX, Freer<EVP_PKEY_CTX_free>>;
using NumberPtr = std::unique_ptr<BIGNUM, Freer<BN_free>>;
using BuilderPtr = std::unique_ptr<OSSL_PARAM_BLD, Freer<OSSL_PARAM_BLD_free>>;
using ParamsPtr = std::unique_ptr<OSSL_PARAM, Freer<OSSL_PARAM_free>>;

const unsigned char* Raw(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

Error BadKey(std::string_view why) { return {ErrorCode::kInvalidArgument, std::string(why)}; }

// A member of a JWK that is base64url; empty when it is absent or something else.
std::string Member(const json::Object& jwk, std::string_view name) {
  const json::Value* value = jwk.if_contains(name);
  if (value == nullptr || !value->is_string()) return {};
  return FromBase64Url(std::string_view(value->get_string())).value_or("");
}

std::string_view TextMember(const json::Object& jwk, std::string_view name) {
  const json::Value* value = jwk.if_contains(name);
  if (value == nullptr || !value->is_string()) return {};
  return value->get_string();
}

PkeyPtr FromParams(const char* type, OSSL_PARAM_BLD* builder) {
  const ParamsPtr params(OSSL_PARAM_BLD_to_param(builder));
  const ContextPtr context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (!params || !context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) != 1) {
    return nullptr;
  }
  return PkeyPtr(key);
}

PkeyPtr RsaFromJwk(const json::Object& jwk) {
  const std::string n = Member(jwk, "n");
  const std::string e = Member(jwk, "e");
  const NumberPtr modulus(BN_bin2bn(Raw(n), static_cast<int>(n.size()), nullptr));
  const NumberPtr exponent(BN_bin2bn(Raw(e), static_cast<int>(e.size()), nullptr));
  const BuilderPtr builder(OSSL_PARAM_BLD_new());
  if (n.empty() || e.empty() || !modulus || !exponent || !builder ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get()) != 1) {
    return nullptr;
  }
  return FromParams("RSA", builder.get());
}

PkeyPtr EcFromJwk(const json::Object& jwk) {
  const std::string x = Member(jwk, "x");
  const std::string y = Member(jwk, "y");
  if (TextMember(jwk, "crv") != "P-256" || x.size() != kEs256Half || y.size() != kEs256Half) {
    return nullptr;
  }
  const std::string point = Concat({"\x04", x, y});
  const BuilderPtr builder(OSSL_PARAM_BLD_new());
  if (!builder ||
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) !=
          1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                       point.size()) != 1) {
    return nullptr;
  }
  return FromParams("EC", builder.get());
}

PkeyPtr Ed25519FromJwk(const json::Object& jwk) {
  const std::string x = Member(jwk, "x");
  if (TextMember(jwk, "crv") != "Ed25519" || x.size() != 32) return nullptr;
  return PkeyPtr(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Raw(x), x.size()));
}

// The two halves of an ES256 signature as the DER that OpenSSL wants; empty when it is none.
std::string DerOf(std::string_view signature) {
  if (signature.size() != 2 * kEs256Half) return {};
  const std::unique_ptr<ECDSA_SIG, Freer<ECDSA_SIG_free>> halves(ECDSA_SIG_new());
  NumberPtr r(BN_bin2bn(Raw(signature), kEs256Half, nullptr));
  NumberPtr s(BN_bin2bn(Raw(signature.substr(kEs256Half)), kEs256Half, nullptr));
  if (!halves || !r || !s || ECDSA_SIG_set0(halves.get(), r.get(), s.get()) != 1) return {};
  (void)r.release();  // owned by `halves` now
  (void)s.release();
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(halves.get(), &der);
  std::string bytes;
  if (size > 0) bytes.assign(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return bytes;
}

std::string_view KtyOf(JwsAlgorithm algorithm) {
  constexpr std::array<std::string_view, 4> kTypes = {"oct", "RSA", "EC", "OKP"};
  return kTypes[static_cast<size_t>(algorithm)];
}

// Whether a JWK is meant for signatures of this algorithm.
bool IsFor(const json::Object& jwk, JwsAlgorithm algorithm) {
  if (TextMember(jwk, "kty") != KtyOf(algorithm)) return false;
  if (jwk.contains("use") && TextMember(jwk, "use") != "sig") return false;
  return !jwk.contains("alg") || TextMember(jwk, "alg") == NameOf(algorithm);
}

}  // namespace

struct JwsKey::Impl {
  std::string secret;  // HS256
  PkeyPtr pkey;        // the others
};

std::string_view NameOf(JwsAlgorithm algorithm) { return kNames[static_cast<size_t>(algorithm)]; }

Result<JwsAlgorithm> JwsAlgorithmFrom(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found != kNames.end()) return static_cast<JwsAlgorithm>(found - kNames.begin());
  return Error(ErrorCode::kInvalidArgument, Concat({"there is no algorithm ", Quoted(name)}))
      .WithRemedy("use one of HS256, RS256, ES256, EdDSA");
}

Result<JwsKey> JwsKey::FromSecret(std::string secret) {
  if (secret.find("-----BEGIN") != std::string::npos) {
    return BadKey("a public key is no secret for HS256");
  }
  if (secret.size() < 32) return BadKey("a secret for HS256 has at least 32 bytes");
  auto impl = std::make_shared<Impl>();
  impl->secret = std::move(secret);
  return JwsKey(JwsAlgorithm::kHs256, "", std::move(impl));
}

Result<JwsKey> JwsKey::Fitting(JwsAlgorithm algorithm, std::string kid,
                               std::shared_ptr<const Impl> impl) {
  EVP_PKEY* key = impl->pkey.get();
  if (key == nullptr) return BadKey("this is not a public key");
  const auto misfit = [algorithm] {
    return BadKey(Concat({"the key is of another kind than ", NameOf(algorithm), " needs"}));
  };
  switch (algorithm) {
    case JwsAlgorithm::kHs256:
      return misfit();
    case JwsAlgorithm::kRs256:
      if (EVP_PKEY_get_base_id(key) != EVP_PKEY_RSA) return misfit();
      if (EVP_PKEY_get_bits(key) < 2048) return BadKey("an RSA key has at least 2048 bits");
      break;
    case JwsAlgorithm::kEs256: {
      char group[64] = {};
      size_t size = 0;
      if (EVP_PKEY_get_base_id(key) != EVP_PKEY_EC ||
          EVP_PKEY_get_group_name(key, group, sizeof group, &size) != 1 ||
          std::string_view(group) != "prime256v1") {
        return misfit();
      }
      break;
    }
    case JwsAlgorithm::kEdDsa:
      if (EVP_PKEY_get_base_id(key) != EVP_PKEY_ED25519) return misfit();
      break;
  }
  return JwsKey(algorithm, std::move(kid), std::move(impl));
}

Result<JwsKey> JwsKey::FromPem(JwsAlgorithm algorithm, const std::string& pem) {
  const std::unique_ptr<BIO, Freer<BIO_free>> input(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  auto impl = std::make_shared<Impl>();
  if (input) impl->pkey.reset(PEM_read_bio_PUBKEY(input.get(), nullptr, nullptr, nullptr));
  return Fitting(algorithm, "", std::move(impl));
}

Result<std::vector<JwsKey>> JwsKey::FromJwks(JwsAlgorithm algorithm, std::string_view text) {
  CAISSON_ASSIGN(const json::Value set, json::Parse(text, {.max_bytes = kMaxJwks}));
  const json::Object* object = set.if_object();
  const json::Value* list = object == nullptr ? nullptr : object->if_contains("keys");
  if (list == nullptr || !list->is_array()) return BadKey("this is no JSON Web Key Set");
  std::vector<JwsKey> keys;
  for (const json::Value& entry : list->get_array()) {
    const json::Object* jwk = entry.if_object();
    if (jwk == nullptr || !IsFor(*jwk, algorithm)) continue;
    const std::string kid(TextMember(*jwk, "kid"));
    if (algorithm == JwsAlgorithm::kHs256) {
      CAISSON_ASSIGN(JwsKey key, FromSecret(Member(*jwk, "k")));
      key.kid_ = kid;
      keys.push_back(std::move(key));
      continue;
    }
    auto impl = std::make_shared<Impl>();
    impl->pkey = algorithm == JwsAlgorithm::kRs256   ? RsaFromJwk(*jwk)
                 : algorithm == JwsAlgorithm::kEs256 ? EcFromJwk(*jwk)
                                                     : Ed25519FromJwk(*jwk);
    CAISSON_ASSIGN(JwsKey key, Fitting(algorithm, kid, std::move(impl)));
    keys.push_back(std::move(key));
  }
  if (keys.empty()) {
    return BadKey(Concat({"the key set has no key for ", NameOf(algorithm)}));
  }
  return keys;
}

bool JwsKey::Verifies(std::string_view input, std::string_view signature) const {
  if (algorithm_ == JwsAlgorithm::kHs256) {
    return ConstantTimeEqual(HmacSha256(impl_->secret, input), signature);
  }
  std::string der;
  if (algorithm_ == JwsAlgorithm::kEs256) {
    der = DerOf(signature);
    if (der.empty()) return false;
    signature = der;
  }
  const std::unique_ptr<EVP_MD_CTX, Freer<EVP_MD_CTX_free>> context(EVP_MD_CTX_new());
  const EVP_MD* digest = algorithm_ == JwsAlgorithm::kEdDsa ? nullptr : EVP_sha256();
  return context &&
         EVP_DigestVerifyInit(context.get(), nullptr, digest, nullptr, impl_->pkey.get()) == 1 &&
         EVP_DigestVerify(context.get(), Raw(signature), signature.size(), Raw(input),
                          input.size()) == 1;
}

}  // namespace caisson::auth
