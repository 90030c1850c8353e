// SessionTable: the sessions that live, found by id and by name. Passive; one Loop's thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sandbox/admission.h"
#include "sandbox/session.h"

namespace caisson::sandbox {

class SessionTable {
 public:
  void Add(std::shared_ptr<Session> session, Admission::Lease lease);
  // Gives its place back.
  void Remove(const Session& session);

  // By id, or by name among the tenant's own; null when there is none that `access` sees.
  std::shared_ptr<Session> Find(const Access& access, const std::string& id_or_name) const;
  std::shared_ptr<Session> FindId(const std::string& id) const;
  bool HasName(const std::string& tenant, const std::string& name) const {
    return !name.empty() && names_.contains({tenant, name});
  }
  Admission::Lease* LeaseOf(const std::string& id);

  std::vector<std::shared_ptr<Session>> All() const;
  size_t size() const { return sessions_.size(); }

 private:
  struct Entry {
    std::shared_ptr<Session> session;
    Admission::Lease lease;
  };
  std::map<std::string, Entry> sessions_;
  std::map<std::pair<std::string, std::string>, std::string> names_;  // (tenant, name) → id
};

}  // namespace caisson::sandbox
