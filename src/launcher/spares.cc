#include "launcher/spares.h"

#include <algorithm>
#include <utility>

namespace caisson::launcher {
namespace {

namespace w = wire::launcher;

w::Create WithoutId(w::Create spec) {
  spec.id.clear();
  return spec;
}

std::string KeyOf(const w::Create& spec) { return wire::Encode(WithoutId(spec), 0); }

}  // namespace

Spares::Kind* Spares::Find(const std::string& key) {
  const auto found = std::ranges::find(kinds_, key, &Kind::key);
  return found == kinds_.end() ? nullptr : &*found;
}

Spares::Kind& Spares::FindOrAdd(const w::Create& spec) {
  std::string key = KeyOf(spec);
  if (Kind* known = Find(key)) return *known;
  if (kinds_.size() >= policy_.kinds) {
    // The one that was asked for once makes room first, then the one not asked for longest.
    const auto rank = [](const Kind& kind) { return std::pair(kind.asked > 1, kind.last_asked); };
    const auto oldest = std::ranges::min_element(kinds_, {}, rank);
    for (const Spare& spare : oldest->spares) unwanted_.push_back(spare.serial);
    kinds_.erase(oldest);
  }
  kinds_.push_back({.spec = WithoutId(spec), .key = std::move(key)});
  return kinds_.back();
}

std::optional<uint64_t> Spares::Claim(const w::Create& spec) {
  Kind& kind = FindOrAdd(spec);
  ++kind.asked;
  kind.last_asked = ++requests_;
  kind.resting = false;
  if (kind.spares.empty()) return std::nullopt;
  // The oldest: it is ready first.
  const auto ready = std::ranges::find(kind.spares, true, &Spare::ready);
  const auto chosen = ready == kind.spares.end() ? kind.spares.begin() : ready;
  const uint64_t serial = chosen->serial;
  kind.spares.erase(chosen);
  return serial;
}

std::optional<w::Create> Spares::Wanted() const {
  size_t births = 0;
  const Kind* neediest = nullptr;
  for (const Kind& kind : kinds_) {
    births += static_cast<size_t>(std::ranges::count(kind.spares, false, &Spare::ready));
    if (kind.asked < 2 || kind.resting || kind.spares.size() >= policy_.per_kind) continue;
    if (neediest == nullptr || kind.spares.size() < neediest->spares.size()) neediest = &kind;
  }
  if (neediest == nullptr || births >= policy_.births) return std::nullopt;
  return neediest->spec;
}

void Spares::Began(const w::Create& spec, uint64_t serial) {
  if (Kind* kind = Find(KeyOf(spec))) {
    kind->spares.push_back({serial, false});
  } else {
    unwanted_.push_back(serial);
  }
}

void Spares::Ready(uint64_t serial) {
  for (Kind& kind : kinds_) {
    for (Spare& spare : kind.spares) spare.ready |= spare.serial == serial;
  }
}

void Spares::Lost(uint64_t serial) {
  std::erase(unwanted_, serial);
  for (Kind& kind : kinds_) {
    if (std::erase_if(kind.spares, [&](const Spare& s) { return s.serial == serial; }) != 0)
      kind.resting = true;
  }
}

void Spares::GiveUp(const w::Create& spec) {
  if (Kind* kind = Find(KeyOf(spec))) kind->resting = true;
}

std::vector<uint64_t> Spares::TakeUnwanted() { return std::exchange(unwanted_, {}); }

void Spares::ForgetRoot(const std::string& root_key) {
  for (Kind& kind : kinds_) {
    if (kind.spec.root_key != root_key) continue;
    for (const Spare& spare : kind.spares) unwanted_.push_back(spare.serial);
    kind.spares.clear();
  }
}

size_t Spares::ready() const {
  size_t count = 0;
  for (const Kind& kind : kinds_)
    count += static_cast<size_t>(std::ranges::count(kind.spares, true, &Spare::ready));
  return count;
}

}  // namespace caisson::launcher
