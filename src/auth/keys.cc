#include "auth/keys.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "auth/crypto.h"
#include "base/encoding.h"
#include "base/random.h"
#include "base/text.h"

namespace caisson::auth {
namespace {

constexpr std::string_view kPrefix = "csn_";
constexpr size_t kIdSize = 8;
constexpr size_t kSecretSize = 43;
constexpr size_t kCheckSize = 6;
constexpr const char* kPepperFile = "pepper";

// CRC-32 (IEEE 802.3), for telling keys from noise; it protects nothing.
uint32_t Crc32(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

std::string MakeKey(std::string_view id, std::string_view secret) {
  const std::string body = Concat({kPrefix, id, "_", secret});
  return body + ToBase62(Crc32(body), kCheckSize);
}

Error Refused(std::string_view why) {
  return Error(ErrorCode::kPermissionDenied, std::string(why))
      .WithRemedy("send a valid key as \"Authorization: Bearer KEY\" or \"X-API-Key: KEY\"");
}

Error NoKey(std::string_view id) { return {ErrorCode::kNotFound, Concat({"no key ", Quoted(id)})}; }

}  // namespace

std::optional<KeyParts> ParseKey(std::string_view key) {
  constexpr size_t kBody = kPrefix.size() + kIdSize + 1 + kSecretSize;
  if (key.size() != kBody + kCheckSize || !key.starts_with(kPrefix)) return std::nullopt;
  const KeyParts parts{key.substr(kPrefix.size(), kIdSize),
                       key.substr(kPrefix.size() + kIdSize + 1, kSecretSize)};
  if (key[kPrefix.size() + kIdSize] != '_' || !IsBase62(parts.id) || !IsBase62(parts.secret)) {
    return std::nullopt;
  }
  if (key.substr(kBody) != ToBase62(Crc32(key.substr(0, kBody)), kCheckSize)) return std::nullopt;
  return parts;
}

KeyRing::KeyRing(store::Store* store, Options options, std::string pepper)
    : store_(store), options_(std::move(options)), pepper_(std::move(pepper)) {}

Task<Result<std::unique_ptr<KeyRing>>> KeyRing::Load(store::Store* store, Options options) {
  CAISSON_CO_ASSIGN(auto records, co_await store->Read<std::vector<store::KeyRecord>>(
                                      [](store::Database& db) { return store::AllKeys(db); }));
  store::DataDir& dir = store->data_dir();
  if (!records.empty() && !store::ReadSmallFile(dir.fd(), kPepperFile, 65)) {
    co_return Error(ErrorCode::kIo, Concat({"there are API keys, but ", dir.PathOf(kPepperFile),
                                            " cannot be read"}))
        .WithRemedy("restore the file from a backup; without it no key can be checked");
  }
  CAISSON_CO_ASSIGN(const std::string pepper, LoadOrMakeSecret(dir, kPepperFile));
  std::unique_ptr<KeyRing> ring(
      new KeyRing(store, std::move(options), DeriveKey(pepper, "api-keys")));
  for (auto& record : records) ring->keys_.emplace(record.id, std::move(record));
  co_return ring;
}

std::string KeyRing::HashOf(std::string_view secret) const {
  return ToHex(HmacSha256(pepper_, secret));
}

bool KeyRing::Matches(const store::KeyRecord& record, const std::string& hash) const {
  const bool next = record.next_hash && ConstantTimeEqual(*record.next_hash, hash);
  const bool old = ConstantTimeEqual(record.hash, hash);
  const bool old_ended = record.next_hash && options_.now_ms() >= record.rotated_ms.value_or(0) +
                                                                      options_.rotation_grace_ms;
  return next || (old && !old_ended);
}

Result<Principal> KeyRing::Check(std::string_view key) {
  const auto parts = ParseKey(key);
  if (!parts) return Refused("this is not an API key");
  const std::string hash = HashOf(parts->secret);
  const auto found = keys_.find(std::string(parts->id));
  if (found == keys_.end() || !Matches(found->second, hash)) {
    return Refused("the API key is not valid");
  }
  const store::KeyRecord& record = found->second;
  const int64_t now = options_.now_ms();
  if (record.revoked_ms) return Refused("the API key was revoked");
  if (record.expires_ms && now >= *record.expires_ms) return Refused("the API key has expired");
  Principal principal;
  principal.tenant = record.tenant;
  principal.key_id = record.id;
  principal.name = record.name;
  CAISSON_ASSIGN(principal.role, RoleFrom(record.role));
  CAISSON_ASSIGN(principal.scopes, ParseScopes(record.scopes));
  principal.expires_ms = record.expires_ms;
  unsaved_uses_[record.id] = now;
  return principal;
}

Task<Result<IssuedKey>> KeyRing::Create(NewKey key) {
  store::KeyRecord record;
  do {
    record.id = RandomBase62(kIdSize);
  } while (keys_.contains(record.id));
  record.name = std::move(key.name);
  record.tenant = std::move(key.tenant);
  record.role = NameOf(key.role);
  record.scopes = ToText(key.scopes);
  record.limits = std::move(key.limits);
  record.created_by = std::move(key.created_by);
  record.created_ms = options_.now_ms();
  record.expires_ms = key.expires_ms;
  const std::string secret = RandomBase62(kSecretSize);
  record.hash = HashOf(secret);
  CAISSON_CO_TRY(co_await store_->Write(store::Durability::kDurable, [record](store::Database& db) {
    return store::InsertKey(db, record);
  }));
  keys_[record.id] = record;
  std::string shown = MakeKey(record.id, secret);
  record.hash.clear();
  co_return IssuedKey{std::move(record), std::move(shown)};
}

Result<store::KeyRecord> KeyRing::Live(const std::string& id) const {
  const auto found = keys_.find(id);
  if (found == keys_.end()) return NoKey(id);
  if (found->second.revoked_ms) {
    return Error(ErrorCode::kConflict, Concat({"key ", Quoted(id), " was revoked"}))
        .WithRemedy("make a new key");
  }
  return found->second;
}

// Writes the record and, when it is on the disk, takes it over.
Task<Status> KeyRing::Save(store::KeyRecord record) {
  CAISSON_CO_TRY(co_await store_->Write(
      store::Durability::kDurable,
      [record](store::Database& db) { return store::UpdateKey(db, record); },
      store::Purpose::kShrink));
  // A key that was revoked meanwhile stays revoked.
  store::KeyRecord& kept = keys_[record.id];
  if (kept.revoked_ms && !record.revoked_ms) {
    co_return Error(ErrorCode::kConflict, Concat({"key ", Quoted(record.id), " was revoked"}));
  }
  kept = std::move(record);
  co_return Status();
}

Task<Result<IssuedKey>> KeyRing::Rotate(std::string id) {
  CAISSON_CO_ASSIGN(store::KeyRecord record, Live(id));
  if (record.next_hash) record.hash = *std::move(record.next_hash);
  const std::string secret = RandomBase62(kSecretSize);
  record.next_hash = HashOf(secret);
  record.rotated_ms = options_.now_ms();
  CAISSON_CO_TRY(co_await Save(record));
  record.hash.clear();
  record.next_hash.reset();
  co_return IssuedKey{std::move(record), MakeKey(id, secret)};
}

Task<Status> KeyRing::FinishRotation(std::string id) {
  CAISSON_CO_ASSIGN(store::KeyRecord record, Live(id));
  if (!record.next_hash) {
    co_return Error(ErrorCode::kConflict, Concat({"key ", Quoted(id), " is not being rotated"}));
  }
  record.hash = *std::move(record.next_hash);
  record.next_hash.reset();
  co_return co_await Save(std::move(record));
}

Task<Status> KeyRing::Revoke(std::string id) {
  const auto found = keys_.find(id);
  if (found == keys_.end()) co_return NoKey(id);
  if (!found->second.revoked_ms) {
    found->second.revoked_ms = options_.now_ms();
    if (options_.on_revoked) options_.on_revoked(id);
  }
  co_return co_await Save(found->second);
}

std::vector<store::KeyRecord> KeyRing::List() const {
  std::vector<store::KeyRecord> list;
  for (const auto& [id, record] : keys_) list.push_back(*Find(id));
  std::ranges::sort(list, [](const auto& a, const auto& b) {
    return std::tie(a.created_ms, a.id) < std::tie(b.created_ms, b.id);
  });
  return list;
}

std::optional<store::KeyRecord> KeyRing::Find(std::string_view id) const {
  const auto found = keys_.find(std::string(id));
  if (found == keys_.end()) return std::nullopt;
  store::KeyRecord record = found->second;
  record.hash.clear();
  record.next_hash.reset();
  if (const auto used = unsaved_uses_.find(record.id); used != unsaved_uses_.end()) {
    record.last_used_ms = used->second;
  }
  return record;
}

Task<Status> KeyRing::SaveUses() {
  if (unsaved_uses_.empty()) co_return Status();
  const auto uses = std::exchange(unsaved_uses_, {});
  for (const auto& [id, time] : uses) keys_.at(id).last_used_ms = time;
  co_return co_await store_->Write(
      store::Durability::kSoon,
      [uses](store::Database& db) -> Status {
        for (const auto& [id, time] : uses) CAISSON_TRY(store::TouchKey(db, id, time));
        return {};
      },
      store::Purpose::kShrink);
}

}  // namespace caisson::auth
