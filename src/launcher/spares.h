// Spares: which sandboxes stand ready before anybody asks for them.
//
// A spare is a whole sandbox, made and verified like any other, that has no id yet; a create that
// asks for its kind claims it. A kind is everything that a create says but the id. One that has
// been asked for twice is worth spares; a few kinds have them at a time, those asked for last.
//
// This is the bookkeeping alone: which kind wants another spare, and which spare a create gets. The
// boxes are the launcher's, known here by their serials.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wire/launcher_protocol.h"

namespace caisson::launcher {

class Spares {
 public:
  struct Policy {
    size_t per_kind = 4;
    size_t kinds = 3;
    size_t births = 2;  // at the same time
  };
  explicit Spares(Policy policy) : policy_(policy) {}

  // Notes that a sandbox like `spec` is asked for. Gives the serial of the spare that shall be it
  // (a ready one, or one that is being born), which is no spare any more.
  std::optional<uint64_t> Claim(const wire::launcher::Create& spec);

  // The request, without an id, for the spare to make next.
  std::optional<wire::launcher::Create> Wanted() const;
  void Began(const wire::launcher::Create& spec, uint64_t serial);
  void Ready(uint64_t serial);
  // The spare died, or could not become ready. Its kind gets no other before it is asked for again.
  void Lost(uint64_t serial);
  // No spare of this kind could be begun; the same.
  void GiveUp(const wire::launcher::Create& spec);

  // Spares that nobody will ask for: of kinds that made room for others, and of forgotten roots.
  // They are no spares any more.
  std::vector<uint64_t> TakeUnwanted();
  void ForgetRoot(const std::string& root_key);

  size_t ready() const;

 private:
  struct Spare {
    uint64_t serial;
    bool ready;
  };
  struct Kind {
    wire::launcher::Create spec;  // without an id
    std::string key;              // the encoded spec
    uint64_t asked = 0;
    uint64_t last_asked = 0;
    bool resting = false;  // making one failed
    std::vector<Spare> spares;
  };
  Kind* Find(const std::string& key);
  Kind& FindOrAdd(const wire::launcher::Create& spec);

  Policy policy_;
  uint64_t requests_ = 0;
  std::vector<Kind> kinds_;
  std::vector<uint64_t> unwanted_;
};

}  // namespace caisson::launcher
