#include "auth/jwt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <memory>

#include "auth/crypto.h"
#include "base/encoding.h"

namespace caisson::auth {
namespace {

using testing::HasSubstr;

constexpr int64_t kNow = 1'700'000'000'000;
const std::string kSecret(32, 's');

std::string Input(const std::string& header, const std::string& claims) {
  return ToBase64Url(header) + "." + ToBase64Url(claims);
}
std::string Hs256(const std::string& header, const std::string& claims,
                  const std::string& secret = kSecret) {
  const std::string input = Input(header, claims);
  return input + "." + ToBase64Url(HmacSha256(secret, input));
}

const std::string kHeader = R"({"alg":"HS256","typ":"JWT"})";
// `more` replaces or adds claims: it comes first, and a claim that is named there is left out
// below.
std::string Claims(const std::string& more = "") {
  std::string text = "{" + more;
  const std::pair<const char*, const char*> usual[] = {{"iss", R"("https://id.example")"},
                                                       {"aud", R"("caisson")"},
                                                       {"sub", R"("ann")"},
                                                       {"exp", "1700000600"},
                                                       {"role", R"("developer")"},
                                                       {"tenant", R"("acme")"}};
  for (const auto& [name, value] : usual) {
    const std::string quoted = std::string("\"") + name + "\":";
    if (more.find(quoted) != std::string::npos) continue;
    if (text.size() > 1) text += ",";
    text += quoted + value;
  }
  return text + "}";
}

JwtIssuer Issuer() {
  return {.issuer = "https://id.example",
          .audience = "caisson",
          .algorithm = JwsAlgorithm::kHs256,
          .key = kSecret};
}
JwtVerifier Verifier(const JwtIssuer& issuer = Issuer()) {
  auto verifier = JwtVerifier::Create({issuer});
  EXPECT_TRUE(verifier) << verifier.error().message();
  return *std::move(verifier);
}

// --- RFC vectors ---------------------------------------------------------------------------------

// Payload of RFC 7515 A.1 to A.3.
const std::string kRfcPayload =
    ".eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlf"
    "Q";

struct Vector {
  const char* name;
  JwsAlgorithm algorithm;
  const char* jwk;
  std::string input;
  const char* signature;
};

class JwsVectorTest : public testing::TestWithParam<Vector> {};

TEST_P(JwsVectorTest, Verifies) {
  const Vector& vector = GetParam();
  const auto keys =
      JwsKey::FromJwks(vector.algorithm, std::string("{\"keys\":[") + vector.jwk + "]}");
  ASSERT_TRUE(keys) << keys.error().message();
  const JwsKey& key = keys->front();
  std::string signature = *FromBase64Url(vector.signature);
  EXPECT_TRUE(key.Verifies(vector.input, signature));
  EXPECT_FALSE(key.Verifies(vector.input + "x", signature));
  EXPECT_FALSE(key.Verifies(vector.input, ""));
  EXPECT_FALSE(key.Verifies(vector.input, signature + "x"));
  signature.back() = static_cast<char>(signature.back() ^ 1);
  EXPECT_FALSE(key.Verifies(vector.input, signature));
}

INSTANTIATE_TEST_SUITE_P(
    Rfc, JwsVectorTest,
    testing::Values(
        Vector{
            "Rfc7515A1", JwsAlgorithm::kHs256,
            R"({"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"})",
            "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9" + kRfcPayload,
            "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"},
        Vector{
            "Rfc7515A2", JwsAlgorithm::kRs256,
            R"({"kty":"RSA","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ","e":"AQAB"})",
            "eyJhbGciOiJSUzI1NiJ9" + kRfcPayload,
            "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_"
            "O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_"
            "nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--"
            "xi12jzDwusC-"
            "eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmt"
            "VrBp0igcN_IoypGlUPQGe77Rw"},
        Vector{
            "Rfc7515A3", JwsAlgorithm::kEs256,
            R"({"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"})",
            "eyJhbGciOiJFUzI1NiJ9" + kRfcPayload,
            "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-"
            "Kg6NU1Q"},
        Vector{"Rfc8037A4", JwsAlgorithm::kEdDsa,
               R"({"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})",
               "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
               "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_"
               "MuM0KAg"}),
    [](const auto& info) { return info.param.name; });

// --- what passes ---------------------------------------------------------------------------------

TEST(Jwt, AGoodTokenSaysWhoItIs) {
  const auto principal = Verifier().Check(Hs256(kHeader, Claims()), kNow);
  ASSERT_TRUE(principal) << principal.error().message();
  EXPECT_EQ(principal->tenant, "acme");
  EXPECT_EQ(principal->key_id, "jwt:ann");
  EXPECT_EQ(principal->role, Role::kDeveloper);
  EXPECT_TRUE(principal->scopes.empty());
}

TEST(Jwt, VariantsThatAreAllowedPass) {
  const JwtVerifier verifier = Verifier();
  for (const std::string& claims :
       {Claims(R"("aud":["other","caisson"])"), Claims(R"("exp":1699999941)"),  // within the leeway
        Claims(R"("exp":1700086400)"), Claims(R"("nbf":1700000059)"), Claims(R"("iat":1700000059)"),
        Claims(R"("exp":1700000600.5)"), Claims(R"("other":{"a":[1]})")}) {
    const auto principal = verifier.Check(Hs256(kHeader, claims), kNow);
    EXPECT_TRUE(principal) << claims << ": " << principal.error().message();
  }
  EXPECT_TRUE(verifier.Check(Hs256(R"({"alg":"HS256"})", Claims()), kNow));
  EXPECT_TRUE(verifier.Check(Hs256(R"({"alg":"HS256","typ":"at+JWT","kid":"x"})", Claims()), kNow));
}

TEST(Jwt, ClaimsMayHaveOtherNamesAndScopesNarrow) {
  JwtIssuer issuer = Issuer();
  issuer.role_claim = "https://x/role";
  issuer.scope_claim = "scope";
  const JwtVerifier verifier = Verifier(issuer);
  const auto principal = verifier.Check(
      Hs256(kHeader, Claims(R"("https://x/role":"admin","scope":"read:sessions")")), kNow);
  ASSERT_TRUE(principal) << principal.error().message();
  EXPECT_EQ(principal->role, Role::kAdmin);
  EXPECT_TRUE(principal->Allows(Verb::kRead, Resource::kSessions));
  EXPECT_FALSE(principal->Allows(Verb::kRead, Resource::kKeys));
  for (const char* claims :
       {R"("https://x/role":"admin")", R"("https://x/role":"admin","scope":"")",
        R"("https://x/role":"admin","scope":"all")"}) {
    EXPECT_FALSE(verifier.Check(Hs256(kHeader, Claims(claims)), kNow)) << claims;
  }
}

// --- attacks -------------------------------------------------------------------------------------

struct Attack {
  const char* name;
  std::string token;
  const char* reason;
};

class JwtAttackTest : public testing::TestWithParam<Attack> {};

TEST_P(JwtAttackTest, IsRefused) {
  const auto principal = Verifier().Check(GetParam().token, kNow);
  ASSERT_FALSE(principal);
  EXPECT_EQ(principal.error().code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(principal.error().message(), HasSubstr(GetParam().reason));
}

const std::string kGood = Hs256(kHeader, Claims());

INSTANTIATE_TEST_SUITE_P(
    Each, JwtAttackTest,
    testing::Values(
        Attack{"None", Input(R"({"alg":"none"})", Claims()) + ".", "signs with HS256"},
        Attack{"NoneInOtherCase", Input(R"({"alg":"nOnE"})", Claims()) + ".", "signs with"},
        Attack{"NoneWithASignature", Hs256(R"({"alg":"none"})", Claims()), "signs with"},
        Attack{"EmptySignature", Input(kHeader, Claims()) + ".", "signature is wrong"},
        Attack{"NoAlgorithm", Hs256(R"({"typ":"JWT"})", Claims()), "signs with"},
        Attack{"OtherAlgorithm", Hs256(R"({"alg":"HS512"})", Claims()), "signs with"},
        Attack{"AlgorithmInOtherCase", Hs256(R"({"alg":"hs256"})", Claims()), "signs with"},
        Attack{"AlgorithmTwice", Hs256(R"({"alg":"none","alg":"HS256"})", Claims()), "header"},
        Attack{"AlgorithmIsNoText", Hs256(R"({"alg":["HS256"]})", Claims()), "signs with"},
        Attack{"Jku", Hs256(R"({"alg":"HS256","jku":"https://evil.example"})", Claims()), "jku"},
        Attack{"X5u", Hs256(R"({"alg":"HS256","x5u":"https://evil.example"})", Claims()), "x5u"},
        Attack{"X5c", Hs256(R"({"alg":"HS256","x5c":[]})", Claims()), "x5c"},
        Attack{"Jwk", Hs256(R"({"alg":"HS256","jwk":{"kty":"oct","k":""}})", Claims()), "jwk"},
        Attack{"Crit", Hs256(R"({"alg":"HS256","crit":["exp"]})", Claims()), "crit"},
        Attack{"OtherType", Hs256(R"({"alg":"HS256","typ":"secevent+jwt"})", Claims()), "type"},
        Attack{"WrongSecret", Hs256(kHeader, Claims(), std::string(32, 't')), "signature is wrong"},
        Attack{"EmptySecret", Hs256(kHeader, Claims(), ""), "signature is wrong"},
        Attack{"ChangedClaims",
               Input(kHeader, Claims(R"("role":"admin")")) + kGood.substr(kGood.rfind('.')),
               "signature is wrong"},
        Attack{"TwoParts", kGood.substr(0, kGood.rfind('.')), "three parts"},
        Attack{"FourParts", kGood + ".x", "three parts"}, Attack{"Empty", "", "three parts"},
        Attack{"Dots", "..", "header"}, Attack{"Padding", kGood + "=", "base64url"},
        Attack{"NoJson", ToBase64Url("x") + "." + ToBase64Url("y") + ".", "header"},
        Attack{"HeaderIsAList", Hs256("[]", Claims()), "header"},
        Attack{"ClaimsAreAList", Hs256(kHeader, "[]"), "payload"},
        Attack{"ClaimTwice", Hs256(kHeader, R"({"iss":"a","iss":"b"})"), "payload"},
        Attack{"TooLong", std::string(9000, 'a'), "8 KiB"},
        Attack{"OtherIssuer", Hs256(kHeader, Claims(R"("iss":"https://evil.example")")), "issuer"},
        Attack{"NoIssuer", Hs256(kHeader, R"({"aud":"caisson"})"), "issuer"},
        Attack{"OtherAudience", Hs256(kHeader, Claims(R"("aud":"other")")), "audience"},
        Attack{"AudienceIsAPart", Hs256(kHeader, Claims(R"("aud":"caisson2")")), "audience"},
        Attack{"NoAudience", Hs256(kHeader, Claims(R"("aud":[])")), "audience"},
        Attack{"Expired", Hs256(kHeader, Claims(R"("exp":1699999940)")), "expired"},
        Attack{"NoEnd", Hs256(kHeader, Claims(R"("x":1,"exp":null)")), "exp"},
        Attack{"EndIsText", Hs256(kHeader, Claims(R"("exp":"1700000600")")), "exp"},
        Attack{"EndIsHuge", Hs256(kHeader, Claims(R"("exp":1e300)")), "exp"},
        Attack{"EndIsNegative", Hs256(kHeader, Claims(R"("exp":-1)")), "exp"},
        Attack{"EndIsFar", Hs256(kHeader, Claims(R"("exp":1700086461)")), "24 h"},
        Attack{"LivesTooLong", Hs256(kHeader, Claims(R"("iat":1699913600)")), "24 h"},
        Attack{"NotYet", Hs256(kHeader, Claims(R"("nbf":1700000061)")), "nbf"},
        Attack{"FromTheFuture", Hs256(kHeader, Claims(R"("iat":1700000061)")), "iat"},
        Attack{"NoSubject", Hs256(kHeader, Claims(R"("sub":"")")), "sub"},
        Attack{"NoRole", Hs256(kHeader, Claims(R"("role":null)")), "role"},
        Attack{"UnknownRole", Hs256(kHeader, Claims(R"("role":"root")")), "role"},
        Attack{"RolesAsList", Hs256(kHeader, Claims(R"("role":["admin"])")), "role"},
        Attack{"NoTenant", Hs256(kHeader, Claims(R"("tenant":1)")), "tenant"}),
    [](const auto& info) { return info.param.name; });

// --- public keys ---------------------------------------------------------------------------------

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Pkey = std::unique_ptr<EVP_PKEY, Free>;

std::string PemOf(EVP_PKEY* key) {
  BIO* out = BIO_new(BIO_s_mem());
  PEM_write_bio_PUBKEY(out, key);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out, &data);
  std::string pem(data, static_cast<size_t>(size));
  BIO_free(out);
  return pem;
}

std::string Sign(EVP_PKEY* key, JwsAlgorithm algorithm, const std::string& input) {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  const EVP_MD* digest = algorithm == JwsAlgorithm::kEdDsa ? nullptr : EVP_sha256();
  EXPECT_EQ(EVP_DigestSignInit(context, nullptr, digest, nullptr, key), 1);
  std::string signature(1024, '\0');
  size_t size = signature.size();
  EXPECT_EQ(EVP_DigestSign(context, reinterpret_cast<unsigned char*>(signature.data()), &size,
                           reinterpret_cast<const unsigned char*>(input.data()), input.size()),
            1);
  EVP_MD_CTX_free(context);
  signature.resize(size);
  if (algorithm != JwsAlgorithm::kEs256) return signature;
  const auto* der = reinterpret_cast<const unsigned char*>(signature.data());
  ECDSA_SIG* halves = d2i_ECDSA_SIG(nullptr, &der, static_cast<long>(size));
  std::string raw(64, '\0');
  BN_bn2binpad(ECDSA_SIG_get0_r(halves), reinterpret_cast<unsigned char*>(raw.data()), 32);
  BN_bn2binpad(ECDSA_SIG_get0_s(halves), reinterpret_cast<unsigned char*>(raw.data()) + 32, 32);
  ECDSA_SIG_free(halves);
  return raw;
}

TEST(Jwt, PublicKeysOfEveryKindVerifyAndCannotBeUsedAsSecrets) {
  const std::pair<JwsAlgorithm, Pkey> cases[] = {
      {JwsAlgorithm::kRs256, Pkey(EVP_RSA_gen(2048))},
      {JwsAlgorithm::kEs256, Pkey(EVP_EC_gen("P-256"))},
      {JwsAlgorithm::kEdDsa, Pkey(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"))}};
  for (const auto& [algorithm, key] : cases) {
    JwtIssuer issuer = Issuer();
    issuer.algorithm = algorithm;
    issuer.key = PemOf(key.get());
    const JwtVerifier verifier = Verifier(issuer);
    const std::string header = R"({"alg":")" + std::string(NameOf(algorithm)) + "\"}";
    const std::string input = Input(header, Claims());
    const std::string signature = Sign(key.get(), algorithm, input);
    const auto principal = verifier.Check(input + "." + ToBase64Url(signature), kNow);
    EXPECT_TRUE(principal) << NameOf(algorithm) << ": " << principal.error().message();
    // The classic confusion: HMAC with the text of the public key.
    EXPECT_FALSE(verifier.Check(Hs256(kHeader, Claims(), issuer.key), kNow));
    EXPECT_FALSE(verifier.Check(Hs256(header, Claims(), issuer.key), kNow));
    EXPECT_FALSE(verifier.Check(input + "." + ToBase64Url(std::string(64, '\0')), kNow));
    EXPECT_FALSE(verifier.Check(input + ".", kNow));
    for (const auto& [other, unused] : cases) {
      if (other == algorithm) continue;
      EXPECT_FALSE(JwsKey::FromPem(other, issuer.key)) << NameOf(other);
    }
    issuer.algorithm = JwsAlgorithm::kHs256;
    EXPECT_FALSE(JwtVerifier::Create({issuer}));
  }
}

TEST(Jwt, WeakKeysAreRefused) {
  EXPECT_FALSE(JwsKey::FromPem(JwsAlgorithm::kRs256, PemOf(Pkey(EVP_RSA_gen(1024)).get())));
  EXPECT_FALSE(JwsKey::FromPem(JwsAlgorithm::kEs256, PemOf(Pkey(EVP_EC_gen("P-384")).get())));
  EXPECT_FALSE(JwsKey::FromSecret(std::string(31, 's')));
  EXPECT_FALSE(JwsKey::FromPem(JwsAlgorithm::kRs256, "nonsense"));
}

TEST(Jwt, AKeySetPicksByKid) {
  const std::string a(32, 'a');
  const std::string b(32, 'b');
  const auto jwk = [](const std::string& kid, const std::string& secret) {
    return R"({"kty":"oct","kid":")" + kid + R"(","k":")" + ToBase64Url(secret) + "\"}";
  };
  JwtIssuer issuer = Issuer();
  issuer.key.clear();
  issuer.jwks = R"({"keys":[{"kty":"RSA"},)" + jwk("a", a) + "," + jwk("b", b) + "]}";
  const JwtVerifier verifier = Verifier(issuer);
  const auto with_kid = [](const std::string& kid) {
    return R"({"alg":"HS256","kid":")" + kid + "\"}";
  };
  EXPECT_TRUE(verifier.Check(Hs256(with_kid("a"), Claims(), a), kNow));
  EXPECT_TRUE(verifier.Check(Hs256(with_kid("b"), Claims(), b), kNow));
  EXPECT_FALSE(verifier.Check(Hs256(with_kid("a"), Claims(), b), kNow));
  EXPECT_FALSE(verifier.Check(Hs256(with_kid("c"), Claims(), a), kNow));
  EXPECT_FALSE(verifier.Check(Hs256(kHeader, Claims(), a), kNow));  // which one?
}

TEST(Jwt, BadConfigurationsAreRefusedByName) {
  const auto refused = [](auto change) {
    JwtIssuer issuer = Issuer();
    change(issuer);
    const auto verifier = JwtVerifier::Create({issuer});
    return !verifier && verifier.error().message().find("issuer") != std::string::npos;
  };
  EXPECT_TRUE(refused([](JwtIssuer& i) { i.issuer.clear(); }));
  EXPECT_TRUE(refused([](JwtIssuer& i) { i.audience.clear(); }));
  EXPECT_TRUE(refused([](JwtIssuer& i) { i.key.clear(); }));
  EXPECT_TRUE(refused([](JwtIssuer& i) { i.jwks = "{}"; }));
  EXPECT_TRUE(refused([](JwtIssuer& i) { i.key.clear(), i.jwks = R"({"keys":[]})"; }));
  EXPECT_TRUE(refused([](JwtIssuer& i) { i.tenant_claim.clear(); }));
  EXPECT_FALSE(JwtVerifier::Create({Issuer(), Issuer()}));
  EXPECT_TRUE(JwsAlgorithmFrom("ES256"));
  EXPECT_FALSE(JwsAlgorithmFrom("none"));
}

}  // namespace
}  // namespace caisson::auth
