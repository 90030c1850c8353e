// The rows of http_bench. README.md says what each means and which fields its lines have.
#pragma once

#include <chrono>
#include <span>
#include <string_view>

#include "http_remote.h"
#include "measure.h"

namespace caisson::bench {

struct HttpOptions {
  int runs = 0;  // of rows that time single things; 0: as many as the row likes
  Length length = Length::kFull;
  std::chrono::seconds storm{20};
};

struct HttpRow {
  std::string_view name;
  // Measures with a server on which nothing else is going on. What fails fails the row.
  Task<Result<Lines>> (*measure)(Remote* remote, HttpOptions options);
};

// One thing after another.
Task<Result<Lines>> MeasureHttpCycle(Remote* remote, HttpOptions options);
Task<Result<Lines>> MeasureHttpDestroy(Remote* remote, HttpOptions options);
Task<Result<Lines>> MeasureHttpClaim(Remote* remote, HttpOptions options);
Task<Result<Lines>> MeasureHttpClaimOutput(Remote* remote, HttpOptions options);
Task<Result<Lines>> MeasureHttpExec(Remote* remote, HttpOptions options);
Task<Result<Lines>> MeasureHttpFirstByte(Remote* remote, HttpOptions options);
// Many at once.
Task<Result<Lines>> MeasureHttpSustained(Remote* remote, HttpOptions options);
Task<Result<Lines>> MeasureHttpBurst(Remote* remote, HttpOptions options);
Task<Result<Lines>> MeasureHttpIdle(Remote* remote, HttpOptions options);
Task<Result<Lines>> MeasureHttpServerRss(Remote* remote, HttpOptions options);
Task<Result<Lines>> MeasureHttpStorm(Remote* remote, HttpOptions options);
// Many bytes.
Task<Result<Lines>> MeasureHttpStreamRate(Remote* remote, HttpOptions options);
Task<Result<Lines>> MeasureHttpUpload(Remote* remote, HttpOptions options);
Task<Result<Lines>> MeasureHttpDownload(Remote* remote, HttpOptions options);

std::span<const HttpRow> HttpRows();

// A session that may use all CPUs: so many commands in a row would use up the default share of one,
// and the kernel's throttling would be what is measured. "" or more of the body's fields.
std::string RoomyBody(std::string_view more_limits = "");

}  // namespace caisson::bench
