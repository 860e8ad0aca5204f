// ezpz's own voice on stderr, one line a message, each behind "ezpz: ". Kept apart from the job's
// output so that a person can grep for it. Everything is made printable first.
#pragma once

#include <functional>
#include <string_view>

namespace ezpz::log {

enum class Level { debug, info, warning, error };

void set_level(Level);
// Where lines go; the default writes to stderr. supervise/ routes them through the terminal pump,
// so that a stuck terminal cannot block the loop. The line comes with its newline.
void set_sink(std::function<void(std::string_view line)>);

void debug(std::string_view);
void info(std::string_view);
void warning(std::string_view);
void error(std::string_view);

}  // namespace ezpz::log
