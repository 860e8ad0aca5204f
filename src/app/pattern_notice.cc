#include "app/pattern_notice.h"

#include <fmt/core.h>

#include "base/text.h"

namespace ezpz::app {

std::optional<PatternNotice> pattern_notice(const site::Detection& machine,
                                            const std::string& in_use,
                                            const evidence::Grammar& grammar,
                                            const std::vector<std::string>& machines) {
  PatternNotice notice;
  const std::string& own = machine.machine.launcher;
  for (const std::string& launcher : {in_use, own}) {
    const bool twice = launcher == own && own == in_use && !notice.launchers.empty();
    if (launcher.empty() || twice || grammar.covers_launcher(launcher)) continue;
    notice.launchers.push_back(launcher);
  }
  if (machine.known && notice.launchers.empty()) return std::nullopt;

  std::vector<std::string> missing;
  if (!machine.known) missing.push_back("this machine is in no table (" + machine.why + ")");
  if (!notice.launchers.empty()) {
    missing.push_back(
        "no patterns file covers the launcher " + join(notice.launchers, " or ") +
        (machine.known ? " of " + machine.machine.name + " (" + machine.why + ")" : ""));
  }
  notice.line = fmt::format(
      "only general patterns apply on machine {}: {}. Known machines: {}. If it is one of them say "
      "--machine NAME; its own messages are taught with --patterns-dir DIR (docs/patterns.md)",
      machine.machine.name, join(missing, "; "), join(machines, ", "));
  return notice;
}

}  // namespace ezpz::app
