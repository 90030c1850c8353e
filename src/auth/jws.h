// JwsKey: a key that checks signatures of JSON Web Signature (RFC 7515), of exactly one algorithm.
//
// The algorithm belongs to the key and comes from the configuration; nothing a token says can
// change it. Immutable, thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace caisson::auth {

enum class JwsAlgorithm { kHs256, kRs256, kEs256, kEdDsa };
std::string_view NameOf(JwsAlgorithm algorithm);  // as in a token's header: "RS256"
// kInvalidArgument, naming those there are.
Result<JwsAlgorithm> JwsAlgorithmFrom(std::string_view name);

class JwsKey {
 public:
  // HS256. kInvalidArgument for a secret of less than 32 bytes, or one that is a public key.
  static Result<JwsKey> FromSecret(std::string secret);
  // A public key in PEM. kInvalidArgument when it is none, does not fit the algorithm, or is an RSA
  // key of less than 2048 bits.
  static Result<JwsKey> FromPem(JwsAlgorithm algorithm, const std::string& pem);
  // The keys of a JSON Web Key Set (RFC 7517) that are for signatures of this algorithm; others are
  // passed over. kInvalidArgument when the text is no key set or none fits.
  static Result<std::vector<JwsKey>> FromJwks(JwsAlgorithm algorithm, std::string_view text);

  JwsAlgorithm algorithm() const { return algorithm_; }
  const std::string& kid() const { return kid_; }  // empty when it has none
  // Whether `signature` (raw bytes) is one of `input` by this key.
  bool Verifies(std::string_view input, std::string_view signature) const;

 private:
  struct Impl;
  JwsKey(JwsAlgorithm algorithm, std::string kid, std::shared_ptr<const Impl> impl)
      : algorithm_(algorithm), kid_(std::move(kid)), impl_(std::move(impl)) {}
  static Result<JwsKey> Fitting(JwsAlgorithm algorithm, std::string kid,
                                std::shared_ptr<const Impl> impl);

  JwsAlgorithm algorithm_;
  std::string kid_;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace caisson::auth
