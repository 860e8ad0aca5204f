// Who says this line? A kernel, a driver or a health check speaks of its own machine only, and
// whoever collects such lines (syslog, pdsh, a console server, an agent that writes JSON) puts the
// machine's name before them, each in a form of its own.
#pragma once

#include <string>
#include <string_view>

namespace ezpz::evidence {

// The host whose message begins at `message` in `line`; empty when nothing before it is a host,
// when several are, or when words stand there that no collector writes (then it is prose about a
// message).
std::string source_host(std::string_view line, size_t message);

// The rank in brackets ("[Rank 5]", "[rank=5]") that stands before `message`; -1 when there is none
// or not one.
int source_rank(std::string_view line, size_t message);

}  // namespace ezpz::evidence
