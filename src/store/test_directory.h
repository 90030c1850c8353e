// A directory of its own for one test, removed at its end.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "store/database.h"
#include "store/migrations.h"

namespace caisson::store {

class TestDirectory {
 public:
  TestDirectory() {
    std::string pattern = testing::TempDir() + "caisson-store-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;
  ~TestDirectory() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  std::string PathOf(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// An empty database of the newest schema.
inline Database NewDatabase(const std::string& path) {
  auto database = Database::Open(path);
  EXPECT_TRUE(database) << database.error().message();
  const Status migrated = Migrate(*database);
  EXPECT_TRUE(migrated) << migrated.error().message();
  return *std::move(database);
}

}  // namespace caisson::store
