// The rendezvous port of an attempt. A new one for each attempt: the old one may linger.
#pragma once

#include <functional>
#include <string>

namespace ezpz::launch {

inline constexpr int first_port = 20000;  // below the kernel's ephemeral range
inline constexpr int last_port = 29999;

// The same inputs give the same port, unless is_free says no: then the next one that is. salt keeps
// apart runs of one job that share a log directory. is_free may be empty.
int choose_port(const std::string& job_id, int attempt, const std::string& salt,
                const std::function<bool(int port)>& is_free);

}  // namespace ezpz::launch
