// The only places where this program waits. Signals arrive there and nowhere else, so the code
// between two waits is never interrupted and needs no atomics.
#pragma once

#include <functional>

namespace toy {

// Called from a wait, in the ordinary flow of the program, for SIGTERM, SIGUSR1 and SIGUSR2.
using OnSignal = std::function<void(int signal)>;
void catch_signals(OnSignal);

double now_s();   // monotonic
double wall_s();  // since the epoch

enum class Wait { ready, timed_out };
// fd becomes readable (or writable) before deadline_s (monotonic; infinite: wait for ever).
enum class Until { readable, writable };
Wait wait_for(int fd, Until, double deadline_s);
void sleep_until(double deadline_s);
[[noreturn]] void sleep_forever();

}  // namespace toy
