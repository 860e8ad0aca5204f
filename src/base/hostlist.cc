#include "base/hostlist.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/text.h"

namespace ezpz {
namespace {

constexpr size_t max_name_bytes = 255;  // what a host name may have; bounds what an expansion holds
constexpr size_t max_digits = 18;       // fits an int64_t

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7f;
}

std::string padded(int64_t value, size_t width) {
  std::string digits = std::to_string(value);
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return digits;
}

// One name of the list is a sequence of parts, each a set of alternatives; plain text is a part
// with one alternative.
using Part = std::vector<std::string>;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<std::string>> parse() {
    std::vector<std::string> hosts;
    while (true) {
      while (at_ < text_.size() && (is_space(text_[at_]) || text_[at_] == ',')) ++at_;
      if (at_ == text_.size()) return hosts;
      if (!parse_name(&hosts)) return *error_;
    }
  }

 private:
  bool fail(const std::string& what, size_t at) {
    error_ = Error{"host list: " + what, "position " + std::to_string(at + 1),
                   "expected a form like nid[0001-0004,0007],login1"};
    return false;
  }

  bool parse_name(std::vector<std::string>* hosts) {
    const size_t start = at_;
    std::vector<Part> parts;
    size_t count = 1;
    size_t bytes = 0;
    while (at_ < text_.size() && text_[at_] != ',' && !is_space(text_[at_])) {
      Part part;
      if (text_[at_] == ']') return fail("']' without '['", at_);
      if (text_[at_] == '[') {
        if (!parse_bracket(&part)) return false;
      } else if (!parse_literal(&part)) {
        return false;
      }
      count *= part.size();
      if (count + hosts->size() > max_hosts) {
        return fail("more than " + std::to_string(max_hosts) + " hosts", start);
      }
      bytes += std::max_element(part.begin(), part.end(), [](const auto& a, const auto& b) {
                 return a.size() < b.size();
               })->size();
      if (bytes > max_name_bytes) return fail("a name is too long", start);
      parts.push_back(std::move(part));
    }
    std::vector<size_t> turn(parts.size(), 0);
    for (size_t n = 0; n < count; ++n) {
      std::string name;
      for (size_t i = 0; i < parts.size(); ++i) name += parts[i][turn[i]];
      hosts->push_back(std::move(name));
      for (size_t i = parts.size(); i-- > 0;) {
        if (++turn[i] < parts[i].size()) break;
        turn[i] = 0;
      }
    }
    return true;
  }

  bool parse_literal(Part* part) {
    const size_t start = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '[' && text_[at_] != ']' &&
           !is_space(text_[at_])) {
      if (is_control(text_[at_])) return fail("a control character in a name", at_);
      ++at_;
    }
    part->emplace_back(text_.substr(start, at_ - start));
    return true;
  }

  bool parse_bracket(Part* part) {
    const size_t open = at_++;
    while (true) {
      skip_space();
      if (!parse_range(part)) return false;
      skip_space();
      if (at_ == text_.size()) return fail("'[' is never closed", open);
      if (text_[at_] == ']') break;
      if (text_[at_] != ',') return fail("expected ',' or ']'", at_);
      ++at_;
    }
    ++at_;
    return true;
  }

  bool parse_range(Part* part) {
    const size_t start = at_;
    const std::optional<std::string_view> low = digits();
    if (!low) return false;
    skip_space();
    if (at_ == text_.size() || text_[at_] != '-') {
      part->emplace_back(*low);
      return check_size(*part, start);
    }
    ++at_;
    skip_space();
    const std::optional<std::string_view> high = digits();
    if (!high) return false;
    const int64_t first = *parse_int(*low);
    const int64_t last = *parse_int(*high);
    if (last < first) return fail("a range that runs backwards", start);
    if (static_cast<uint64_t>(last - first) >= max_hosts) {
      return fail("a range of more than " + std::to_string(max_hosts) + " hosts", start);
    }
    // The width is the first number's, as SLURM has it: [8-11] is 8,9,10,11 and [08-11] is 08,...
    for (int64_t value = first; value <= last; ++value) {
      part->push_back(padded(value, low->size()));
    }
    return check_size(*part, start);
  }

  bool check_size(const Part& part, size_t at) {
    if (part.size() <= max_hosts) return true;
    return fail("more than " + std::to_string(max_hosts) + " hosts", at);
  }

  std::optional<std::string_view> digits() {
    const size_t start = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ == start) {
      fail(at_ == text_.size() ? "'[' is never closed" : "expected a number", at_);
      return std::nullopt;
    }
    if (at_ - start > max_digits) {
      fail("a number of more than " + std::to_string(max_digits) + " digits", start);
      return std::nullopt;
    }
    return text_.substr(start, at_ - start);
  }

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::optional<Error> error_;
};

struct Name {
  std::string_view prefix;
  std::string_view digits;  // at the end; empty when there are none (or too many to count with)
};

Name split_name(std::string_view host) {
  size_t start = host.size();
  while (start > 0 && is_digit(host[start - 1]) && host.size() - start < max_digits) --start;
  return {host.substr(0, start), host.substr(start)};
}

// A run of consecutive numbers of one width.
struct Run {
  int64_t first;
  int64_t last;
  size_t width;
};

bool continues(const Run& run, std::string_view digits) {
  return padded(run.last + 1, run.width) == digits;
}

void write_group(std::string_view prefix, const std::vector<Run>& runs, std::string* out) {
  if (!out->empty()) *out += ',';
  *out += prefix;
  if (runs.empty()) return;
  const bool single = runs.size() == 1 && runs[0].first == runs[0].last;
  if (!single) *out += '[';
  for (size_t i = 0; i < runs.size(); ++i) {
    if (i > 0) *out += ',';
    *out += padded(runs[i].first, runs[i].width);
    if (runs[i].last != runs[i].first) *out += '-' + padded(runs[i].last, runs[i].width);
  }
  if (!single) *out += ']';
}

}  // namespace

Result<std::vector<std::string>> expand_hostlist(std::string_view list) {
  return Parser(list).parse();
}

std::string compress_hostlist(std::span<const std::string> hosts) {
  std::string out;
  for (size_t i = 0; i < hosts.size();) {
    const Name head = split_name(hosts[i]);
    std::vector<Run> runs;
    if (head.digits.empty()) {
      write_group(head.prefix, runs, &out);
      ++i;
      continue;
    }
    for (; i < hosts.size(); ++i) {
      const Name name = split_name(hosts[i]);
      if (name.prefix != head.prefix || name.digits.empty()) break;
      if (!runs.empty() && continues(runs.back(), name.digits)) {
        ++runs.back().last;
        continue;
      }
      const int64_t value = *parse_int(name.digits);
      runs.push_back({value, value, name.digits.size()});
    }
    write_group(head.prefix, runs, &out);
  }
  return out;
}

}  // namespace ezpz
