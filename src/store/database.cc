#include "store/database.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/text.h"

namespace caisson::store {
namespace {

constexpr size_t kMaxCachedStatements = 256;
constexpr int kBusyMillis = 5000;

bool IsDiskFull(int code, int system_error) {
  if ((code & 0xff) == SQLITE_FULL) return true;
  return (code & 0xff) == SQLITE_IOERR &&
         (system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG);
}

Error MakeError(int code, int system_error, std::string_view detail, std::string_view attempt,
                const std::string& path) {
  const std::string message = Concat({attempt, " in ", path, ": ", detail});
  if (IsDiskFull(code, system_error)) {
    return Error(ErrorCode::kResourceExhausted,
                 Concat({attempt, " in ", path, ": the disk is full"}))
        .WithRemedy("free space on the file system that holds the data directory");
  }
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Error(ErrorCode::kIo, Concat({path, " is damaged or not a database: ", detail}))
          .WithRemedy(
              "restore the file from a backup, or move it away to begin with an empty one; "
              "nothing was changed");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Error(ErrorCode::kUnavailable, message).WithRemedy("try again");
    case SQLITE_CONSTRAINT:
      if (code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY) {
        return {ErrorCode::kConflict, message};
      }
      return {ErrorCode::kInternal, message};
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
      return Error(ErrorCode::kIo, message)
          .WithRemedy("check that the data directory belongs to the user who runs the server");
    case SQLITE_IOERR:
      if (system_error != 0) return Error::FromErrno(message, system_error);
      return {ErrorCode::kIo, message};
    default:
      return {(code & 0xff) == SQLITE_ERROR ? ErrorCode::kInternal : ErrorCode::kIo, message};
  }
}

int Bind(sqlite3_stmt* statement, int index, const Value& value) {
  const auto& variant = value.variant();
  if (const auto* number = std::get_if<int64_t>(&variant)) {
    return sqlite3_bind_int64(statement, index, *number);
  }
  if (const auto* real = std::get_if<double>(&variant)) {
    return sqlite3_bind_double(statement, index, *real);
  }
  if (const auto* text = std::get_if<std::string_view>(&variant)) {
    const char* data = text->data() == nullptr ? "" : text->data();
    return sqlite3_bind_text64(statement, index, data, text->size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  return sqlite3_bind_null(statement, index);
}

// Gives a statement back clean, whatever way its run ends.
class Running {
 public:
  explicit Running(sqlite3_stmt* statement) : statement_(statement) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }

 private:
  sqlite3_stmt* statement_;
};

// SQLite takes the mode of its journal files from the main file, so that one is made first. A file
// that exists is never opened here: closing it would drop the locks that other connections of this
// process hold on it (POSIX locks belong to the process).
Status MakePrivateFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd >= 0) {
    ::close(fd);
    return {};
  }
  if (errno != EEXIST) return Error::FromErrno(Concat({"creating ", path}));
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return Error::FromErrno(Concat({"opening ", path}));
  if (!S_ISREG(info.st_mode)) {
    return Error(ErrorCode::kIo, Concat({path, " is not a regular file"}));
  }
  if ((info.st_mode & 077) != 0 && ::chmod(path.c_str(), 0600) != 0) {
    return Error::FromErrno(Concat({"making ", path, " private"}));
  }
  return {};
}

}  // namespace

bool Row::IsNull(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}
int64_t Row::Int(int column) const { return sqlite3_column_int64(statement_, column); }
double Row::Real(int column) const { return sqlite3_column_double(statement_, column); }

std::string Row::Text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (data == nullptr) return {};
  return {data, static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

std::optional<int64_t> Row::OptionalInt(int column) const {
  if (IsNull(column)) return std::nullopt;
  return Int(column);
}

std::optional<std::string> Row::OptionalText(int column) const {
  if (IsNull(column)) return std::nullopt;
  return Text(column);
}

Result<Database> Database::Open(const std::string& path, Options options) {
  const bool owner = options.mode == Mode::kOwner;
  if (owner) CAISSON_TRY(MakePrivateFile(path));
  // A reader opens for writing too, for it shares the log's index; query_only holds it to reading.
  const int flags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE;
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags,
                                   options.vfs.empty() ? nullptr : options.vfs.c_str());
  Database database(handle, path);
  if (code != SQLITE_OK) {
    return MakeError(code, handle != nullptr ? sqlite3_system_errno(handle) : 0,
                     sqlite3_errstr(code), "opening the database", path);
  }
  CAISSON_TRY(database.Configure(options));
  return database;
}

Status Database::Configure(const Options& options) {
  sqlite3_busy_timeout(handle_, kBusyMillis);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  std::string mode;
  CAISSON_TRY(
      Each("PRAGMA journal_mode = WAL", {}, [&mode](const Row& row) { mode = row.Text(0); }));
  if (mode != "wal") {
    return Error(ErrorCode::kUnsupported,
                 Concat({path_, " cannot use a write-ahead log (journal mode is ", mode, ")"}))
        .WithRemedy("put the data directory on a local file system");
  }
  // NORMAL: a commit waits for no disk; the log's header and checkpoints do, so that power loss
  // never damages the file. Checkpoints are made by whoever calls Checkpoint().
  CAISSON_TRY(
      Script("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;"
             "PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;"
             "PRAGMA journal_size_limit = 67108864;"));
  if (options.mode == Mode::kReader) return Script("PRAGMA query_only = ON");
  return {};
}

