// Database: one SQLite connection, with cached statements, typed values and transactions.
//
// A connection belongs to one thread at a time. Files are created 0600, in WAL mode, with foreign
// keys on; a commit reaches the operating system at once (it survives the death of the process) and
// the disk when SyncLog() is called or the log is checkpointed (it then survives power loss).
//
// Errors: kResourceExhausted when the disk is full; kConflict when a unique key exists already;
// kUnavailable when another connection holds the file locked; kIo for everything else, naming the
// file. A file that is damaged or no database is refused and left as it is.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace caisson::store {

// A parameter of a statement. Text is borrowed until the statement has run.
class Value {
 public:
  Value(std::nullptr_t) {}                                            // NOLINT: implicit
  Value(int value) : value_(int64_t{value}) {}                        // NOLINT: implicit
  Value(int64_t value) : value_(value) {}                             // NOLINT: implicit
  Value(uint64_t value) : value_(Clamp(value)) {}                     // NOLINT: implicit
  Value(double value) : value_(value) {}                              // NOLINT: implicit
  Value(std::string_view text) : value_(text) {}                      // NOLINT: implicit
  Value(const std::string& text) : value_(std::string_view(text)) {}  // NOLINT: implicit
  Value(const char* text) : value_(std::string_view(text)) {}         // NOLINT: implicit
  template <typename T>
  Value(const std::optional<T>& value) {  // NOLINT: implicit; null when empty
    if (value) *this = Value(*value);
  }

  const auto& variant() const { return value_; }

 private:
  static int64_t Clamp(uint64_t value) {
    return value > uint64_t{INT64_MAX} ? INT64_MAX : static_cast<int64_t>(value);
  }
  std::variant<std::monostate, int64_t, double, std::string_view> value_;
};

// The row a query stands on. Valid only inside the callback that got it. Columns count from 0.
class Row {
 public:
  explicit Row(sqlite3_stmt* statement) : statement_(statement) {}

  bool IsNull(int column) const;
  int64_t Int(int column) const;
  double Real(int column) const;
  std::string Text(int column) const;
  std::optional<int64_t> OptionalInt(int column) const;
  std::optional<std::string> OptionalText(int column) const;

 private:
  sqlite3_stmt* statement_;
};

class Database {
 public:
  enum class Mode {
    kOwner,   // reads and writes; creates the file
    kReader,  // reads a file that exists
  };
  struct Options {
    Mode mode = Mode::kOwner;
    std::string vfs;  // a registered SQLite VFS; empty for the system's own
  };

  // Opens `path` and checks that it is a sound database.
  static Result<Database> Open(const std::string& path, Options options);
  static Result<Database> Open(const std::string& path) { return Open(path, Options{}); }

  Database(Database&& other) noexcept;
  Database& operator=(Database&& other) noexcept;
  ~Database();

  // Runs statements that take no parameters and give no rows.
  Status Script(const char* sql);
  // Runs one statement. Rows it gives are dropped.
  Status Run(std::string_view sql, std::initializer_list<Value> parameters = {});
  // Runs one statement and calls `each` for every row.
  Status Each(std::string_view sql, std::span<const Value> parameters,
              const std::function<void(const Row&)>& each);
  Status Each(std::string_view sql, std::initializer_list<Value> parameters,
              const std::function<void(const Row&)>& each) {
    return Each(sql, std::span(parameters.begin(), parameters.size()), each);
  }
  // The first column of the first row; `fallback` when there is no row.
  Result<int64_t> Number(std::string_view sql, std::initializer_list<Value> parameters = {},
                         int64_t fallback = 0);
  // How many rows the last Run() changed, inserted or deleted.
  int64_t changes() const;

  // Runs `work` in a transaction: committed when it succeeds, undone when it fails.
  Status Transact(const std::function<Status()>& work);
  // The same inside a transaction that is open: only what `work` did is undone.
  Status Nested(const std::function<Status()>& work);
  bool in_transaction() const;

  // Flushes the write-ahead log to the disk. Another thread may use the connection's file, not the
  // connection, meanwhile. kIo when the disk refuses; what was not flushed may then be lost.
  Status SyncLog();
  // Copies the log into the file as far as readers allow. Gives the number of pages still in it.
  Result<int64_t> Checkpoint();
  // Looks at every page. An error names what is damaged.
  Status CheckIntegrity();

  const std::string& path() const { return path_; }

 private:
  Database(sqlite3* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  Result<sqlite3_stmt*> Prepare(std::string_view sql);
  Status Configure(const Options& options);
  Error Fail(std::string_view attempt) const;
  void Close();

  sqlite3* handle_;
  std::string path_;
  std::unordered_map<std::string, sqlite3_stmt*> statements_;
};

// A query whose text and parameters are put together from parts.
class QueryBuilder {
 public:
  explicit QueryBuilder(std::string_view sql) : sql_(sql) {}
  // Adds text with one '?' per value. Text values are borrowed until the query has run.
  QueryBuilder& Add(std::string_view sql, std::initializer_list<Value> values = {});
  Status Each(Database& database, const std::function<void(const Row&)>& each) const;

 private:
  std::string sql_;
  std::vector<Value> values_;
};

}  // namespace caisson::store
