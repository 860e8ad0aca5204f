#include "probe/probe.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"

namespace ezpz::probe {
namespace {

TEST(NodeCheck, AReportReadsBackFromAnywhereInALine) {
  CheckReport report;
  report.node = "nid000003";
  report.tmp_ok = true;
  report.cleared = 2;
  report.survivors = {17, 4711};
  const auto back = parse_report("0: " + format_report(report));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->node, "nid000003");
  EXPECT_TRUE(back->tmp_ok);
  EXPECT_EQ(back->cleared, 2);
  EXPECT_EQ(back->survivors, (std::vector<int>{17, 4711}));
  EXPECT_FALSE(back->healthy());
}

TEST(NodeCheck, ACutOffReportIsNoReport) {
  EXPECT_FALSE(parse_report("ezpz-node-check node=nid1 tmp=ok").has_value());
  EXPECT_FALSE(parse_report("ezpz-node-check node=nid1 tmp=ok cleared=0 survivors=x").has_value());
  EXPECT_FALSE(parse_report("something else").has_value());
}

TEST(NodeCheck, SurvivorsOfTheAttemptOnThisNodeAreFoundAndEnded) {
  SpawnSpec spec;
  spec.argv = {"sleep", "60"};
  spec.env = {{"EZPZ_ATTEMPT_ID", "probe-test.1"}, {"EZPZ_NODE", "simA"}, {"RANK", "0"}};
  const Result<pid_t> here = spawn(spec);
  spec.env["EZPZ_NODE"] = "simB";
  const Result<pid_t> elsewhere = spawn(spec);
  ASSERT_TRUE(here.ok() && elsewhere.ok());

  CheckRequest look{"simA", "probe-test.1", false, 0};
  EXPECT_EQ(check_node(look).survivors, (std::vector<int>{*here})) << "the fault must be there";
  CheckRequest clear{"simA", "probe-test.1", true, 5};
  const CheckReport report = check_node(clear);
  EXPECT_TRUE(report.survivors.empty());
  EXPECT_EQ(report.cleared, 1);
  EXPECT_EQ(kill(*elsewhere, 0), 0) << "another node's rank must live";
  kill(*elsewhere, SIGKILL);
  waitpid(*here, nullptr, 0);
  waitpid(*elsewhere, nullptr, 0);
}

TEST(Probe, TheSrunCheckTakesNothingAndIsNeverExact) {
  const std::vector<Node> hosts = make_nodes({"nid1", "nid2"}, {});
  const CheckRequest check{"", "57.1", true, 3};
  for (const bool overlap : {false, true}) {
    const std::string words = shell_join(srun_check_argv(hosts, "/opt/ezpz", check, overlap));
    const std::string flags =
        " srun -N2 -n2 --ntasks-per-node=1 --distribution=block --gres=none --mem=0 --input=none "
        "--kill-on-bad-exit=0 --export=ALL --nodelist=nid1,nid2" +
        std::string(overlap ? " --overlap" : "") +
        " /opt/ezpz node-check --attempt-id=57.1 --wait=3.0 --clear";
    EXPECT_TRUE(words.ends_with(flags)) << words;
    EXPECT_TRUE(words.starts_with("env -u ")) << words;
    for (const char* name : {"SLURM_GPUS_PER_NODE", "SLURM_CPUS_PER_TASK", "SLURM_NTASKS"}) {
      EXPECT_NE(words.find(std::string("-u ") + name + " "), std::string::npos) << name;
    }
  }
}

TEST(Probe, AHostThatCannotBeAskedIsSilentOrRefusedNeverHealthy) {
  Loop loop;
  ProbeSpec spec;
  spec.hosts = make_nodes({"simA"}, {});
  spec.self_path = "/bin/false";
  const ProbeResult refused = run_probe(loop, spec, {});
  EXPECT_TRUE(refused.ran);
  EXPECT_TRUE(refused.answered.empty());
  EXPECT_EQ(refused.refused.count("sima"), 1U);
  spec.self_path = "/no/such/binary";
  const ProbeResult unavailable = run_probe(loop, spec, {});
  EXPECT_FALSE(unavailable.ran);
  EXPECT_FALSE(unavailable.trouble.empty());
}

}  // namespace
}  // namespace ezpz::probe
