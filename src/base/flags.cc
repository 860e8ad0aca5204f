#include "base/flags.h"

#include <algorithm>

#include "base/text.h"

namespace ezpz {
namespace {

constexpr size_t kWidth = 96;
constexpr size_t kHelpColumn = 30;

// Text broken at spaces into lines of at most width characters.
std::vector<std::string> wrap(std::string_view text, size_t width) {
  std::vector<std::string> lines(1);
  for (const std::string& word : split_words(text)) {
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (line.size() + 1 + word.size() <= width) {
      line += ' ' + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

std::string entry(const Flag& flag) {
  std::string head = "  " + join(flag.names, ", ");
  if (!flag.value.empty()) head += ' ' + flag.value;
  std::string text;
  const std::string indent(kHelpColumn, ' ');
  if (head.size() + 2 > kHelpColumn) {
    text = head + '\n';
    head.clear();
  }
  for (const std::string& line : wrap(flag.help, kWidth - kHelpColumn)) {
    head.resize(kHelpColumn, ' ');
    text += head + line + '\n';
    head.clear();
  }
  return text;
}

bool glued_number(std::string_view word) {
  return word.size() > 2 && word[1] != '-' &&
         word.substr(2).find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

FlagTable::FlagTable(std::string usage, std::string about)
    : usage_(std::move(usage)), about_(std::move(about)) {}

void FlagTable::section(std::string title) { sections_[flags_.size()] = std::move(title); }
void FlagTable::add(Flag flag) { flags_.push_back(std::move(flag)); }
void FlagTable::epilogue(std::string text) { epilogue_ = std::move(text); }

void FlagTable::add_switch(std::vector<std::string> names, std::string help, bool* target) {
  add({std::move(names), "", std::move(help), [target](std::string_view) {
         *target = true;
         return success();
       }});
}

void FlagTable::add_string(std::vector<std::string> names, std::string value, std::string help,
                           std::string* target) {
  const std::string name = names.back();
  add({std::move(names), std::move(value), std::move(help),
       [target, name](std::string_view text) -> Status {
         if (text.empty()) return Error{"an empty value means nothing here", name, ""};
         *target = text;
         return success();
       }});
}

void FlagTable::add_optional(std::vector<std::string> names, std::string value, std::string help,
                             std::optional<std::string>* target) {
  add({std::move(names), std::move(value), std::move(help), [target](std::string_view text) {
         *target = std::string(text);
         return success();
       }});
}

void FlagTable::add_int(std::vector<std::string> names, std::string value, std::string help,
                        long minimum, std::optional<long>* target) {
  const std::string name = names.back();
  add({std::move(names), std::move(value), std::move(help),
       [target, name, minimum](std::string_view text) -> Status {
         const std::optional<long> number = parse_int(text);
         if (!number) return Error{"not a whole number: " + std::string(text), name, ""};
         if (*number < minimum || *number > 100'000'000) {
           return Error{"out of range: " + std::string(text), name,
                        "must be at least " + std::to_string(minimum)};
         }
         *target = *number;
         return success();
       }});
}

void FlagTable::add_seconds(std::vector<std::string> names, std::string value, std::string help,
                            double* target) {
  const std::string name = names.back();
  add({std::move(names), std::move(value), std::move(help),
       [target, name](std::string_view text) -> Status {
         const std::optional<double> seconds = parse_duration_s(text);
         if (!seconds) {
           return Error{"not a duration: " + std::string(text), name,
                        "seconds, or a number with s, m or h"};
         }
         *target = *seconds;
         return success();
       }});
}

void FlagTable::add_list(std::vector<std::string> names, std::string value, std::string help,
                         std::vector<std::string>* target) {
  const std::string name = names.back();
  add({std::move(names), std::move(value), std::move(help),
       [target, name](std::string_view text) -> Status {
         for (const std::string& item : split(text, ',')) {
           if (item.empty()) return Error{"an empty entry in the list", name, ""};
           target->push_back(item);
         }
         return success();
       }});
}

void FlagTable::add_choice(std::vector<std::string> names, std::string help,
                           std::vector<std::string> words, std::string* target) {
  const std::string name = names.back();
  const std::string value = join(words, "|");
  add({std::move(names), value, std::move(help),
       [target, name, words = std::move(words)](std::string_view text) -> Status {
         if (std::find(words.begin(), words.end(), text) == words.end()) {
           return Error{"not a choice: " + std::string(text), name, "one of " + join(words, ", ")};
         }
         *target = text;
         return success();
       }});
}

const Flag* FlagTable::find(std::string_view name) const {
  for (const Flag& flag : flags_) {
    if (std::find(flag.names.begin(), flag.names.end(), name) != flag.names.end()) return &flag;
  }
  return nullptr;
}

Error FlagTable::unknown(std::string_view word) const {
  std::vector<std::string> names;
  for (const Flag& flag : flags_) {
    if (!flag.hidden) names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  const std::optional<std::string> meant = nearest(word, names);
  return Error{"unknown flag", std::string(word),
               meant ? "did you mean " + *meant + "?" : "see --help"};
}

Result<std::vector<std::string>> FlagTable::parse(const std::vector<std::string>& words,
                                                  bool* stopped_at_dashes) const {
  if (stopped_at_dashes != nullptr) *stopped_at_dashes = false;
  size_t i = 0;
  while (i < words.size()) {
    const std::string& word = words[i];
    if (word == "--") {
      if (stopped_at_dashes != nullptr) *stopped_at_dashes = true;
      ++i;
      break;
    }
    if (word.size() < 2 || word[0] != '-') break;
    ++i;
    const size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    const Flag* flag = find(name);
    std::string value;
    if (flag == nullptr && glued_number(word)) {
      name = word.substr(0, 2);
      flag = find(name);
      if (flag != nullptr) value = word.substr(2);
    }
    if (flag == nullptr) return unknown(word.substr(0, equals));
    if (!value.empty()) {
      // "-n4", as launchers take it
    } else if (flag->value.empty()) {
      if (equals != std::string::npos) return Error{"takes no value", name, ""};
    } else if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else {
      // "--nhosts --ppn 4": the next flag is not the value that was forgotten.
      if (i >= words.size() || words[i] == "--" ||
          find(words[i].substr(0, words[i].find('='))) != nullptr) {
        return Error{"needs a value: " + flag->value, name, ""};
      }
      value = words[i++];
    }
    if (Status status = flag->set(value); !status) {
      Error error = status.error();
      error.where = name;  // as the user spelled it
      return error;
    }
  }
  return std::vector<std::string>(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
}

Result<std::vector<std::string>> FlagTable::parse_mixed(
    const std::vector<std::string>& words) const {
  std::vector<std::string> arguments;
  std::vector<std::string> left = words;
  while (true) {
    bool stopped_at_dashes = false;
    Result<std::vector<std::string>> rest = parse(left, &stopped_at_dashes);
    if (!rest) return rest.error();
    if (stopped_at_dashes) arguments.insert(arguments.end(), rest->begin(), rest->end());
    if (stopped_at_dashes || rest->empty()) return arguments;
    arguments.push_back(rest->front());
    left.assign(rest->begin() + 1, rest->end());
  }
}

bool FlagTable::wants_help_mixed(const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::any_of(words.begin(), end,
                     [](const std::string& word) { return word == "-h" || word == "--help"; });
}

bool FlagTable::wants_help(const std::vector<std::string>& words) const {
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "-h" || word == "--help") return true;
    if (word == "--" || word.size() < 2 || word[0] != '-') return false;
    const Flag* flag = find(word.substr(0, word.find('=')));
    if (flag != nullptr && !flag->value.empty() && word.find('=') == std::string::npos) ++i;
  }
  return false;
}

std::string FlagTable::help() const {
  std::string text = "usage: " + usage_ + "\n\n";
  for (const std::string& line : wrap(about_, kWidth)) text += line + '\n';
  for (size_t i = 0; i < flags_.size(); ++i) {
    if (const auto title = sections_.find(i); title != sections_.end()) {
      text += '\n' + title->second + '\n';
    } else if (i == 0) {
      text += "\nFlags\n";
    }
    if (!flags_[i].hidden) text += entry(flags_[i]);
  }
  if (!epilogue_.empty()) text += '\n' + epilogue_ + '\n';
  return text;
}

std::optional<double> parse_duration_s(std::string_view text) {
  double unit = 1;
  if (!text.empty()) {
    switch (text.back()) {
      case 's':
        text.remove_suffix(1);
        break;
      case 'm':
        unit = 60;
        text.remove_suffix(1);
        break;
      case 'h':
        unit = 3600;
        text.remove_suffix(1);
        break;
      default:
        break;
    }
  }
  const std::optional<double> number = parse_double(text);
  if (!number || !(*number >= 0) || *number > 1e9) return std::nullopt;
  return *number * unit;
}

}  // namespace ezpz
