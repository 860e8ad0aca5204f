#include "launch/ssh_words.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace ezpz::launch {
namespace {

// ezpz cannot answer a question, and one ssh is one host: nothing shared, nothing forwarded. The
// input carries the order, so no character of it is an escape and no terminal stands in between.
constexpr const char* fixed[] = {
    "-oBatchMode=yes",   "-oControlMaster=no", "-oControlPath=none",
    "-oForwardAgent=no", "-oForwardX11=no",    "-oClearAllForwardings=yes",
    "-oEscapeChar=none", "-oRequestTTY=no",    "-oRemoteCommand=none"};

// A host that is down must be told within the patience of a probe (7 s); one that is lost in the
// middle within a minute, and a node under load be given time to answer. The log level is one at
// which ssh says that it lost a host.
constexpr const char* usual[] = {"-oConnectTimeout=5", "-oServerAliveInterval=10",
                                 "-oServerAliveCountMax=3", "-oLogLevel=INFO"};

// Of OpenSSH: those that take a value, and those that would take something from us: the command,
// its input, the connection, what ssh says of it.
constexpr std::string_view with_value = "BbcDEeFIiJLlmOoPpQRSWw";
constexpr std::string_view needed_by_us = "AEefGMNnOQqSsTtVWwXYy";

bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' ||
         c == '_' || c == '-' || c == ':';
}

}  // namespace

std::optional<Error> check_ssh_host(const std::string& host) {
  const bool fine = !host.empty() && host.size() <= 255 && host[0] != '-' &&
                    std::all_of(host.begin(), host.end(), is_plain);
  if (fine) return std::nullopt;
  return Error{"not a host that ssh can be given", printable(host, 80),
               "a name or an address; users and ports belong into ssh's own configuration"};
}

std::optional<Error> check_ssh_flags(const Argv& user_flags) {
  for (size_t i = 0; i < user_flags.size(); ++i) {
    const std::string& word = user_flags[i];
    if (word.size() < 2 || word[0] != '-' || word[1] == '-') {
      return Error{"not a flag of ssh", printable(word, 80),
                   "the hosts come from --hostfile, the command stands behind the second '--'"};
    }
    for (size_t at = 1; at < word.size(); ++at) {
      if (needed_by_us.find(word[at]) != std::string_view::npos) {
        return Error{"ezpz needs ssh's command, input, messages and connection for itself",
                     std::string("-") + word[at], "leave it out"};
      }
      if (with_value.find(word[at]) == std::string_view::npos) continue;
      if (at + 1 == word.size() && ++i == user_flags.size()) {
        return Error{"the flag lacks its value", printable(word, 80), ""};
      }
      break;
    }
  }
  return std::nullopt;
}

Argv ssh_words(const std::string& program, const Argv& user_flags) {
  Argv words{program.empty() ? "ssh" : program};
  words.insert(words.end(), std::begin(fixed), std::end(fixed));
  words.insert(words.end(), user_flags.begin(), user_flags.end());
  words.insert(words.end(), std::begin(usual), std::end(usual));
  return words;
}

Argv ssh_argv(const Argv& words, const std::string& host, const std::string& ezpz) {
  Argv argv = words;
  argv.insert(argv.end(), {"--", host, "exec " + shell_quote(ezpz) + " ssh-node"});
  return argv;
}

}  // namespace ezpz::launch
