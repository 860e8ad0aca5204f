#include "base/result.h"

#include "base/text.h"

namespace ezpz {

std::string Error::one_line() const {
  std::string line = what;
  if (!where.empty()) line += ": " + where;
  if (!hint.empty()) line += " (" + hint + ")";
  return printable(line, 2000);
}

}  // namespace ezpz
