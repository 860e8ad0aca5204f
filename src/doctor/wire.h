// How a node's report travels through a launcher's output. Launchers put labels before lines, run
// two messages together in one, and cut long lines into pieces between which other nodes' pieces
// come (slurmstepd: 1024 bytes). So a report is a few short lines, each of which says whose it is,
// which part, and how long.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ezpz::doctor {

// Lines that carry the payload, which must be printable ASCII. id: a word no other sender uses.
std::string write_wire(std::string_view payload, std::string_view id);
// A fresh one.
std::string wire_id();

// Every payload that is there whole, in the order they were completed.
std::vector<std::string> read_wire(std::string_view output);

}  // namespace ezpz::doctor
