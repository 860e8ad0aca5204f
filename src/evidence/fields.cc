#include "evidence/fields.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "base/text.h"

namespace ezpz::evidence {
namespace {

constexpr std::array<std::pair<std::string_view, Field>, 14> kFields{{
    {"host", Field::host},
    {"hosts", Field::hosts},
    {"rank", Field::ranks},
    {"ranks", Field::ranks},
    {"ip", Field::ip},
    {"code", Field::code},
    {"signal", Field::signal},
    {"reason", Field::reason},
    {"step_id", Field::step_id},
    {"step", Field::step},
    {"world_size", Field::world_size},
    {"last_rank", Field::last_rank},
    {"seq", Field::seq},
    {"nranks", Field::nranks},
}};

// strsignal(3) of glibc, which is what srun and shells print; written out because the job's machine
// need not share this one's language.
constexpr std::array<std::pair<std::string_view, int>, 35> kSignals{{
    {"Hangup", SIGHUP},
    {"SIGHUP", SIGHUP},
    {"Interrupt", SIGINT},
    {"SIGINT", SIGINT},
    {"Quit", SIGQUIT},
    {"SIGQUIT", SIGQUIT},
    {"Illegal instruction", SIGILL},
    {"SIGILL", SIGILL},
    {"Trace/breakpoint trap", SIGTRAP},
    {"SIGTRAP", SIGTRAP},
    {"Aborted", SIGABRT},
    {"SIGABRT", SIGABRT},
    {"Bus error", SIGBUS},
    {"SIGBUS", SIGBUS},
    {"IOT/Abort trap", SIGABRT},
    {"Floating point exception", SIGFPE},
    {"Arithmetic exception", SIGFPE},
    {"SIGFPE", SIGFPE},
    {"Killed", SIGKILL},
    {"SIGKILL", SIGKILL},
    {"User defined signal 1", SIGUSR1},
    {"SIGUSR1", SIGUSR1},
    {"Segmentation fault", SIGSEGV},
    {"SIGSEGV", SIGSEGV},
    {"User defined signal 2", SIGUSR2},
    {"SIGUSR2", SIGUSR2},
    {"Broken pipe", SIGPIPE},
    {"SIGPIPE", SIGPIPE},
    {"Alarm clock", SIGALRM},
    {"SIGALRM", SIGALRM},
    {"Terminated", SIGTERM},
    {"SIGTERM", SIGTERM},
    {"CPU time limit exceeded", SIGXCPU},
    {"File size limit exceeded", SIGXFSZ},
    {"Bad system call", SIGSYS},
}};

}  // namespace

std::optional<Field> field(std::string_view name) {
  for (const auto& [known, meaning] : kFields) {
    if (known == name) return meaning;
  }
  return std::nullopt;
}

std::vector<std::string> field_names() {
  std::vector<std::string> names;
  names.reserve(kFields.size());
  for (const auto& [name, meaning] : kFields) names.emplace_back(name);
  return names;
}

std::vector<int> parse_ranks(std::string_view text) {
  constexpr long kMaxRank = 1L << 24;
  std::vector<int> ranks;
  for (const std::string& part : split(text, ',')) {
    std::string_view range = trim(part);
    while (!range.empty() && range.front() == '[') range.remove_prefix(1);
    while (!range.empty() && range.back() == ']') range.remove_suffix(1);
    const size_t dash = range.find('-');
    const std::optional<long> first = parse_int(range.substr(0, dash));
    const std::optional<long> last =
        dash == std::string_view::npos ? first : parse_int(range.substr(dash + 1));
    if (!first || !last || *first < 0 || *last > kMaxRank) continue;
    for (long rank = *first; rank <= *last && ranks.size() < kMaxRanks; ++rank) {
      ranks.push_back(static_cast<int>(rank));
    }
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

int parse_signal(std::string_view text) {
  text = trim(text);
  for (const auto& [name, number] : kSignals) {
    if (name == text) return number;
  }
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  const std::optional<long> number = parse_int(text);
  return number && *number > 0 && *number <= 64 ? static_cast<int>(*number) : 0;
}

std::string describe(const Fact& fact, Field which) {
  switch (which) {
    case Field::host:
    case Field::hosts:
      return fact.host;
    case Field::ranks:
      return ranges(fact.ranks);
    case Field::ip:
      return fact.ip;
    case Field::code:
      return fact.code < 0 ? "" : std::to_string(fact.code);
    case Field::signal:
      return fact.signal == 0 ? "" : std::to_string(fact.signal);
    case Field::reason:
      return fact.reason;
    case Field::step_id:
      return fact.step_id;
    case Field::seq:
      return fact.seq < 0 ? "" : std::to_string(fact.seq);
    case Field::step:
    case Field::world_size:
    case Field::last_rank:
    case Field::nranks:
      return "";
  }
  return "";
}

}  // namespace ezpz::evidence
