// Where a server's settings come from besides the command line: a YAML file whose keys are the
// option tables' own, and a file of environment variables.
//
// A verb that has the options `config` and `env-file` is configurable (kConfigOption,
// kEnvFileOption). Its values come from the first of: command line, environment, variables file,
// configuration file, default. Files that others may write are refused.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"
#include "yaml/yaml.h"

namespace caisson::cli {

// Rows for a configurable verb's table.
inline constexpr Option kConfigOption = {
    .name = "config",
    .kind = ValueKind::kPath,
    .placeholder = "FILE",
    .env = "CAISSON_CONFIG",
    .section = "Configuration",
    .help =
        "settings in YAML (default /etc/caisson/caisson.yaml for root, else "
        "caisson/caisson.yaml in $XDG_CONFIG_HOME or ~/.config, where there is one)"};
inline constexpr Option kEnvFileOption = {
    .name = "env-file",
    .kind = ValueKind::kPath,
    .placeholder = "FILE",
    .env = "CAISSON_ENV_FILE",
    .section = "Configuration",
    .help = "environment variables, NAME=VALUE by line (default .env, where there is one)"};

// What the files say.
struct Configuration {
  std::vector<ConfigValue> values;
  std::vector<FileVariable> variables;

  // `around` with what the files say; refers to this.
  Surroundings Around(const Surroundings& around) const;
};

bool IsConfigurable(const Verb& verb);

// Reads the files that `args` and the environment name, or those at the default places. For a
// command line that does not parse, or a verb that is not configurable, there is nothing to read.
// Errors have file and line; unknown keys are errors with a likely one.
Result<Configuration> LoadConfiguration(const Program& program,
                                        std::span<const std::string_view> args,
                                        const Surroundings& around);

// {resource_limits: {cpu_limit: 2}} as resource_limits.cpu_limit. Lists of scalars are values of
// one key.
Result<std::vector<ConfigValue>> FlattenConfig(const yaml::Node& node, std::string_view origin);

// NAME=VALUE by line; blank lines and # comments; `export` before it; values in single quotes as
// they are, in double quotes with \n, \t, \", \\ and \$. A name given twice is an error.
Result<std::vector<FileVariable>> ParseEnvFile(std::string_view text, std::string_view origin);

}  // namespace caisson::cli
