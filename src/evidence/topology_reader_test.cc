// Where ranks ran, as whole logs tell it.
#include "evidence/topology_reader.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "evidence/grammar_tables.h"
#include "evidence/test_grammar.h"

namespace ezpz::evidence {
namespace {

const NodeNaming kNaming{{".hsn.*", ".hostmgmt#.*"}, {"-hsn#"}};

Placement read(const std::string& log) {
  TopologyReader reader(test_grammar(), kNaming);
  reader.feed(log);
  reader.finish();
  return reader.conclude();
}

// "nid1:0-3 nid2:4-7", and what is disputed.
std::string show(const Placement& placement) {
  std::vector<std::string> parts;
  for (const Placement::Host& host : placement.hosts) {
    parts.push_back(host.name + ":" + ranges(host.ranks));
  }
  for (const Placement::Conflict& conflict : placement.conflicts) {
    std::vector<std::string> names;
    for (const Placement::Claim& claim : conflict.claims) names.push_back(claim.host);
    parts.push_back("conflict " + ranges(conflict.ranks) + ":" + join(names, "|"));
  }
  for (const Placement::Move& move : placement.moves) {
    parts.push_back("moved " + ranges(move.ranks) + ":" + move.from + ">" + move.to);
  }
  return join(parts, " ");
}

std::string banner(const std::string& host, int rank, int last) {
  return "['" + host + "'][device='cuda'][node=0/1][local_rank=" + std::to_string(rank % 4) +
         "/3][rank=" + std::to_string(rank) + "/" + std::to_string(last) + "]\n";
}

std::string nccl(const std::string& host, int rank, int nranks) {
  return host + ":1234:1301 [" + std::to_string(rank % 4) +
         "] NCCL INFO comm 0x7fd634001060 rank " + std::to_string(rank) + " nranks " +
         std::to_string(nranks) + " cudaDev 0 busId b1000 - Init COMPLETE\n";
}

TEST(TopologyReader, ProgramsBannersTellRanksAndWorldSize) {
  std::string log;
  for (int rank = 0; rank < 8; ++rank) log += banner(rank < 4 ? "nid1" : "nid2", rank, 7);
  const Placement placement = read(log);
  EXPECT_EQ(show(placement), "nid1:0-3 nid2:4-7");
  EXPECT_EQ(placement.world_size, 8);
  EXPECT_EQ(placement.world_size_why, "line 1");
  EXPECT_EQ(placement.unplaced, "");
}

TEST(TopologyReader, ColoursTimesAndZeroesHideNothing) {
  EXPECT_EQ(show(read("[2031-09-21 10:00:00] \x1b[32m['nid1']\x1b[0m[device='xpu'][node=0/0]"
                      "[local_rank=\x1b[1m05/11\x1b[0m][rank=05/11]\n")),
            "nid1:5");
}

TEST(TopologyReader, SrunTellsRangesAndChunksDoNotMatter) {
  const std::string log =
      "srun: launching StepId=57.0 on host nid001329, 4 tasks: [0-3]\n"
      "srun: launching StepId=57.0 on host nid002813, 4 tasks: [4-7]";
  for (size_t cut = 1; cut < log.size(); cut += 7) {
    TopologyReader reader(test_grammar(), kNaming);
    reader.feed(log.substr(0, cut));
    reader.feed(log.substr(cut));
    reader.finish();
    EXPECT_EQ(show(reader.conclude()), "nid001329:0-3 nid002813:4-7") << cut;
  }
  EXPECT_FALSE(read(log).world_size) << "srun does not tell it";
}

TEST(TopologyReader, AFurtherStepIsALaterLaunch) {
  const Placement placement = read(
      "srun: launching StepId=57.0 on host nid1, 2 tasks: [0-1]\n"
      "srun: launching StepId=57.0 on host nid2, 2 tasks: [2-3]\n" +
      banner("nid1", 0, 3) +
      "srun: launching StepId=57.1 on host nid2, 2 tasks: [0-1]\n"
      "srun: launching StepId=57.1 on host nid3, 2 tasks: [2-3]\n");
  EXPECT_EQ(show(placement), "nid2:0-1 nid3:2-3");
  EXPECT_EQ(placement.step_id, "57.1");
  ASSERT_EQ(placement.earlier.size(), 1U);
  EXPECT_EQ(placement.earlier[0].step_id, "57.0");
  EXPECT_EQ(placement.earlier[0].ranks, 4U);
}

TEST(TopologyReader, DeathsTellWhereRanksRan) {
  EXPECT_EQ(show(read("srun: error: nid001306: tasks 4-7: Killed\n")), "nid001306:4-7");
}

TEST(TopologyReader, RankEightOfEightIsNobody) {
  const Placement placement = read(banner("nid1", 0, 7) + banner("nid2", 8, 7));
  EXPECT_EQ(show(placement), "nid1:0");
  EXPECT_EQ(placement.nobody, std::vector<int>{8});
  EXPECT_EQ(placement.unplaced, "1-7");
  EXPECT_NE(join(placement.remarks, "\n").find("left out: 8"), std::string::npos);
}

TEST(TopologyReader, TwoHostsThatBothGoOnClaimingARankAreAContradiction) {
  const Placement placement = read(banner("nid1", 0, 3) + banner("nid2", 0, 3) +
                                   banner("nid1", 1, 3) + banner("nid2", 3, 3));
  EXPECT_EQ(show(placement), "nid1:1 nid2:3 conflict 0:nid1|nid2");
  EXPECT_EQ(placement.conflicts[0].claims[1].line, 2);
  EXPECT_EQ(placement.unplaced, "0,2");
}

TEST(TopologyReader, AHostThatIsNotHeardOfAgainHasBeenReplaced) {
  const Placement placement = read(banner("nid1", 0, 1) + banner("nid2", 1, 1) +
                                   banner("nid1", 0, 1) + banner("nid3", 1, 1));
  EXPECT_EQ(show(placement), "nid1:0 nid3:1 moved 1:nid2>nid3");
}

TEST(TopologyReader, TwoWorldSizesAreNone) {
  const Placement placement = read(banner("nid1", 0, 7) + banner("nid1", 1, 15));
  EXPECT_FALSE(placement.world_size);
  EXPECT_EQ(placement.world_size_why, "told as 8 (line 1) and as 16 (line 2)");
}

TEST(TopologyReader, TheWorldsCommunicatorTellsRanksAndSize) {
  std::string log;
  for (int rank = 0; rank < 8; ++rank) log += nccl(rank < 4 ? "nid1" : "nid2", rank, 8);
  const Placement placement = read(log);
  EXPECT_EQ(show(placement), "nid1:0-3 nid2:4-7");
  EXPECT_EQ(placement.world_size, 8);
}

TEST(TopologyReader, SmallerCommunicatorsAreForgottenWhenTheWorldsComes) {
  EXPECT_EQ(show(read(nccl("nid2", 0, 2) + nccl("nid1", 0, 8) + nccl("nid2", 1, 2))), "nid1:0");
}

TEST(TopologyReader, APartOfAJobIsNotTakenForTheJob) {
  const std::string parts = nccl("nid1", 0, 4) + nccl("nid2", 0, 4);
  // Told apart by the world's size, by ranks beyond it, or by its own contradictions.
  EXPECT_EQ(show(read(banner("nid1", 1, 7) + parts)), "nid1:1");
  EXPECT_EQ(show(read("srun: launching StepId=5.0 on host nid2, 4 tasks: [4-7]\n" + parts)),
            "nid2:4-7");
  const Placement placement = read(parts);
  EXPECT_EQ(show(placement), "conflict 0:nid1|nid2");
  EXPECT_FALSE(placement.world_size);
}

TEST(TopologyReader, LabelsPlaceRanksUnderTheirNodesNames) {
  const Placement placement = read(
      "x1921c0s0b0n0-hsn0.hsn.cm.site.gov 0: hello\n"
      "x1921c0s0b0n0.hostmgmt2000.cm.site.gov 1: hello\n"
      "x1921c1s0b0n0-hsn0.hsn.cm.site.gov 2: hello\n");
  EXPECT_EQ(show(placement), "x1921c0s0b0n0:0-1 x1921c1s0b0n0:2");
  EXPECT_EQ(placement.hosts[0].spelled.size(), 2U);
  EXPECT_FALSE(placement.world_size);
}

TEST(TopologyReader, AFewLinesThatLookLabelledAreNotLabels) {
  std::string log;
  for (int i = 0; i < 10; ++i) log += "epoch2 " + std::to_string(i) + ": loss\nstep\nstep\n";
  const Placement placement = read(log);
  EXPECT_EQ(show(placement), "");
  ASSERT_EQ(placement.remarks.size(), 1U);
}

TEST(TopologyReader, FrameworksTellTheWorldSize) {
  EXPECT_EQ(read("Initializing distributed: GLOBAL_RANK: 5, MEMBER: 6/16\n").world_size, 16);
  EXPECT_EQ(read("  global_world_sizes=[8, 8, 8, 8]\n").world_size, 8);
  const Placement deepspeed = read(
      "[INFO] [launch.py:155:main] global_rank_mapping=defaultdict(<class 'list'>, "
      "{'nid1': [0, 1], 'nid2': [2, 3], 'nid3': [4, 5]})\n"
      "[INFO] [launch.py:156:main] dist_world_size=6\n");
  EXPECT_EQ(show(deepspeed), "nid1:0-1 nid2:2-3 nid3:4-5");
  EXPECT_EQ(deepspeed.world_size, 6);
}

TEST(TopologyReader, ALogThatTellsNothingLeavesAllUnknown) {
  const Placement placement = read(std::string("step=1\n\0\xff\nno newline", 20));
  EXPECT_EQ(show(placement), "");
  EXPECT_FALSE(placement.world_size);
  EXPECT_EQ(placement.world_size_why, "not told");
}

TEST(TopologyReader, AHostileLogFillsNoMemory) {
  TopologyReader reader(test_grammar(), kNaming);
  for (int i = 0; i < 300000; ++i) {
    reader.feed("srun: launching StepId=" + std::to_string(i / 1000) + ".0 on host n" +
                std::to_string(i) + ", 1 tasks: " + std::to_string(i) + "\n");
  }
  reader.finish();
  EXPECT_LE(reader.conclude().earlier.size(), 65U);
  EXPECT_EQ(reader.conclude().hosts.size(), 1000U);
}

TEST(TopologyReader, EveryExampleOfACommunicatorIsRead) {
  size_t tried = 0;
  for (const Entry& entry : test_grammar().tables().entries) {
    if (entry.spec.purpose != Purpose::communicator) continue;
    for (const ExampleLine& example : entry.spec.examples) {
      EXPECT_EQ(read(example.line + "\n").hosts.size(), 1U) << example.line;
      ++tried;
    }
    for (const std::string& line : entry.spec.counterexamples) {
      EXPECT_EQ(read(line + "\n").hosts.size(), 0U) << line;
    }
  }
  EXPECT_GT(tried, 0U);
}

}  // namespace
}  // namespace ezpz::evidence
