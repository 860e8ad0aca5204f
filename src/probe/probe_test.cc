#include "probe/probe.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proctable.h"
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

TEST(NodeCheck, ASignalIsForTheRanksAndNotForWhatTheyStarted) {
  // The rank records what it gets; its child, which inherits its variables, would die of it.
  SpawnSpec spec;
  spec.argv = {"sh", "-c", "trap 'exit 7' TERM; sleep 60 & while :; do wait $!; done"};
  spec.env = {{"EZPZ_ATTEMPT_ID", "probe-test.2"}, {"EZPZ_NODE", "simA"}, {"RANK", "0"}};
  spec.new_session = true;
  const Result<pid_t> rank = spawn(spec);
  ASSERT_TRUE(rank.ok());
  std::vector<Process> children;
  for (int i = 0; i < 200 && children.empty(); ++i) {
    usleep(10'000);
    children = descendants(list_processes(), *rank);
  }
  ASSERT_EQ(children.size(), 1U);

  CheckRequest term{"simA", "probe-test.2"};
  term.signal = SIGTERM;
  EXPECT_TRUE(check_node(term).healthy());
  int status = 0;
  waitpid(*rank, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_TRUE(read_process(children[0].pid).has_value()) << "the child was signalled, too";
  kill(children[0].pid, SIGKILL);
}

TEST(NodeCheck, ARankThatAnMpiexecStartedWithoutEzpzRankIsFound) {
  SpawnSpec spec;
  spec.argv = {"sleep", "60"};
  spec.env = {{"EZPZ_ATTEMPT_ID", "probe-test.3"}, {"EZPZ_NODE", std::nullopt}};
  const Result<pid_t> launcher = spawn(spec);
  spec.env["PMI_RANK"] = "0";
  const Result<pid_t> rank = spawn(spec);
  ASSERT_TRUE(rank.ok() && launcher.ok());
  EXPECT_EQ(check_node({"n1", "probe-test.3", false, 0}).survivors, (std::vector<int>{*rank}));
  for (const pid_t pid : {*rank, *launcher}) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

TEST(Probe, ThroughAnMpiexecFewHostsAreAskedEachAlone) {
  Loop loop;
  ProbeSpec spec;
  spec.reach = Reach::launcher;
  spec.hosts = make_nodes({"n1", "n2", "n3"}, {});
  spec.self_path = "/opt/ezpz";
  spec.alone_s = 5;
  std::vector<size_t> asked;
  spec.beside = [&asked](const std::vector<Node>& hosts, const Argv& command) -> Result<Argv> {
    asked.push_back(hosts.size());
    EXPECT_EQ(command[0], "/opt/ezpz");
    const std::string& name = hosts[0].spelled;
    if (name == "n3") return Argv{"sh", "-c", "echo no route to n3 >&2; exit 255"};
    return Argv{"echo", "ezpz-node-check node=" + name + " tmp=ok cleared=0 survivors=none"};
  };
  const ProbeResult few = run_probe(loop, spec, {});
  EXPECT_EQ(asked, (std::vector<size_t>{1, 1, 1}));
  EXPECT_TRUE(few.ran);
  EXPECT_EQ(few.answered.size(), 2U);
  EXPECT_NE(few.refused.at("n3").find("no route to n3"), std::string::npos);

  asked.clear();
  spec.at_once = 2;  // three are many now: all together first, then who did not answer
  run_probe(loop, spec, {});
  EXPECT_EQ(asked, (std::vector<size_t>{3, 1, 1}));
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
