#include "evidence/progress_scan.h"

#include <algorithm>

#include "base/text.h"
#include "evidence/lines.h"

namespace ezpz::evidence {
namespace {

constexpr size_t kMaxWord = 32;
constexpr size_t kMaxGap = 16;    // padding and separators between a key and its number
constexpr size_t kMaxBar = 1000;  // bytes of a progress bar; its blocks are three bytes each
constexpr size_t kMaxDescription = 120;
constexpr size_t kMaxDigits = 15;
constexpr size_t kBarPreference = 1000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_quote(char c) { return c == '"' || c == '\''; }
bool is_gap(char c) {
  return is_blank(c) || is_quote(c) || c == '=' || c == ':' || c == '[' || c == '#';
}

bool equal_folded(std::string_view a, std::string_view lower_b) {
  if (a.size() != lower_b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const char c = a[i] >= 'A' && a[i] <= 'Z' ? static_cast<char>(a[i] + ('a' - 'A')) : a[i];
    if (c != lower_b[i]) return false;
  }
  return true;
}

char at(std::string_view text, size_t i) { return i < text.size() ? text[i] : '\n'; }

// Digits at *i, thousands groups included ("1,200"); moves *i behind them.
std::optional<int64_t> read_number(std::string_view text, size_t* i) {
  const size_t start = *i;
  int64_t value = 0;
  const auto read_digits = [&] {
    while (is_digit(at(text, *i)) && *i - start <= kMaxDigits)
      value = value * 10 + (text[(*i)++] - '0');
  };
  read_digits();
  if (*i == start) return std::nullopt;
  const auto is_group = [&](size_t comma) {
    return at(text, comma) == ',' && is_digit(at(text, comma + 1)) &&
           is_digit(at(text, comma + 2)) && is_digit(at(text, comma + 3)) &&
           !is_digit(at(text, comma + 4));
  };
  while (*i - start <= kMaxDigits && is_group(*i)) {
    ++*i;
    read_digits();
  }
  if (*i - start > kMaxDigits) return std::nullopt;
  return value;
}

// "/100", " / 100", " of 100" at *i; moves *i behind it when it is there.
bool skip_total(std::string_view text, size_t* i) {
  size_t next = *i;
  while (is_blank(at(text, next))) ++next;
  if (at(text, next) == '/') {
    ++next;
  } else if (next > *i && text.substr(next, 3) == "of ") {
    next += 2;
  } else {
    return false;
  }
  while (is_blank(at(text, next))) ++next;
  if (!read_number(text, &next)) return false;
  *i = next;
  return true;
}

// The number belongs to something else: "1943001.0", "12:30", "5%", "3x", "10-20", "123_4".
bool part_of_something(std::string_view text, size_t end) {
  const char c = at(text, end);
  const char next = at(text, end + 1);
  if (is_word(c) || c == '%') return true;
  if (c == '.') return is_word(next);
  return (c == '-' || c == '+' || c == ':') && is_digit(next);
}

// The word at `from`, which a rule may forbid.
std::string_view word_at(std::string_view text, size_t from) {
  size_t end = from;
  while (is_word(at(text, end)) && end - from < kMaxWord) ++end;
  return text.substr(from, end - from);
}

// " : RUN pip install": a container being built.
bool container_build(std::string_view text, size_t end) {
  if (text.substr(end, 3) != " : ") return false;
  const std::string_view word = word_at(text, end + 3);
  return word.size() >= 3 &&
         std::all_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

// "Step 1: Download the model": an enumeration of work, not a loop. A training line has numbers.
bool heading(std::string_view text, size_t end) {
  if (text.substr(end, 3) == " - ") {
    end += 2;
  } else if (at(text, end) == ':') {
    end += 1;
  } else {
    return false;
  }
  while (is_blank(at(text, end))) ++end;
  if (!is_letter(at(text, end))) return false;
  return std::none_of(text.begin() + static_cast<ptrdiff_t>(end), text.end(), is_digit);
}

}  // namespace

void WordSet::add(std::string lower_word) {
  if (lower_word.empty()) return;
  by_first_[static_cast<unsigned char>(lower_word[0]) % 32].push_back(std::move(lower_word));
}

bool WordSet::contains(std::string_view word) const {
  if (word.empty()) return false;
  // Upper and lower case of a letter differ by 32, so they share a place.
  const std::vector<std::string>& some = by_first_[static_cast<unsigned char>(word[0]) % 32];
  return std::any_of(some.begin(), some.end(),
                     [&](const std::string& item) { return equal_folded(word, item); });
}

ProgressScan::ProgressScan(const FileProgress& rules) {
  const auto fill = [](const std::vector<std::string>& words, WordSet* set) {
    for (const std::string& word : words) set->add(lower(word));
  };
  fill(rules.not_after, &not_after_);
  fill(rules.not_followed, &not_followed_);
  fill(rules.path_prefixes, &path_prefixes_);
  fill(rules.bar_names, &bar_names_);
  for (const std::string& key : rules.keys) {
    if (!key_at(key)) keys_.push_back(lower(key));
  }
  // A key that holds another one ("global_step") is found with it.
  for (const std::string& key : keys_) {
    const bool holds_other = std::any_of(keys_.begin(), keys_.end(), [&](const std::string& other) {
      return other != key && key.find(other) != std::string::npos;
    });
    if (!holds_other) key_literals_.push_back(key);
  }
}

std::optional<size_t> ProgressScan::key_at(std::string_view word) const {
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (equal_folded(word, keys_[i])) return i;
  }
  return std::nullopt;
}

bool ProgressScan::allowed_before(std::string_view text, size_t word) const {
  size_t i = word;
  if (i > 0 && is_quote(text[i - 1])) --i;
  if (i == 0) return true;
  const char before = text[i - 1];
  if (before == '/') {
    size_t start = i - 1;
    while (start > 0 && is_word(text[start - 1]) && i - start < kMaxWord) --start;
    return path_prefixes_.contains(text.substr(start, i - 1 - start));
  }
  if (before == '-' || before == '.' || before == '\\' || before == '$' || before == '@')
    return false;
  while (i > 0 && is_blank(text[i - 1]) && word - i < kMaxGap) --i;
  size_t start = i;
  while (start > 0 && is_word(text[start - 1]) && i - start < kMaxWord) --start;
  return !not_after_.contains(text.substr(start, i - start));
}

std::optional<Step> ProgressScan::at_key(std::string_view text, size_t hit) const {
  size_t start = hit;
  while (start > 0 && is_word(text[start - 1]) && hit - start < kMaxWord) --start;
  size_t end = hit;
  while (is_word(at(text, end)) && end - hit < kMaxWord) ++end;
  const std::optional<size_t> preference = key_at(text.substr(start, end - start));
  if (!preference) return std::nullopt;

  size_t i = end;
  while (is_gap(at(text, i)) && i - end < kMaxGap) ++i;
  if (i == end || !is_digit(at(text, i))) return std::nullopt;
  const bool bare = std::all_of(text.begin() + static_cast<ptrdiff_t>(end),
                                text.begin() + static_cast<ptrdiff_t>(i), is_blank);
  const std::optional<int64_t> value = read_number(text, &i);
  if (!value || part_of_something(text, i)) return std::nullopt;
  if (skip_total(text, &i)) {
    if (part_of_something(text, i) || text.substr(i, 4) == " of ") return std::nullopt;
  }
  if (bare && heading(text, i)) return std::nullopt;
  if (at(text, i) == ' ') {
    if (not_followed_.contains(word_at(text, i + 1)) || container_build(text, i)) {
      return std::nullopt;
    }
  }
  if (!allowed_before(text, start)) return std::nullopt;
  return Step{*value, *preference, std::nullopt};
}

// "Epoch 3:  45%|####  | 45/100 [00:01<00:02, 2.1it/s]": such a bar starts again with each epoch,
// so the epochs before it count as whole bars.
std::optional<int64_t> ProgressScan::named_bar(std::string_view name, int64_t done,
                                               int64_t total) const {
  // A label ("3:", "[rank0]:") is no description.
  while (!name.empty() && name.front() == '[') {
    const size_t close = name.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    name.remove_prefix(close + 1);
    if (!name.empty() && name.front() == ':') name.remove_prefix(1);
    name = trim(name);
  }
  while (!name.empty() && name.back() == ':') name = trim(name.substr(0, name.size() - 1));
  if (std::all_of(name.begin(), name.end(), is_digit)) return done;
  size_t letters = 0;
  while (is_letter(at(name, letters))) ++letters;
  const std::string_view word = name.substr(0, letters);
  if (!bar_names_.contains(word)) return std::nullopt;
  if (!equal_folded(word, "epoch")) return done;
  while (is_gap(at(name, letters))) ++letters;
  const int64_t epoch = read_number(name, &letters).value_or(0);
  if (epoch > 1'000'000 || total > 1'000'000'000) return std::nullopt;
  return epoch * total + done;
}

std::optional<Step> ProgressScan::at_bar(std::string_view text, size_t hit) const {
  const size_t furthest = hit - std::min(hit, kMaxBar);
  // Back over "[00:01<00:10, 2.1" to the bracket, over "5/100 " to its digits.
  size_t i = hit;
  while (i > furthest && text[i - 1] != '[' && !is_separator(text[i - 1])) --i;
  if (i == furthest || text[i - 1] != '[') return std::nullopt;
  --i;
  if (i > furthest && text[i - 1] == ' ') --i;
  const auto skip_digits_back = [&] {
    const size_t end = i;
    while (i > furthest && is_digit(text[i - 1])) --i;
    return end - i;
  };
  if (skip_digits_back() == 0) return std::nullopt;
  size_t total_at = i;
  if (i == furthest || text[i - 1] != '/') return std::nullopt;
  --i;
  if (skip_digits_back() == 0) return std::nullopt;
  size_t done_at = i;
  const std::optional<int64_t> done = read_number(text, &done_at);
  const std::optional<int64_t> total = read_number(text, &total_at);
  if (!done || !total || *done > *total) return std::nullopt;
  if (i > 0 && !is_blank(text[i - 1]) && text[i - 1] != '|' && !is_separator(text[i - 1])) {
    return std::nullopt;
  }

  // Back over " 12%|###   |" to the description.
  while (i > furthest && is_blank(text[i - 1])) --i;
  if (i > furthest && text[i - 1] == '|') {
    --i;
    while (i > furthest && text[i - 1] != '|' && !is_separator(text[i - 1])) --i;
    if (i < furthest + 2 || text[i - 1] != '|' || text[i - 2] != '%') return std::nullopt;
    i -= 2;
    skip_digits_back();
  }
  size_t start = i;
  while (start > 0 && !is_separator(text[start - 1])) {
    if (i - --start > kMaxDescription) return std::nullopt;
  }
  const std::optional<int64_t> value =
      named_bar(trim(text.substr(start, i - start)), *done, *total);
  if (!value) return std::nullopt;
  return Step{*value, kBarPreference, *total};
}

}  // namespace ezpz::evidence
