// FakeVfs: SQLite's own file layer with faults to order: a disk that is full, a flush that fails.
//
// Register it under a name and open databases with Database::Options::vfs. The faults may be
// ordered from any thread. It must outlive the connections.
#pragma once

#include <sqlite3.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>

namespace caisson::store {

class FakeVfs {
 public:
  explicit FakeVfs(std::string name) : name_(std::move(name)) {
    real_ = sqlite3_vfs_find(nullptr);
    vfs_ = *real_;
    vfs_.zName = name_.c_str();
    vfs_.szOsFile = static_cast<int>(sizeof(File)) + real_->szOsFile;
    vfs_.pAppData = this;
    vfs_.pNext = nullptr;
    vfs_.xOpen = &Open;
    vfs_.xDelete = [](sqlite3_vfs* v, const char* n, int s) {
      return Self(v)->real_->xDelete(Self(v)->real_, n, s);
    };
    vfs_.xAccess = [](sqlite3_vfs* v, const char* n, int f, int* r) {
      return Self(v)->real_->xAccess(Self(v)->real_, n, f, r);
    };
    vfs_.xFullPathname = [](sqlite3_vfs* v, const char* n, int s, char* o) {
      return Self(v)->real_->xFullPathname(Self(v)->real_, n, s, o);
    };
    sqlite3_vfs_register(&vfs_, 0);
  }
  FakeVfs(const FakeVfs&) = delete;
  FakeVfs& operator=(const FakeVfs&) = delete;
  ~FakeVfs() { sqlite3_vfs_unregister(&vfs_); }

  const std::string& name() const { return name_; }

  std::atomic<bool> syncs_fail{false};
  std::atomic<int64_t> room{INT64_MAX};  // bytes that can still be written
  std::atomic<int64_t> syncs{0};         // how many were asked for

 private:
  struct File {
    sqlite3_file base;
    FakeVfs* owner;
    sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  };
  static FakeVfs* Self(sqlite3_vfs* vfs) { return static_cast<FakeVfs*>(vfs->pAppData); }
  static File* Of(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
  static sqlite3_file* Real(sqlite3_file* file) { return Of(file)->real(); }

  static int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out) {
    FakeVfs* self = Self(vfs);
    Of(file)->owner = self;
    file->pMethods = nullptr;
    const int code = self->real_->xOpen(self->real_, name, Real(file), flags, out);
    if (code == SQLITE_OK) file->pMethods = Methods();
    return code;
  }
  static int Write(sqlite3_file* file, const void* data, int size, sqlite3_int64 at) {
    if (Of(file)->owner->room.fetch_sub(size) < size) return SQLITE_FULL;
    return Real(file)->pMethods->xWrite(Real(file), data, size, at);
  }
  static int Sync(sqlite3_file* file, int flags) {
    ++Of(file)->owner->syncs;
    if (Of(file)->owner->syncs_fail) return SQLITE_IOERR_FSYNC;
    return Real(file)->pMethods->xSync(Real(file), flags);
  }
  static const sqlite3_io_methods* Methods() {
    static const sqlite3_io_methods methods = {
        .iVersion = 2,
        .xClose = [](sqlite3_file* f) { return Real(f)->pMethods->xClose(Real(f)); },
        .xRead = [](sqlite3_file* f, void* d, int n,
                    sqlite3_int64 o) { return Real(f)->pMethods->xRead(Real(f), d, n, o); },
        .xWrite = &Write,
        .xTruncate = [](sqlite3_file* f,
                        sqlite3_int64 n) { return Real(f)->pMethods->xTruncate(Real(f), n); },
        .xSync = &Sync,
        .xFileSize = [](sqlite3_file* f,
                        sqlite3_int64* n) { return Real(f)->pMethods->xFileSize(Real(f), n); },
        .xLock = [](sqlite3_file* f, int l) { return Real(f)->pMethods->xLock(Real(f), l); },
        .xUnlock = [](sqlite3_file* f, int l) { return Real(f)->pMethods->xUnlock(Real(f), l); },
        .xCheckReservedLock =
            [](sqlite3_file* f, int* r) {
              return Real(f)->pMethods->xCheckReservedLock(Real(f), r);
            },
        .xFileControl = [](sqlite3_file* f, int op,
                           void* a) { return Real(f)->pMethods->xFileControl(Real(f), op, a); },
        .xSectorSize = [](sqlite3_file* f) { return Real(f)->pMethods->xSectorSize(Real(f)); },
        .xDeviceCharacteristics =
            [](sqlite3_file* f) { return Real(f)->pMethods->xDeviceCharacteristics(Real(f)); },
        .xShmMap =
            [](sqlite3_file* f, int r, int s, int e, void volatile** p) {
              return Real(f)->pMethods->xShmMap(Real(f), r, s, e, p);
            },
        .xShmLock = [](sqlite3_file* f, int o, int n,
                       int l) { return Real(f)->pMethods->xShmLock(Real(f), o, n, l); },
        .xShmBarrier = [](sqlite3_file* f) { Real(f)->pMethods->xShmBarrier(Real(f)); },
        .xShmUnmap = [](sqlite3_file* f,
                        int d) { return Real(f)->pMethods->xShmUnmap(Real(f), d); },
    };
    return &methods;
  }

  std::string name_;
  sqlite3_vfs* real_;
  sqlite3_vfs vfs_;
};

}  // namespace caisson::store