Database::Database(Database&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      path_(std::move(other.path_)),
      statements_(std::move(other.statements_)) {
  other.statements_.clear();
}

Database& Database::operator=(Database&& other) noexcept {
  if (this == &other) return *this;
  Close();
  handle_ = std::exchange(other.handle_, nullptr);
  path_ = std::move(other.path_);
  statements_ = std::exchange(other.statements_, {});
  return *this;
}

Database::~Database() { Close(); }

void Database::Close() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  statements_.clear();
  sqlite3_close_v2(std::exchange(handle_, nullptr));
}

Error Database::Fail(std::string_view attempt) const {
  return MakeError(sqlite3_extended_errcode(handle_), sqlite3_system_errno(handle_),
                   sqlite3_errmsg(handle_), attempt, path_);
}

Status Database::Script(const char* sql) {
  if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return Fail("running a statement");
  }
  return {};
}

Result<sqlite3_stmt*> Database::Prepare(std::string_view sql) {
  std::string key(sql);
  if (const auto found = statements_.find(key); found != statements_.end()) return found->second;
  if (statements_.size() >= kMaxCachedStatements) {
    std::erase_if(statements_, [](const auto& entry) {
      if (sqlite3_stmt_busy(entry.second) != 0) return false;  // its rows are being read
      sqlite3_finalize(entry.second);
      return true;
    });
  }
  sqlite3_stmt* statement = nullptr;
  const char* tail = nullptr;
  if (sqlite3_prepare_v3(handle_, key.c_str(), static_cast<int>(key.size() + 1),
                         SQLITE_PREPARE_PERSISTENT, &statement, &tail) != SQLITE_OK) {
    return Fail("preparing a statement");
  }
  if (statement == nullptr || *tail != '\0') {
    sqlite3_finalize(statement);
    return Error(ErrorCode::kInternal, Concat({"not exactly one statement: ", Quoted(sql)}));
  }
  statements_.emplace(std::move(key), statement);
  return statement;
}

Status Database::Each(std::string_view sql, std::span<const Value> parameters,
                      const std::function<void(const Row&)>& each) {
  CAISSON_ASSIGN(sqlite3_stmt * statement, Prepare(sql));
  const Running running(statement);
  if (static_cast<size_t>(sqlite3_bind_parameter_count(statement)) != parameters.size()) {
    return Error(ErrorCode::kInternal, Concat({"wrong number of parameters for ", Quoted(sql)}));
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (Bind(statement, static_cast<int>(i + 1), parameters[i]) != SQLITE_OK) {
      return Fail("binding a parameter");
    }
  }
  while (true) {
    const int code = sqlite3_step(statement);
    if (code == SQLITE_DONE) return {};
    if (code != SQLITE_ROW) return Fail("running a statement");
    if (each) each(Row(statement));
  }
}

Status Database::Run(std::string_view sql, std::initializer_list<Value> parameters) {
  return Each(sql, parameters, nullptr);
}

Result<int64_t> Database::Number(std::string_view sql, std::initializer_list<Value> parameters,
                                 int64_t fallback) {
  std::optional<int64_t> number;
  CAISSON_TRY(Each(sql, parameters, [&number](const Row& row) {
    if (!number) number = row.Int(0);
  }));
  return number.value_or(fallback);
}

int64_t Database::changes() const { return sqlite3_changes64(handle_); }

bool Database::in_transaction() const { return sqlite3_get_autocommit(handle_) == 0; }

Status Database::Transact(const std::function<Status()>& work) {
  CAISSON_TRY(Run("BEGIN IMMEDIATE"));
  Status done = work();
  if (done) done = Run("COMMIT");
  // SQLite undoes the transaction by itself on some errors, such as a full disk.
  if (!done && in_transaction()) {
    if (Status undone = Run("ROLLBACK"); !undone) {
      return std::move(undone).error().Because(done.error().message());
    }
  }
  return done;
}

Status Database::Nested(const std::function<Status()>& work) {
  CAISSON_TRY(Run("SAVEPOINT nested"));
  Status done = work();
  if (!done && in_transaction()) {
    if (Status undone = Run("ROLLBACK TO nested"); !undone) {
      return std::move(undone).error().Because(done.error().message());
    }
  }
  if (in_transaction()) CAISSON_TRY(Run("RELEASE nested"));
  return done;
}

Status Database::SyncLog() {
  sqlite3_file* log = nullptr;
  if (sqlite3_file_control(handle_, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) != SQLITE_OK) {
    return Fail("finding the write-ahead log");
  }
  if (log == nullptr || log->pMethods == nullptr) {
    return Error(ErrorCode::kInternal, Concat({"the write-ahead log of ", path_, " is not open"}));
  }
  const int code = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
  if (code != SQLITE_OK) {
    return MakeError(code, errno, sqlite3_errstr(code), "flushing the write-ahead log", path_);
  }
  return {};
}

Result<int64_t> Database::Checkpoint() {
  int in_log = 0;
  int copied = 0;
  const int code =
      sqlite3_wal_checkpoint_v2(handle_, "main", SQLITE_CHECKPOINT_PASSIVE, &in_log, &copied);
  if (code != SQLITE_OK && code != SQLITE_BUSY) return Fail("checkpointing");
  return int64_t{in_log} - copied;
}

Status Database::CheckIntegrity() {
  std::string problem;
  CAISSON_TRY(Each("PRAGMA quick_check(1)", {}, [&problem](const Row& row) {
    if (row.Text(0) != "ok") problem = row.Text(0);
  }));
  if (problem.empty()) return {};
  return MakeError(SQLITE_CORRUPT, 0, problem, "checking", path_);
}

QueryBuilder& QueryBuilder::Add(std::string_view sql, std::initializer_list<Value> values) {
  sql_ += sql;
  values_.insert(values_.end(), values);
  return *this;
}

Status QueryBuilder::Each(Database& database, const std::function<void(const Row&)>& each) const {
  return database.Each(sql_, values_, each);
}

}  // namespace caisson::store
