#include "bench/metrics_line.h"

#include <fmt/core.h>
#include <string.h>

#include <array>
#include <charconv>
#include <cmath>

#include "base/clock.h"

namespace ezpz::bench {
namespace {

constexpr int kMaxDepth = 64;
constexpr double kLargestWhole = 9007199254740992.0;  // 2^53
constexpr double kYear10000_s = 253402300800.0;       // a time beyond is in other units, or none

constexpr std::array<bool, 256> make_plain() {
  std::array<bool, 256> plain{};
  for (int c = 0; c < 256; ++c) plain[static_cast<size_t>(c)] = c >= 0x20 && c != '"' && c != '\\';
  return plain;
}
// Bytes that a string of JSON holds as they are.
constexpr std::array<bool, 256> kPlain = make_plain();

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Walks over one line of JSON and takes out the few values that are wanted. A tree of every line
// would cost more than reading the disk.
class Scanner {
 public:
  Scanner(std::string_view line, MetricsRecord* record)
      : at_(line.data()), end_(line.data() + line.size()), record_(record) {}

  LineKind read() {
    skip_space();
    if (at_ == end_ || *at_ != '{') {
      const bool whole = skip_value(0) && only_space_left();
      return whole ? LineKind::foreign : LineKind::damaged;
    }
    const bool whole = members([this](std::string_view name) { return read_member(name); });
    if (!whole || !only_space_left()) return LineKind::damaged;
    if (!has_metrics_) return LineKind::foreign;
    return has_iter_ ? LineKind::step : LineKind::other;
  }

 private:
  bool only_space_left() {
    skip_space();
    return at_ == end_;
  }

  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n')) ++at_;
  }

  bool take(char c) {
    skip_space();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  bool take_word(std::string_view word) {
    if (static_cast<size_t>(end_ - at_) < word.size() ||
        memcmp(at_, word.data(), word.size()) != 0) {
      return false;
    }
    at_ += word.size();
    return true;
  }

  // The raw bytes between the quotes: the names and the times that are wanted need no escapes.
  bool string(std::string_view* raw) {
    if (at_ == end_ || *at_ != '"') return false;
    const char* const begin = ++at_;
    while (true) {
      while (at_ != end_ && kPlain[static_cast<unsigned char>(*at_)]) ++at_;
      if (at_ == end_) return false;
      if (*at_ == '"') break;
      if (*at_ != '\\' || !escape()) return false;
    }
    *raw = {begin, static_cast<size_t>(at_ - begin)};
    ++at_;
    return true;
  }

  bool escape() {
    ++at_;
    if (at_ == end_) return false;
    const char c = *at_++;
    if (c != 'u') return strchr("\"\\/bfnrt", c) != nullptr && c != '\0';
    for (int i = 0; i < 4; ++i, ++at_) {
      if (at_ == end_) return false;
      const bool hex =
          is_digit(*at_) || (*at_ >= 'a' && *at_ <= 'f') || (*at_ >= 'A' && *at_ <= 'F');
      if (!hex) return false;
    }
    return true;
  }

  bool skip_digits() {
    const char* const begin = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ != begin;
  }

  // Also NaN, Infinity and -Infinity, which Python's json writes.
  bool number_text(std::string_view* text) {
    const char* const begin = at_;
    if (at_ != end_ && *at_ == '-') ++at_;
    if (take_word("NaN") || take_word("Infinity")) {
      *text = "nan";
      return true;
    }
    const bool zero_first = at_ != end_ && *at_ == '0';
    const char* const digits = at_;
    if (!skip_digits() || (zero_first && at_ - digits > 1)) return false;
    if (at_ != end_ && *at_ == '.') {
      ++at_;
      if (!skip_digits()) return false;
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      if (!skip_digits()) return false;
    }
    *text = {begin, static_cast<size_t>(at_ - begin)};
    return true;
  }

  template <class OnMember>
  bool members(const OnMember& on_member) {
    if (!take('{')) return false;
    if (take('}')) return true;
    do {
      std::string_view name;
      skip_space();
      if (!string(&name) || !take(':')) return false;
      skip_space();
      if (!on_member(name)) return false;
    } while (take(','));
    return take('}');
  }

  bool skip_value(int depth) {
    skip_space();
    if (at_ == end_ || depth > kMaxDepth) return false;
    std::string_view ignored;
    switch (*at_) {
      case '"':
        return string(&ignored);
      case '{':
        return members([&](std::string_view) { return skip_value(depth + 1); });
      case '[':
        ++at_;
        if (take(']')) return true;
        do {
          if (!skip_value(depth + 1)) return false;
        } while (take(','));
        return take(']');
      case 't':
        return take_word("true");
      case 'f':
        return take_word("false");
      case 'n':
        return take_word("null");
      default:
        return number_text(&ignored);
    }
  }

  // A number, or anything else, which is not one. False only for what is no JSON.
  bool read_number(std::optional<double>* value) {
    if (at_ == end_ || (*at_ != '-' && *at_ != 'N' && *at_ != 'I' && !is_digit(*at_))) {
      return skip_value(1);
    }
    std::string_view text;
    if (!number_text(&text)) return false;
    double number = 0;
    const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), number);
    // Out of range is as little a measurement as NaN.
    if (text == "nan" || trouble != std::errc() || !std::isfinite(number)) {
      record_->has_nan = true;
      return true;
    }
    *value = number;
    return true;
  }

