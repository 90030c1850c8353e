// The rows of engine_bench. README.md says what each means and which fields its lines have.
#pragma once

#include <span>
#include <string_view>

#include "measure.h"
#include "sandbox/provider.h"

namespace caisson::bench {

struct RowOptions {
  int runs = 0;  // of rows that time single lives; 0: as many as the row likes
  Length length = Length::kFull;
};

struct Row {
  std::string_view name;
  // Measures with a provider that nothing has used yet. A sandbox that fails fails the row.
  Task<Result<Lines>> (*measure)(sandbox::Provider* provider, RowOptions options);
  std::string_view skipped;  // why there is no `measure`
};

std::span<const Row> Rows();

}  // namespace caisson::bench
