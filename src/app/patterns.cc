#include "app/command.h"
namespace ezpz::app {
int run_patterns(const Words&) { return 0; }
}  // namespace ezpz::app