  bool read_member(std::string_view name) {
    if (name == "metrics" && at_ != end_ && *at_ == '{') {
      has_metrics_ = true;
      return members([this](std::string_view metric) { return read_metric(metric); });
    }
    if (name == "rank") {
      std::optional<double> number;
      if (!read_number(&number)) return false;
      if (number && *number >= 0 && *number < kLargestWhole && *number == std::floor(*number)) {
        record_->rank = static_cast<int64_t>(*number);
      }
      return true;
    }
    if (name == "timestamp") {
      if (at_ != end_ && *at_ == '"') {
        std::string_view text;
        if (!string(&text)) return false;
        record_->time_s = parse_iso8601(text);
        return true;
      }
      std::optional<double> seconds;
      if (!read_number(&seconds)) return false;
      if (seconds && *seconds >= 0 && *seconds < kYear10000_s) record_->time_s = seconds;
      return true;
    }
    return skip_value(1);
  }

  bool read_metric(std::string_view name) {
    if (name.substr(0, 6) == "train/") name.remove_prefix(6);
    StepMetrics& step = record_->step;
    struct Field {
      std::string_view name;
      double* into;
    };
    const Field fields[] = {
        {"loss", &step.loss},
        {"dt", &step.dt_s},
        {"tps", &step.tokens_per_s},
        {"tps_per_gpu", &step.tokens_per_s_per_gpu},
        {"mfu", &step.mfu_percent},
        {"tflops", &step.tflops_per_gpu},
        {"samples_per_sec", &step.samples_per_s},
    };
    for (const Field& field : fields) {
      if (name != field.name) continue;
      std::optional<double> value;
      if (!read_number(&value)) return false;
      *field.into = value.value_or(not_measured);
      return true;
    }
    if (name != "iter" && !(name == "step" && !has_iter_)) return skip_value(2);
    std::optional<double> value;
    if (!read_number(&value)) return false;
    if (value && *value >= 0 && *value < kLargestWhole && *value == std::floor(*value)) {
      step.iter = static_cast<int64_t>(*value);
      has_iter_ = true;
    }
    return true;
  }

  const char* at_;
  const char* end_;
  MetricsRecord* record_;
  bool has_metrics_ = false;
  bool has_iter_ = false;
};

// Days from 1970-01-01 in the calendar of today, for any year from 1970 on.
int64_t days_from_1970(int year, int month, int day) {
  // March begins the year, so that the day of a leap year comes last.
  const int64_t y = month <= 2 ? year - 1 : year;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return 365 * y + y / 4 - y / 100 + y / 400 + day_of_year - 719468;
}

// Fixed digits at a place, or -1.
int digits_at(std::string_view text, size_t at, size_t count) {
  if (at + count > text.size()) return -1;
  int value = 0;
  for (size_t i = at; i < at + count; ++i) {
    if (!is_digit(text[i])) return -1;
    value = 10 * value + (text[i] - '0');
  }
  return value;
}

void append_metric(std::string* line, std::string_view name, double value) {
  if (std::isfinite(value)) {
    *line += fmt::format(", \"train/{}\": {}", name, value);
  } else {
    *line += fmt::format(", \"train/{}\": null", name);
  }
}

}  // namespace

LineKind read_metrics_line(std::string_view line, MetricsRecord* record) {
  *record = MetricsRecord();
  return Scanner(line, record).read();
}

std::string metrics_line(const StepMetrics& step, int rank, double wall_s) {
  std::string line =
      fmt::format("{{\"timestamp\": \"{}\", \"rank\": {}, \"metrics\": {{\"train/iter\": {}",
                  iso8601(wall_s), rank, step.iter);
  append_metric(&line, "loss", step.loss);
  append_metric(&line, "dt", step.dt_s);
  append_metric(&line, "tps", step.tokens_per_s);
  append_metric(&line, "tps_per_gpu", step.tokens_per_s_per_gpu);
  append_metric(&line, "mfu", step.mfu_percent);
  append_metric(&line, "tflops", step.tflops_per_gpu);
  if (std::isfinite(step.samples_per_s))
    append_metric(&line, "samples_per_sec", step.samples_per_s);
  return line + "}}\n";
}

std::optional<double> parse_iso8601(std::string_view text) {
  const int year = digits_at(text, 0, 4), month = digits_at(text, 5, 2);
  const int day = digits_at(text, 8, 2), hour = digits_at(text, 11, 2);
  const int minute = digits_at(text, 14, 2), second = digits_at(text, 17, 2);
  if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 || hour > 24 ||
      minute < 0 || minute > 59 || second < 0 || second > 60) {
    return std::nullopt;
  }
  const bool shaped = text[4] == '-' && text[7] == '-' && (text[10] == 'T' || text[10] == ' ') &&
                      text[13] == ':' && text[16] == ':';
  if (!shaped) return std::nullopt;
  size_t at = 19;
  double fraction = 0;
  if (at < text.size() && text[at] == '.') {
    double unit = 0.1;
    for (++at; at < text.size() && is_digit(text[at]); ++at, unit /= 10) {
      fraction += unit * (text[at] - '0');
    }
  }
  int64_t offset_s = 0;
  const std::string_view zone = text.substr(at);
  if (zone.size() >= 6 && (zone[0] == '+' || zone[0] == '-')) {
    const int hours = digits_at(zone, 1, 2), minutes = digits_at(zone, 4, 2);
    if (zone.size() != 6 || hours < 0 || minutes < 0 || zone[3] != ':') return std::nullopt;
    offset_s = (zone[0] == '-' ? -1 : 1) * (hours * 3600L + minutes * 60L);
  } else if (zone != "Z" && zone != "z") {
    return std::nullopt;
  }
  const int64_t seconds =
      days_from_1970(year, month, day) * 86400 + hour * 3600L + minute * 60L + second - offset_s;
  return static_cast<double>(seconds) + fraction;
}

}  // namespace ezpz::bench
