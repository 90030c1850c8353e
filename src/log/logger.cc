#include "log/logger.h"

#include <array>

#include "base/text.h"
#include "json/json.h"
#include "log/line.h"

namespace caisson::log {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"debug", "info", "warn", "error"};
constexpr size_t kLongestText = 4096;

std::string_view Cut(std::string_view text) { return text.substr(0, kLongestText); }

void AppendValue(std::string& out, Format format, const Field& field) {
  if (const auto* text = std::get_if<std::string_view>(&field.value)) {
    if (format == Format::kJson) {
      json::AppendString(out, Cut(*text));
    } else {
      AppendPlain(out, Cut(*text), Quoting::kIfNeeded);
    }
    return;
  }
  if (const auto* number = std::get_if<double>(&field.value))
    return json::AppendNumber(out, *number);
  if (const auto* truth = std::get_if<bool>(&field.value)) {
    out += *truth ? "true" : "false";
  } else if (const auto* whole = std::get_if<int64_t>(&field.value)) {
    out += std::to_string(*whole);
  } else {
    out += std::to_string(std::get<uint64_t>(field.value));
  }
}

void AppendFields(std::string& out, Format format, Fields fields) {
  for (const Field& field : fields) {
    if (format == Format::kJson) {
      out += ',';
      json::AppendString(out, field.key);
      out += ':';
    } else {
      out += format == Format::kColoured ? " \033[2m" : " ";
      AppendPlain(out, field.key, Quoting::kNever);
      out += format == Format::kColoured ? "=\033[0m" : "=";
    }
    AppendValue(out, format, field);
  }
}

}  // namespace

Result<Level> ParseLevel(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Level>(i);
  }
  const auto close = ClosestTo(name, kNames);
  return caisson::Error(ErrorCode::kInvalidArgument, Quoted(name) + " is no log level")
      .WithRemedy(close.empty() ? "write debug, info, warn or error"
                                : Concat({"did you mean ", close, "?"}));
}

std::string_view NameOf(Level level) { return kNames[static_cast<size_t>(level)]; }

Logger Logger::With(Fields fields) const {
  Logger logger = *this;
  AppendFields(logger.bound_, sink_->format(), fields);
  return logger;
}

void Logger::Write(Level level, std::string_view message, Fields fields) const {
  if (!Enabled(level)) return;
  const Format format = sink_->format();
  std::string line = StartLine(format, NameOf(level), Cut(message));
  line += bound_;
  AppendFields(line, format, fields);
  if (format == Format::kJson) line += '}';
  sink_->Put(std::move(line));
}

void Logger::WriteFailure(Level level, std::string_view message, const caisson::Error& error,
                          Fields fields) const {
  if (!Enabled(level)) return;
  Logger logger = With({{"error", error.message()}, {"code", error.name()}});
  if (!error.remedy().empty()) logger = logger.With({{"remedy", error.remedy()}});
  logger.Write(level, message, fields);
}

}  // namespace caisson::log
