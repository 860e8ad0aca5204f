// Small text tools. Pure; bytes are bytes (log text is not UTF-8).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ezpz {

std::vector<std::string> split(std::string_view text, char separator);  // keeps empty fields
std::vector<std::string> split_words(std::string_view text);            // by white space
std::vector<std::string> split_lines(std::string_view text);            // no trailing empty line
std::string_view trim(std::string_view);
std::string join(const std::vector<std::string>&, std::string_view separator);
std::string lower(std::string_view);

// The whole text as a number, or nothing: no sign unless signed, no white space, no overflow.
std::optional<long> parse_int(std::string_view);
std::optional<double> parse_double(std::string_view);

// Quoted for a POSIX shell, for people who paste what --dry-run prints. Never used to run anything.
std::string shell_quote(std::string_view);
std::string shell_join(const std::vector<std::string>& argv);

// Hostile bytes made safe to show: control characters (escape sequences among them) become '?'.
std::string printable(std::string_view, size_t max_bytes = 400);

// The same for text of several lines: newlines stay.
std::string printable_lines(std::string_view);

// The candidate a mistyped word most likely meant, when one is close enough to say so.
std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

// "0-3,6" from {0,1,2,3,6}
std::string ranges(const std::vector<int>& ascending);

}  // namespace ezpz
