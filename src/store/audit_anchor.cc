#include "store/audit_anchor.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>

#include "base/encoding.h"
#include "base/text.h"

namespace caisson::store {
namespace {

constexpr size_t kDigits = 19;
constexpr size_t kSize = kDigits + 1 + 64 + 1;  // "0000000000000000042 HASH\n"

std::string Encode(const AuditHead& head) {
  const std::string count = std::to_string(head.count);
  return Concat({std::string(kDigits - count.size(), '0'), count, " ", head.hash, "\n"});
}

std::optional<AuditHead> Decode(std::string_view text) {
  if (text.size() != kSize || text[kDigits] != ' ' || !text.ends_with('\n')) return std::nullopt;
  AuditHead head;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + kDigits, head.count);
  head.hash = text.substr(kDigits + 1, 64);
  if (failure != std::errc{} || end != text.data() + kDigits || !FromHex(head.hash)) {
    return std::nullopt;
  }
  return head;
}

}  // namespace

Result<std::unique_ptr<AuditAnchor>> AuditAnchor::Open(DataDir& dir) {
  sys::UniqueFd file(
      ::openat(dir.fd(), "audit.anchor", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return Error::FromErrno(Concat({"opening ", dir.PathOf("audit.anchor")}));
  std::unique_ptr<AuditAnchor> anchor(new AuditAnchor(std::move(file)));
  CAISSON_ASSIGN(const auto head, anchor->Read());
  if (head) anchor->written_ = head->count;
  anchor->first_ = head;
  return anchor;
}

Result<std::optional<AuditHead>> AuditAnchor::Read() const {
  std::array<char, kSize + 1> bytes{};
  const ssize_t size = ::pread(file_.get(), bytes.data(), bytes.size(), 0);
  if (size < 0) return Error::FromErrno("reading the audit anchor");
  if (size == 0) return std::optional<AuditHead>();
  auto head = Decode({bytes.data(), static_cast<size_t>(size)});
  if (!head) {
    return Error(ErrorCode::kIo, "the file audit.anchor in the data directory is damaged")
        .WithRemedy("verify the audit log against an export, then remove the file");
  }
  return head;
}

Status AuditAnchor::OnCommitted(Database& database) {
  CAISSON_ASSIGN(AuditHead head, HeadOfAudit(database));
  bool agrees = true;
  if (first_) {
    CAISSON_TRY(database.Each("SELECT count(*) FROM audit WHERE seq = ? AND hash = ?",
                              {first_->count, first_->hash},
                              [&agrees](const Row& row) { agrees = row.Int(0) == 1; }));
    first_.reset();
  }
  const std::lock_guard lock(mutex_);
  if (!agrees || head.count < committed_.count) frozen_ = true;
  committed_ = std::move(head);
  return {};
}

void AuditAnchor::BeforeFlush() {
  const std::lock_guard lock(mutex_);
  if (!frozen_) flushing_ = committed_;
}

Status AuditAnchor::AfterFlush() {
  if (flushing_.count <= written_) return {};
  const std::string text = Encode(flushing_);
  const ssize_t size = ::pwrite(file_.get(), text.data(), text.size(), 0);
  if (size < 0) return Error::FromErrno("writing the audit anchor");
  if (static_cast<size_t>(size) != text.size()) {
    return Error(ErrorCode::kIo, "the audit anchor could not be written whole");
  }
  written_ = flushing_.count;
  return {};
}

}  // namespace caisson::store
