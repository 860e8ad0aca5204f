#include "launch/srun_flags.h"

#include <algorithm>
#include <iterator>

namespace ezpz::launch {
namespace {

struct ShortFlag {
  const char* name;
  char letter;
  bool bundles;  // takes no value, so "-uv" is two flags
};
constexpr ShortFlag short_flags[] = {
    {"unbuffered", 'u', true},     {"verbose", 'v', true},
    {"quiet", 'Q', true},          {"label", 'l', true},
    {"overcommit", 'O', true},     {"oversubscribe", 's', true},
    {"hold", 'H', true},           {"preserve-env", 'E', true},
    {"disable-status", 'X', true}, {"no-allocate", 'Z', true},
    {"nodes", 'N', false},         {"ntasks", 'n', false},
    {"distribution", 'm', false},  {"cpus-per-task", 'c', false},
    {"gpus", 'G', false},          {"kill-on-bad-exit", 'K', false},
    {"input", 'i', false},         {"nodelist", 'w', false},
    {"nodefile", 'F', false},      {"exclude", 'x', false},
    {"relative", 'r', false},
};

void add_short(const std::string& word, std::set<std::string>* found) {
  for (size_t i = 1; i < word.size(); ++i) {
    const auto* flag = std::find_if(std::begin(short_flags), std::end(short_flags),
                                    [&](const ShortFlag& f) { return f.letter == word[i]; });
    if (flag == std::end(short_flags)) return;
    found->insert(flag->name);
    if (!flag->bundles) return;  // the rest of the word is its value
  }
}

}  // namespace

std::set<std::string> srun_flags_in(const Argv& user_flags) {
  std::set<std::string> found;
  for (const std::string& word : user_flags) {
    if (word.rfind("--", 0) == 0) {
      found.insert(word.substr(
          2, word.find('=') == std::string::npos ? std::string::npos : word.find('=') - 2));
    } else if (word.size() > 1 && word[0] == '-') {
      add_short(word, &found);
    }
  }
  return found;
}

}  // namespace ezpz::launch
