// The words of one ssh: what ezpz says, what the user may add, what runs at the far end.
#pragma once

#include <optional>
#include <string>

#include "base/process.h"
#include "base/result.h"

namespace ezpz::launch {

// A name or address, and nothing that ssh, its configuration (%h) or a shell could take for more.
std::optional<Error> check_ssh_host(const std::string& host);
// The user's own flags: any that does not take the command, the input or the host from us.
std::optional<Error> check_ssh_flags(const Argv& user_flags);

// Everything before the host. The first value of an option counts with ssh: what must hold stands
// before the user's flags, what may be changed behind them.
Argv ssh_words(const std::string& program, const Argv& user_flags);

// `WORDS... -- HOST 'exec EZPZ ssh-node'`. sshd hands the last word to the login shell of whoever
// it is over there; it never holds anything but the path, quoted.
Argv ssh_argv(const Argv& words, const std::string& host, const std::string& ezpz);

}  // namespace ezpz::launch
