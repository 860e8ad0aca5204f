#include "evidence/source_host.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <optional>
#include <vector>

#include "base/text.h"

namespace ezpz::evidence {
namespace {

// Nobody's header is longer, and a log is hostile input.
constexpr size_t kLongestHeader = 400;
constexpr size_t kLongestRecord = 4096;
constexpr size_t kMostWords = 24;
constexpr size_t kLongestHost = 253;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_host_char(char c) {
  return is_digit(c) || is_letter(c) || c == '-' || c == '.' || c == '_';
}

struct Word {
  std::string_view text;
  bool bracketed = false;
  bool colon = false;  // a colon stands behind it, as behind the tag of a syslog line
};

// What headers hold besides the host: times, priorities, the tool's own name.
constexpr std::array<std::string_view, 59> kHeaderWords{
    "jan",     "feb",       "mar",      "apr",    "may",      "jun",    "jul",     "aug",
    "sep",     "oct",       "nov",      "dec",    "mon",      "tue",    "wed",     "thu",
    "fri",     "sat",       "sun",      "utc",    "gmt",      "cet",    "cest",    "pst",
    "pdt",     "est",       "edt",      "am",     "pm",       "kernel", "kern",    "dmesg",
    "syslog",  "journal",   "console",  "conman", "ipmi",     "sol",    "message", "from",
    "at",      "on",        "node",     "host",   "debug",    "info",   "notice",  "warn",
    "warning", "err",       "error",    "crit",   "critical", "alert",  "emerg",   "fatal",
    "health",  "preflight", "localhost"};

bool is_header_word(std::string_view word) {
  const std::string folded = lower(word);
  return std::find(kHeaderWords.begin(), kHeaderWords.end(), folded) != kHeaderWords.end();
}

// Times, numbers, addresses of devices: digits and what stands between them, and hexadecimal digits
// about colons. A dash alone fills an empty field.
bool is_number_like(std::string_view word) {
  const bool colons = word.find(':') != std::string_view::npos;
  return std::all_of(word.begin(), word.end(), [&](char c) {
    return is_digit(c) || std::string_view(":.-+/,_TZ").find(c) != std::string_view::npos ||
           (colons && std::isxdigit(static_cast<unsigned char>(c)) != 0);
  });
}

// Devices that drivers name as hosts are named: nvme0n1, sda, eth0, mlx5-0, rank3.
bool is_device(std::string_view word) {
  constexpr std::array<std::string_view, 24> kDevices{
      "nvme", "sd",   "md",  "dm-",    "eth",      "ib",   "hsn",    "bond",
      "enp",  "eno",  "ens", "cxi",    "mlx",      "cpu",  "mc",     "cuda",
      "rank", "task", "pci", "nvidia", "nvswitch", "card", "worker", "GPU"};
  return std::any_of(kDevices.begin(), kDevices.end(), [&](std::string_view device) {
    if (!word.starts_with(device)) return false;
    const std::string_view rest = word.substr(device.size());
    // A host may be called mc12: a device's number is short, and what follows it, too.
    return !rest.empty() && (is_digit(rest.front()) || device == "sd" || device == "enp") &&
           rest.size() <= (device == "nvme" || device.starts_with("en") ? 8U : 1U);
  });
}

// In a place where a host is expected anyway.
bool may_be_host(std::string_view word) {
  if (word.empty() || word.size() > kLongestHost || !is_host_char(word.front())) return false;
  if (!is_digit(word.front()) && !is_letter(word.front())) return false;
  if (!is_digit(word.back()) && !is_letter(word.back())) return false;
  return std::all_of(word.begin(), word.end(), is_host_char) &&
         std::any_of(word.begin(), word.end(), is_letter) && !is_header_word(word) &&
         !is_number_like(word) && !is_device(word);
}

// By its looks alone: a word without a digit is a word.
bool looks_like_host(std::string_view word) {
  return word.size() > 1 && may_be_host(word) && word.find('_') == std::string_view::npos &&
         std::any_of(word.begin(), word.end(), is_digit) && !word.starts_with("0x");
}

void add_word(std::string_view text, bool bracketed, std::vector<Word>* words) {
  Word word{text, bracketed, false};
  while (!word.text.empty() &&
         std::string_view(":\"'").find(word.text.front()) != std::string_view::npos) {
    word.text.remove_prefix(1);
  }
  while (!word.text.empty() &&
         std::string_view(":,;\"'").find(word.text.back()) != std::string_view::npos) {
    word.colon = word.colon || word.text.back() == ':';
    word.text.remove_suffix(1);
  }
  // "Message from syslogd@HOST"
  if (const size_t at = word.text.find('@'); at != std::string_view::npos) {
    word.text.remove_prefix(at + 1);
  }
  // "console.HOST", as conserver names its logs
  constexpr std::string_view kConsole = "console.";
  if (word.text.starts_with(kConsole)) word.text.remove_prefix(kConsole.size());
  if (!word.text.empty()) words->push_back(word);
}

std::optional<std::vector<Word>> words_of(std::string_view header) {
  constexpr std::string_view kOpen = "[<(";
  constexpr std::string_view kClose = "]>)";
  std::vector<Word> words;
  char closing = 0;
  size_t begin = 0;
  const auto end_word = [&](size_t end) {
    if (end > begin) add_word(header.substr(begin, end - begin), closing != 0, &words);
    begin = end + 1;
  };
  for (size_t i = 0; i < header.size(); ++i) {
    const char c = header[i];
    if (c == ' ' || c == '\t') {
      end_word(i);
    } else if (const size_t which = kOpen.find(c); which != std::string_view::npos) {
      end_word(i);
      closing = kClose[which];
    } else if (kClose.find(c) != std::string_view::npos) {
      end_word(i);
      closing = 0;
      // "[HOST]: ", "kernel[0]: ": the colon belongs to what is in the brackets.
      if (i + 1 < header.size() && header[i + 1] == ':') begin = ++i + 1;
    }
    if (words.size() > kMostWords) return std::nullopt;
  }
  end_word(header.size());
  return words;
}

// {"host": "gpu-17", ...} and host=gpu-17: log shippers' records, in which the name may stand
// behind the message as well. `several`: they do not agree.
std::string host_of_record(std::string_view line, bool* several) {
  constexpr std::array<std::string_view, 10> kKeys{
      "host",      "hostname",    "node",      "nodename", "node_name",
      "host_name", "source_host", "_hostname", "server",   "machine"};
  std::string found;
  line = line.substr(0, kLongestRecord);
  for (size_t i = 1; i < line.size(); ++i) {
    if (line[i] != ':' && line[i] != '=') continue;
    size_t end = i;
    const bool quoted = line[end - 1] == '"';
    if (quoted) --end;
    if (quoted != (line[i] == ':')) continue;
    size_t begin = end;
    while (begin > 0 && (is_letter(line[begin - 1]) || line[begin - 1] == '_')) --begin;
    if (quoted && (begin == 0 || line[begin - 1] != '"')) continue;
    if (!quoted && begin > 0 && line[begin - 1] != ' ' && line[begin - 1] != ',') continue;
    const std::string key = lower(line.substr(begin, end - begin));
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) continue;
    size_t from = i + 1;
    while (from < line.size() && (line[from] == ' ' || line[from] == '"')) ++from;
    size_t to = from;
    while (to < line.size() && is_host_char(line[to])) ++to;
    const std::string_view host = line.substr(from, to - from);
    if (!may_be_host(host)) continue;
    if (!found.empty() && found != host) *several = true;
    found = host;
  }
  return found;
}

}  // namespace

