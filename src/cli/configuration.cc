#include "cli/configuration.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"

namespace caisson::cli {
namespace {

constexpr off_t kMaxBytes = off_t{1} << 20;

// The text of a file that nobody but its owner, who is this user or root, may write.
Result<std::string> ReadTrusted(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return Error::FromErrno("cannot open " + path).WithRemedy("name a file that can be read");
  }
  struct stat status = {};
  std::string text;
  std::optional<Error> error;
  if (fstat(fd, &status) != 0) {
    error = Error::FromErrno("cannot look at " + path);
  } else if (!S_ISREG(status.st_mode) || status.st_size > kMaxBytes) {
    error = Error(ErrorCode::kInvalidArgument, path + " is not a file of at most 1 MiB")
                .WithRemedy("name a text file");
  } else if ((status.st_uid != geteuid() && status.st_uid != 0) ||
             (status.st_mode & S_IWOTH) != 0) {
    error = Error(ErrorCode::kPermissionDenied, path + " may be written by others")
                .WithRemedy("own it, and take the permission away: chmod o-w " + path);
  } else {
    text.resize(static_cast<size_t>(status.st_size));
    const ssize_t got = pread(fd, text.data(), text.size(), 0);
    if (got < 0) error = Error::FromErrno("cannot read " + path);
    text.resize(got < 0 ? 0 : static_cast<size_t>(got));
  }
  close(fd);
  if (error) return *std::move(error);
  return text;
}

// The text, or nothing when there is no such file.
Result<std::optional<std::string>> ReadIfThere(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0) return std::optional<std::string>();
  CAISSON_ASSIGN(std::string text, ReadTrusted(path));
  return std::optional(std::move(text));
}

std::string DefaultConfigPath(const Surroundings& around) {
  if (geteuid() == 0) return "/etc/caisson/caisson.yaml";
  const auto variable = [&](const char* name) {
    return around.env ? around.env(name).value_or("") : std::string();
  };
  if (const std::string config = variable("XDG_CONFIG_HOME"); config.starts_with('/')) {
    return config + "/caisson/caisson.yaml";
  }
  return variable("HOME") + "/.config/caisson/caisson.yaml";
}

// The path that was given for a file, or the default one.
struct Place {
  std::string path;
  bool given = false;
};
Place PlaceOf(const Parsed& parsed, const Option& option, std::string otherwise) {
  auto given = parsed.Get<std::string>(option.name);
  if (given) return {*std::move(given), true};
  return {std::move(otherwise), false};
}
Result<std::optional<std::string>> Read(const Place& place) {
  if (!place.given) return ReadIfThere(place.path);
  CAISSON_ASSIGN(std::string text, ReadTrusted(place.path));
  return std::optional(std::move(text));
}

class Flattener {
 public:
  explicit Flattener(std::string_view origin) : origin_(origin) {}

  Status Add(const yaml::Node& node, const std::string& key) {
    if (node.is_map()) return AddMembers(node, key.empty() ? "" : key + ".");
    if (key.empty()) {
      return yaml::ErrorAt(origin_, node, Concat({"expected keys, got ", NameOf(node.kind)}),
                           "write KEY: VALUE");
    }
    ConfigValue value{key, {}, Concat({origin_, ":", std::to_string(node.line)})};
    if (node.is_scalar()) value.values.push_back(node.text);
    for (const yaml::Node& item : node.items) {
      if (!item.is_scalar()) {
        return yaml::ErrorAt(origin_, item, Concat({key, " has ", NameOf(item.kind), " in it"}),
                             "write a list of plain values");
      }
      value.values.push_back(item.text);
    }
    if (node.is_null()) {
      return yaml::ErrorAt(origin_, node, key + " has no value", "write one, or remove the key");
    }
    values_.push_back(std::move(value));
    return {};
  }

  std::vector<ConfigValue> Take() && { return std::move(values_); }

 private:
  Status AddMembers(const yaml::Node& map, const std::string& prefix) {
    for (const yaml::Member& member : map.members) {
      CAISSON_TRY(Add(member.value, prefix + member.key));
    }
    return {};
  }

  std::string_view origin_;
  std::vector<ConfigValue> values_;
};

}  // namespace

Surroundings Configuration::Around(const Surroundings& around) const {
  return {.env = around.env, .variables = variables, .config = values};
}

bool IsConfigurable(const Verb& verb) {
  return std::ranges::find(verb.options, kConfigOption.name, &Option::name) != verb.options.end() &&
         std::ranges::find(verb.options, kEnvFileOption.name, &Option::name) != verb.options.end();
}

// Keys of a database server, which this server does without.
Status CheckForeignKeys(std::span<const ConfigValue> values) {
  for (const ConfigValue& value : values)
    if (value.key.starts_with("database_config."))
      return Error(ErrorCode::kInvalidArgument,
                   Concat({value.origin, ": ", value.key,
                           " is for a database server; the state is in files of data_dir"}))
          .WithRemedy("remove database_config; data_dir says where the state is kept");
  return {};
}

// The command line is parsed for the place of the variables, and with these once more for the place
// of the settings, which a variable may name.
Result<Configuration> LoadConfiguration(const Program& program,
                                        std::span<const std::string_view> args,
                                        const Surroundings& around) {
  Configuration configuration;
  const auto first = Parse(program, args, around);
  if (!first || first->request != Request::kRun || !IsConfigurable(*first->verb)) {
    return configuration;
  }
  const Place env_file = PlaceOf(first->parsed, kEnvFileOption, ".env");
  CAISSON_ASSIGN(const auto variables, Read(env_file));
  if (variables) {
    CAISSON_ASSIGN(configuration.variables, ParseEnvFile(*variables, env_file.path));
  }
  const auto second = Parse(program, args, configuration.Around(around));
  if (!second) return configuration;
  const Place file = PlaceOf(second->parsed, kConfigOption, DefaultConfigPath(around));
  CAISSON_ASSIGN(const auto text, Read(file));
  if (!text) return configuration;
  CAISSON_ASSIGN(const yaml::Node node, yaml::Parse(*text, file.path));
  CAISSON_ASSIGN(configuration.values, FlattenConfig(node, file.path));
  CAISSON_TRY(CheckForeignKeys(configuration.values));
  CAISSON_TRY(CheckConfigKeys(program, configuration.values));
  return configuration;
}

Result<std::vector<ConfigValue>> FlattenConfig(const yaml::Node& node, std::string_view origin) {
  if (node.is_null()) return std::vector<ConfigValue>();
  Flattener flattener(origin);
  CAISSON_TRY(flattener.Add(node, ""));
  return std::move(flattener).Take();
}

}  // namespace caisson::cli
