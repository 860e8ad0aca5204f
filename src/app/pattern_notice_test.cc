#include "app/pattern_notice.h"

#include <gtest/gtest.h>

namespace ezpz::app {
namespace {

const evidence::Grammar& grammar() {
  static const evidence::Grammar loaded = evidence::Grammar::load().value();
  return loaded;
}

site::Detection on(const std::string& name, const std::string& launcher, bool known) {
  site::Detection detection;
  detection.machine.name = name;
  detection.machine.launcher = launcher;
  detection.why = "because of its name";
  detection.known = known;
  return detection;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(PatternNotice, AKnownMachineWithACoveredLauncherNeedsNone) {
  EXPECT_FALSE(pattern_notice(on("perlmutter", "srun", true), "srun", grammar(), {"perlmutter"}));
  EXPECT_FALSE(pattern_notice(on("perlmutter", "srun", true), "local", grammar(), {"perlmutter"}));
}

TEST(PatternNotice, EveryBuiltInMachinesLauncherIsCovered) {
  const auto machines = site::load_machines();
  ASSERT_TRUE(machines.ok());
  for (const site::Machine& machine : *machines) {
    if (machine.launcher.empty()) continue;
    EXPECT_TRUE(grammar().covers_launcher(machine.launcher)) << machine.name;
  }
}

TEST(PatternNotice, AnUnknownMachineIsNamedWithTheReasonTheKnownOnesAndWhatToDo) {
  const auto notice =
      pattern_notice(on("generic", "", false), "srun", grammar(), {"aurora", "perlmutter"});
  ASSERT_TRUE(notice);
  for (const char* part : {"machine generic", "because of its name", "aurora, perlmutter",
                           "--machine", "--patterns-dir", "docs/patterns.md"}) {
    EXPECT_TRUE(holds(notice->line, part)) << part << ": " << notice->line;
  }
  EXPECT_TRUE(notice->launchers.empty());
  EXPECT_FALSE(holds(notice->line, "\n"));
}

TEST(PatternNotice, ALauncherThatNoFileCoversIsNamedOnce) {
  const auto notice = pattern_notice(on("mine", "acme", true), "acme", grammar(), {"mine"});
  ASSERT_TRUE(notice);
  EXPECT_EQ(notice->launchers, std::vector<std::string>{"acme"});
  EXPECT_TRUE(holds(notice->line, "the launcher acme of mine (because of its name)"))
      << notice->line;
}

}  // namespace
}  // namespace ezpz::app
