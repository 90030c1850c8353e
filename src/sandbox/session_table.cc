#include "sandbox/session_table.h"

namespace caisson::sandbox {

void SessionTable::Add(std::shared_ptr<Session> session, Admission::Lease lease) {
  const SessionRecord& record = session->record();
  if (!record.spec.name.empty()) names_[{record.owner.tenant, record.spec.name}] = record.id;
  const std::string id = record.id;
  sessions_[id] = {std::move(session), std::move(lease)};
}

void SessionTable::Remove(const Session& session) {
  const SessionRecord& record = session.record();
  const auto name = names_.find({record.owner.tenant, record.spec.name});
  if (name != names_.end() && name->second == record.id) names_.erase(name);
  sessions_.erase(record.id);
}

std::shared_ptr<Session> SessionTable::FindId(const std::string& id) const {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second.session;
}

std::shared_ptr<Session> SessionTable::Find(const Access& access,
                                            const std::string& id_or_name) const {
  auto session = FindId(id_or_name);
  if (session == nullptr) {
    const auto name = names_.find({access.home, id_or_name});
    if (name != names_.end()) session = FindId(name->second);
  }
  return session != nullptr && access.Sees(session->record()) ? session : nullptr;
}

Admission::Lease* SessionTable::LeaseOf(const std::string& id) {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : &found->second.lease;
}

std::vector<std::shared_ptr<Session>> SessionTable::All() const {
  std::vector<std::shared_ptr<Session>> all;
  for (const auto& [id, entry] : sessions_) all.push_back(entry.session);
  return all;
}

}  // namespace caisson::sandbox
