#include "verdict/death.h"

#include <array>
#include <csignal>

namespace ezpz::verdict {
namespace {

struct Meaning {
  int signal;
  Hand hand;
};
// Signals that are not listed are the program's own fault.
constexpr std::array kMeanings{
    Meaning{SIGKILL, Hand::outside}, Meaning{SIGTERM, Hand::asked}, Meaning{SIGINT, Hand::asked},
    Meaning{SIGHUP, Hand::asked},    Meaning{SIGUSR1, Hand::asked}, Meaning{SIGUSR2, Hand::asked},
    Meaning{SIGQUIT, Hand::asked},
};

constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;
constexpr int kSignalBase = 128;
constexpr int kLastSignal = 64;

}  // namespace

int signal_of_death(const Fact& death) {
  if (death.signal != 0) return death.signal;
  const int signal = death.code - kSignalBase;
  return signal > 0 && signal <= kLastSignal ? signal : 0;
}

Hand hand_in_death(const Fact& death) {
  const int signal = signal_of_death(death);
  if (signal != 0) {
    for (const Meaning& meaning : kMeanings) {
      if (meaning.signal == signal) return meaning.hand;
    }
    return Hand::itself;
  }
  if (death.code == kNotFound || death.code == kNotExecutable) return Hand::unusable;
  return death.code > 0 ? Hand::exit : Hand::unknown;
}

}  // namespace ezpz::verdict
