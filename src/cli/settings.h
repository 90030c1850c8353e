// The settings of a verb as they stand: every value, and where it came from.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/options.h"

namespace caisson::cli {

struct ShownSetting {
  std::string name;                 // the key in the file, or the flag where there is no key
  std::vector<std::string> values;  // none: it is not set
  std::string from;                 // "FILE:LINE", a variable, a flag, "default", "not set"
  Occurs occurs = Occurs::kOnce;
};

// What `parsed` says about `options`, which its verb has; secrets are not shown.
std::vector<ShownSetting> SettingsOf(std::span<const Option> options, const Parsed& parsed);

// Whether the option's value is for nobody's eyes. A file that holds a secret is none.
bool IsSecret(const Option& option);

}  // namespace caisson::cli