std::string source_host(std::string_view line, size_t message) {
  message = std::min(message, line.size());
  bool several = false;
  if (std::string host = host_of_record(line, &several); !host.empty() || several) {
    return several ? std::string() : host;
  }
  std::string_view header = line.substr(0, message);
  // A record's own fields are no header.
  header = header.substr(0, header.find('{'));
  if (header.size() > kLongestHeader) return {};
  const std::optional<std::vector<Word>> words = words_of(header);
  if (!words) return {};
  // "HOST kernel: ": the place tells it, whatever the name looks like and whatever else stands
  // there.
  for (size_t i = words->size(); i-- > 1;) {
    const Word& tag = (*words)[i];
    const Word& host = (*words)[i - 1];
    if (tag.text != "kernel" || (!tag.colon && i + 1 == words->size())) continue;
    if (may_be_host(host.text) && !host.colon) return std::string(host.text);
  }
  std::string_view host;
  for (size_t i = 0; i < words->size(); ++i) {
    const Word& word = (*words)[i];
    if (is_number_like(word.text) || is_header_word(word.text)) continue;
    if (looks_like_host(word.text)) {
      if (!host.empty() && host != word.text) return {};
      host = word.text;
      continue;
    }
    // What a tool puts in brackets or before a colon is a tag; anything else is a sentence.
    if (!word.bracketed && !word.colon) return {};
  }
  return std::string(host);
}

int source_rank(std::string_view line, size_t message) {
  std::string_view header = line.substr(0, std::min({message, line.size(), kLongestHeader}));
  int rank = -1;
  for (size_t at = header.find('['); at != std::string_view::npos; at = header.find('[', at + 1)) {
    const size_t close = header.find(']', at);
    if (close == std::string_view::npos) break;
    const std::string inside = lower(header.substr(at + 1, close - at - 1));
    if (!inside.starts_with("rank")) continue;
    std::string_view number = std::string_view(inside).substr(4);
    while (!number.empty() &&
           std::string_view(" =:").find(number.front()) != std::string_view::npos) {
      number.remove_prefix(1);
    }
    const std::optional<long> value = parse_int(number.substr(0, number.find('/')));
    if (!value || *value < 0 || *value > std::numeric_limits<int>::max()) continue;
    if (rank >= 0 && rank != *value) return -1;
    rank = static_cast<int>(*value);
  }
  return rank;
}

}  // namespace ezpz::evidence
