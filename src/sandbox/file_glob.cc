#include "sandbox/file_glob.h"

#include <fnmatch.h>
#include <sys/stat.h>

#include <map>

namespace caisson::sandbox {
namespace {

constexpr uint32_t kPage = 256;

std::vector<std::string> Split(const std::string& pattern) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : (pattern.starts_with('/') ? pattern : "/workspace/" + pattern) + "/") {
    if (c != '/') {
      part += c;
      continue;
    }
    if (!part.empty() && part != ".") parts.push_back(part);
    part.clear();
  }
  return parts;
}

bool IsLiteral(const std::string& part) { return part.find_first_of("*?[\\") == std::string::npos; }
bool Matches(const std::string& part, const std::string& name) {
  return fnmatch(part.c_str(), name.c_str(), FNM_PERIOD) == 0;
}
std::string Below(const std::string& folder, const std::string& name) {
  return folder == "/" ? "/" + name : folder + "/" + name;
}

// One walk: places still to be looked at, each with the parts of the pattern that are left.
struct Place {
  std::string folder;
  size_t part;
  int depth;
};

class Walk {
 public:
  Walk(Files& files, std::string user, GlobBounds bounds)
      : files_(files), user_(std::move(user)), bounds_(bounds) {}

  Task<void> Run(std::vector<std::string> parts) {
    parts_ = std::move(parts);
    places_.push_back({"/", 0, 0});
    while (!places_.empty() && complete_) {
      const Place place = std::move(places_.back());
      places_.pop_back();
      if (place.depth > bounds_.depth) {
        complete_ = false;
      } else if (place.part < parts_.size() && IsLiteral(parts_[place.part])) {
        co_await Look(place);
      } else {
        co_await ListAll(place);
      }
    }
    places_.clear();
  }
  GlobResult Take() {
    GlobResult result;
    for (auto& [path, size] : found_) result.files.push_back({path, size});
    result.complete = complete_;
    return result;
  }

 private:
  Task<void> Look(Place place) {
    const std::string path = Below(place.folder, parts_[place.part]);
    auto info = co_await files_.Stat(path, user_, Follow::kNo);
    if (info) Take(path, *info, place.part + 1, place.depth + 1);
  }

  Task<void> ListAll(Place place) {
    for (uint64_t cursor = 0;;) {
      auto page = co_await files_.List(place.folder, user_, cursor, kPage);
      if (!page) co_return;
      for (const auto& entry : page->entries) {
        if (++seen_ > bounds_.entries) complete_ = false;
        if (!complete_) co_return;
        Enter(place, entry);
      }
      cursor = page->next;
      if (cursor == 0) co_return;
    }
  }

  void Enter(const Place& place, const FileInfo& entry) {
    const std::string path = Below(place.folder, entry.name);
    const int depth = place.depth + 1;
    if (place.part >= parts_.size()) return Take(path, entry, place.part, depth);  // all below
    const std::string& part = parts_[place.part];
    if (part != "**") {
      if (Matches(part, entry.name)) Take(path, entry, place.part + 1, depth);
      return;
    }
    // `**` stands for no folder, or for this one and more.
    if (place.part + 1 == parts_.size()) return Take(path, entry, place.part, depth);
    if (Matches(parts_[place.part + 1], entry.name)) Take(path, entry, place.part + 2, depth);
    if (S_ISDIR(entry.mode)) places_.push_back({path, place.part, depth});
  }

  // What matches all parts before `part`.
  void Take(const std::string& path, const FileInfo& info, size_t part, int depth) {
    if (S_ISDIR(info.mode)) {
      places_.push_back({path, part, depth});
    } else if (S_ISREG(info.mode) && (part >= parts_.size() || parts_[part] == "**")) {
      found_.emplace(path, info.size);
      if (found_.size() > bounds_.files) {
        found_.erase(path);
        complete_ = false;
      }
    }
  }

  Files& files_;
  const std::string user_;
  const GlobBounds bounds_;
  std::vector<std::string> parts_;
  std::vector<Place> places_;
  std::map<std::string, uint64_t> found_;
  size_t seen_ = 0;
  bool complete_ = true;
};

}  // namespace

Task<Result<GlobResult>> FindFiles(Files* files, std::vector<std::string> patterns,
                                   std::string user, GlobBounds bounds) {
  Walk walk(*files, std::move(user), bounds);
  for (const auto& pattern : patterns) co_await walk.Run(Split(pattern));
  co_return walk.Take();
}

}  // namespace caisson::sandbox
