// KeyRing: the API keys of a server.
//
// A key is csn_ID_SECRETCHECK: 8 characters of id, 43 of secret (256 bits), 6 of checksum, all
// base62, so that secret scanners can tell a key from noise. It is shown once, when it is made;
// kept is HMAC-SHA256 of the secret under a pepper that stands in a file of its own. All keys are
// in memory, so a check is a lookup and one HMAC.
//
// Used on the loop's thread. Changes are flushed to the disk before they take effect for the
// caller.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "async/task.h"
#include "auth/roles.h"
#include "base/result.h"
#include "store/key_records.h"
#include "store/store.h"

namespace caisson::auth {

struct NewKey {
  std::string name;
  std::string tenant;
  Role role = Role::kViewer;
  std::vector<Scope> scopes;
  std::optional<int64_t> expires_ms;
  std::string limits = "{}";  // JSON
  std::string created_by;
};

struct IssuedKey {
  store::KeyRecord record;
  std::string key;  // to be shown now and never again
};

class KeyRing {
 public:
  struct Options {
    std::function<int64_t()> now_ms;                     // milliseconds since 1970
    std::function<void(const std::string&)> on_revoked;  // gets the id; open streams end there
    int64_t rotation_grace_ms = 24LL * 3600 * 1000;      // how long the old secret goes on
  };

  // Reads all keys. kIo when there are keys but their pepper is gone. `store` outlives the ring.
  static Task<Result<std::unique_ptr<KeyRing>>> Load(store::Store* store, Options options);

  // Who shows this key. kPermissionDenied, which a caller sees as "not authenticated"; it says
  // that a key has expired or was revoked only to those who know its secret. Notes the time.
  Result<Principal> Check(std::string_view key);

  Task<Result<IssuedKey>> Create(NewKey key);
  // A second secret for the key. The old one goes on until FinishRotation, the end of the grace
  // period, or the next Rotate. kNotFound, kConflict when the key is revoked.
  Task<Result<IssuedKey>> Rotate(std::string id);
  // Ends the old secret now. kNotFound, kConflict when no rotation is under way.
  Task<Status> FinishRotation(std::string id);
  // For good, at once: the key is refused from the call on, before the record is on the disk.
  // kNotFound. Revoking twice is no error.
  Task<Status> Revoke(std::string id);

  // Oldest first. Hashes are left out.
  std::vector<store::KeyRecord> List() const;
  std::optional<store::KeyRecord> Find(std::string_view id) const;

  // Writes the times of last use that are not written yet. To be called now and then.
  Task<Status> SaveUses();

 private:
  KeyRing(store::Store* store, Options options, std::string pepper);

  std::string HashOf(std::string_view secret) const;
  Task<Status> Save(store::KeyRecord record);
  Result<store::KeyRecord> Live(const std::string& id) const;
  bool Matches(const store::KeyRecord& record, const std::string& hash) const;

  store::Store* store_;
  Options options_;
  std::string pepper_;
  std::unordered_map<std::string, store::KeyRecord> keys_;
  std::unordered_map<std::string, int64_t> unsaved_uses_;
};

// The parts of a key; nothing when it has not the form of one or its checksum is wrong.
struct KeyParts {
  std::string_view id;
  std::string_view secret;
};
std::optional<KeyParts> ParseKey(std::string_view key);

}  // namespace caisson::auth
