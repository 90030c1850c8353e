// The rows of engine_bench. README.md says what each means and which fields its lines have.
#pragma once

#include <boost/json/object.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "async/task.h"
#include "base/result.h"
#include "sandbox/provider.h"

namespace caisson::bench {

enum class Length { kFull, kQuick };

struct RowOptions {
  int runs = 0;  // of rows that time single lives; 0: as many as the row likes
  Length length = Length::kFull;
};

using Lines = std::vector<boost::json::object>;

struct Row {
  std::string_view name;
  // Measures with a provider that nothing has used yet. A sandbox that fails fails the row.
  Task<Result<Lines>> (*measure)(sandbox::Provider* provider, RowOptions options);
  std::string_view skipped;  // why there is no `measure`
};

std::span<const Row> Rows();

}  // namespace caisson::bench
