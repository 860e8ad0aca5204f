#include "base/log.h"

#include <string>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace ezpz::log {
namespace {

struct State {
  Level level = Level::info;
  std::function<void(std::string_view)> sink;
};

State& state() {
  static State state;
  return state;
}

void emit(Level level, std::string_view prefix, std::string_view message) {
  if (level < state().level) return;
  std::string line = "ezpz: ";
  line += prefix;
  line += printable(message, 4000);
  line += '\n';
  if (state().sink) {
    state().sink(line);
  } else {
    write_all(2, line);
  }
}

}  // namespace

void set_level(Level level) { state().level = level; }
void set_sink(std::function<void(std::string_view)> sink) { state().sink = std::move(sink); }

void debug(std::string_view message) { emit(Level::debug, "debug: ", message); }
void info(std::string_view message) { emit(Level::info, "", message); }
void warning(std::string_view message) { emit(Level::warning, "warning: ", message); }
void error(std::string_view message) { emit(Level::error, "error: ", message); }

}  // namespace ezpz::log
