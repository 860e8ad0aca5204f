#include "journal/reader.h"

#include <time.h>

#include "base/file.h"
#include "base/text.h"

namespace ezpz::journal {
namespace {

double parse_iso8601(const std::string& text) {
  tm utc{};
  const char* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  if (rest == nullptr) return 0;
  double seconds = static_cast<double>(timegm(&utc));
  if (*rest == '.') {
    const std::string_view fraction(rest, text.c_str() + text.size() - rest);
    if (const auto value =
            parse_double("0" + std::string(fraction.substr(0, fraction.find('Z'))))) {
      seconds += *value;
    }
  }
  return seconds;
}

}  // namespace

Reading read_events(std::string_view jsonl) {
  Reading reading;
  for (const std::string& line : split_lines(jsonl)) {
    if (trim(line).empty()) continue;
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) {
      ++reading.unreadable_lines;
      continue;
    }
    Event event;
    event.name = json["name"].get<std::string>();
    if (json.contains("time") && json["time"].is_string()) {
      event.time = json["time"].get<std::string>();
      event.time_s = parse_iso8601(event.time);
    }
    event.context =
        json.contains("context") && json["context"].is_object() ? json["context"] : Json::object();
    reading.events.push_back(std::move(event));
  }
  return reading;
}

Result<Reading> read_journal(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  return read_events(*text);
}

}  // namespace ezpz::journal
