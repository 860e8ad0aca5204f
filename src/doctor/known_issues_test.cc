#include "doctor/known_issues.h"

#include <gtest/gtest.h>

#include "doctor/command_flags.h"
#include "doctor/testing.h"

namespace ezpz::doctor {
namespace {

// ---- reading

const std::string kRule = R"(
[[issue]]
id = "a-rule"
machines = ["perlmutter"]
health = "error"
torch = ">=2.8, <2.13"
nodes_at_least = 2
variables = { FI_X = "1", FI_Y = { other_than = ["a", "b"] } }
flags = { "--rank|--lora-rank" = { from = 8, to = 17 } }
text = "it hangs"
remedy = "do this"
reference = "somewhere"
)";

TEST(KnownIssueFile, ReadsEveryKey) {
  const auto issues = parse_known_issues(kRule, "known_issues/x.toml");
  ASSERT_TRUE(issues.ok()) << issues.error().one_line();
  ASSERT_EQ(issues->size(), 1U);
  const KnownIssue& issue = issues->at(0);
  EXPECT_EQ(issue.id, "a-rule");
  EXPECT_EQ(issue.health, Health::error);
  EXPECT_EQ(issue.torch.size(), 2U);
  EXPECT_EQ(issue.variables.size(), 2U);
  EXPECT_EQ(issue.flags.at(0).names, (std::vector<std::string>{"--rank", "--lora-rank"}));
  EXPECT_EQ(issue.flags.at(0).at_least, 8);
  EXPECT_EQ(issue.nodes_at_least, 2);
}

TEST(KnownIssueFile, AMistakeIsToldWithItsPlace) {
  const auto error = [](const std::string& from, const std::string& to) {
    std::string text = kRule;
    text.replace(text.find(from), from.size(), to);
    const auto issues = parse_known_issues(text, "x.toml");
    return issues.ok() ? std::string("accepted") : issues.error().one_line();
  };
  EXPECT_EQ(error("health", "helth"), "unknown key 'helth': x.toml:5 (did you mean 'health'?)");
  EXPECT_NE(error("\"error\"", "\"fatal\"").find("wrong value for 'health': x.toml:5"),
            std::string::npos);
  EXPECT_NE(error(">=2.8, <2.13", "2.8").find("wrong value for 'torch'"), std::string::npos);
  EXPECT_NE(error("from = 8", "least = 8").find("wrong value for 'flags'"), std::string::npos);
  EXPECT_NE(error("other_than", "unlike").find("wrong value for 'variables'"), std::string::npos);
  EXPECT_NE(error("id = \"a-rule\"\n", "").find("needs 'id'"), std::string::npos);
  EXPECT_NE(error("a-rule", "A rule").find("not an id"), std::string::npos);
  EXPECT_NE(error("remedy = \"do this\"\n", "").find("needs 'remedy'"), std::string::npos);
  EXPECT_NE(error("[[issue]]", "[[isue]]").find("unknown key 'isue'"), std::string::npos);
}

TEST(KnownIssueFile, ARuleThatWouldAlwaysHoldIsRefused) {
  const auto issues =
      parse_known_issues("[[issue]]\nid = \"x\"\ntext = \"t\"\nremedy = \"r\"\n", "x.toml");
  ASSERT_FALSE(issues.ok());
  EXPECT_NE(issues.error().one_line().find("no condition"), std::string::npos);
}

TEST(KnownIssueFile, AnIdStandsOnce) {
  EXPECT_FALSE(parse_known_issues(kRule + kRule, "x.toml").ok());
}

// ---- versions and flags

TEST(Version, NumbersCompareAsNumbers) {
  EXPECT_EQ(version_numbers("2.13.0a0+git12"), (std::vector<long>{2, 13, 0}));
  EXPECT_EQ(version_numbers("2.8.0+cu126"), (std::vector<long>{2, 8, 0}));
  EXPECT_EQ(version_numbers("unknown"), std::nullopt);
  const auto below = *parse_version_bounds("<2.13");
  EXPECT_TRUE(fits({2, 8, 0}, below));
  EXPECT_FALSE(fits({2, 13, 0}, below)) << "2.13 is 2.13.0";
  const auto range = *parse_version_bounds(">=2.8, <=2.13");
  EXPECT_TRUE(fits({2, 9}, range));
  EXPECT_FALSE(fits({2, 13, 1}, range));
}

TEST(CommandFlags, AreReadInTheirUsualSpellings) {
  const auto value = [](const Argv& command) { return flag_value(command, {"--rank", "-r"}); };
  EXPECT_EQ(value({"x", "--rank", "8"}), "8");
  EXPECT_EQ(value({"x", "--rank=8"}), "8");
  EXPECT_EQ(value({"x", "-r", "-1"}), "-1");
  EXPECT_EQ(value({"x", "--rank", "--other"}), "");
  EXPECT_EQ(value({"x", "--rank", "8", "--rank=9"}), "9") << "the last one counts";
  EXPECT_EQ(value({"x", "--ranks", "8"}), std::nullopt);
}

// ---- the built-in rules: each fires on its fault, and on nothing else

struct Case {
  const char* id;
  const char* machine;
  site::Environment env;  // on top of a healthy node's
  std::vector<const char*> unset;
  Argv command;
  const char* torch = "2.13.0";
  Health health = Health::warning;
};

std::vector<Finding> told(const Case& c) {
  NodeSight sight = a_healthy_node();
  for (const char* name : c.unset) sight.env.erase(name);
  for (const auto& [name, value] : c.env) sight.env[name] = value;
  Torch torch = torch_of(sight);
  torch.version = c.torch;
  set_torch(&sight, torch);
  NodeContext context = in_a_job_on(c.machine);
  context.command = c.command;
  return check_known_issues(sight, context);
}

const std::vector<Case>& faults() {
  const Argv lora = {"python3", "train.py", "--lora-rank", "8", "--lora-target", "attn,mlp"};
  static const std::vector<Case> cases = {
      {"mr-cache-monitor", "perlmutter", {}, {"FI_MR_CACHE_MONITOR"}, {}},
      {"mr-cache-monitor", "polaris", {{"FI_MR_CACHE_MONITOR", "memhooks"}}, {}, {}},
      {"cxi-host-register", "perlmutter", {{"FI_CXI_DISABLE_HOST_REGISTER", "0"}}, {}, {}},
      {"cxi-cq-size", "frontier", {}, {"FI_CXI_DEFAULT_CQ_SIZE"}, {}},
      {"nccl-socket-ifname", "perlmutter", {{"NCCL_SOCKET_IFNAME", "eth0"}}, {}, {}},
      {"nccl-cross-nic", "perlmutter", {{"NCCL_CROSS_NIC", "0"}}, {}, {}},
      {"nccl-gdr-level", "perlmutter", {{"NCCL_NET_GDR_LEVEL", "LOC"}}, {}, {}},
      {"lora-small-rank-hang", "perlmutter", {}, {}, lora, "2.13.0", Health::error},
      {"streaming-dataset-hang", "perlmutter", {}, {}, {"python3", "t.py", "--streaming"}},
      {"compile-fsdp2-old-torch", "generic", {}, {}, {"python3", "--compile"}, "2.8.0+cu126"},
      {"compile-variable-empty", "generic", {{"COMPILE", ""}}, {}, {}},
      {"tied-embeddings-fsdp2",
       "generic",
       {},
       {},
       {"python3", "--model_name_or_path=meta-llama/Llama-3.2-1B", "--fsdp", "full_shard"}},
      {"fi-provider-not-cxi",
       "aurora",
       {{"FI_PROVIDER", "tcp;ofi_rxm"}},
       {},
       {},
       "2.13.0",
       Health::error},
      {"ccl-process-launcher", "aurora", {}, {"CCL_PROCESS_LAUNCHER"}, {}},
      {"ccl-atl-transport", "sunspot", {{"CCL_ATL_TRANSPORT", "ofi"}}, {}, {}},
      {"mr-cache-monitor-pvc", "aurora", {{"FI_MR_CACHE_MONITOR", "memhooks"}}, {}, {}},
      {"composite-hierarchy", "aurora", {{"ZE_FLAT_DEVICE_HIERARCHY", "COMPOSITE"}}, {}, {}},
  };
  return cases;
}

TEST(KnownIssues, EachFiresOnItsFaultAndNoOtherDoes) {
  for (const Case& c : faults()) {
    const std::vector<Finding> findings = told(c);
    ASSERT_EQ(findings.size(), 1U) << c.id;
    EXPECT_EQ(findings[0].check, std::string("known-issue:") + c.id);
    EXPECT_EQ(findings[0].health, c.health) << c.id;
    EXPECT_FALSE(findings[0].remedy.empty()) << c.id;
  }
}

TEST(KnownIssues, EveryBuiltInRuleHasACaseHere) {
  const auto issues = load_known_issues();
  ASSERT_TRUE(issues.ok()) << issues.error().one_line();
  for (const KnownIssue& issue : *issues) {
    EXPECT_TRUE(std::any_of(faults().begin(), faults().end(), [&](const Case& c) {
      return issue.id == c.id;
    })) << issue.id;
  }
}

TEST(KnownIssues, NoneFiresOnAHealthyNode) {
  for (const char* machine : {"perlmutter", "aurora", "frontier", "polaris", "generic"}) {
    const std::vector<Finding> findings = told({"", machine, {}, {}, {"python3", "train.py"}});
    ASSERT_EQ(findings.size(), 1U) << machine << ": " << findings[0].check;
    EXPECT_EQ(findings[0].health, Health::ok);
  }
}

TEST(KnownIssues, NoneFiresOneStepBesideItsCondition) {
  const auto lora = [](const char* rank, const char* target) {
    return Argv{"python3", "t.py", "--lora-rank", rank, "--lora-target", target};
  };
  for (const Case& c : std::vector<Case>{
           {"rank 18 trains", "perlmutter", {}, {}, lora("18", "attn,mlp")},
           {"rank 7", "perlmutter", {}, {}, lora("7", "attn,mlp")},
           {"attn only trains", "perlmutter", {}, {}, lora("8", "attn")},
           {"another machine", "polaris", {}, {}, lora("8", "attn,mlp")},
           {"torch 2.13 compiles", "generic", {}, {}, {"python3", "--compile"}, "2.13.0"},
           {"compile is off", "generic", {}, {}, {"python3", "--compile=false"}, "2.8.0"},
           {"fsdp 1 may share",
            "generic",
            {},
            {},
            {"python3", "--model_name_or_path=Llama-3.2-1B", "--fsdp=full_shard", "--fsdp_config",
             "{\"fsdp_version\": 1}"}},
           {"another model",
            "generic",
            {},
            {},
            {"python3", "--model_name_or_path=Llama-3.1-8B", "--fsdp=full_shard"}},
           {"cxi is right", "aurora", {{"FI_PROVIDER", "cxi"}}, {}, {}},
           {"flat is right", "aurora", {{"ZE_FLAT_DEVICE_HIERARCHY", "FLAT"}}, {}, {}},
           {"COMPILE says no", "generic", {{"COMPILE", "no"}}, {}, {}},
       }) {
    const std::vector<Finding> findings = told(c);
    EXPECT_EQ(findings[0].check, "known-issues") << c.id << ": " << findings[0].check;
  }
}

TEST(KnownIssues, OneNodeIsNotAskedAboutTheNetwork) {
  NodeSight sight = a_healthy_node();
  sight.env.clear();
  NodeContext context = in_a_job_on("perlmutter");
  context.nodes = 1;
  EXPECT_EQ(check_known_issues(sight, context)[0].check, "known-issues");
  context.nodes = 0;
  EXPECT_NE(check_known_issues(sight, context)[0].why.find("for jobs of 2 nodes and more"),
            std::string::npos);
}

TEST(KnownIssues, AVersionThatNobodySawIsUnknownAndNeitherOkNorAFault) {
  NodeSight sight = a_healthy_node();
  sight.python = Seen<Python>::not_seen("no python3 in PATH");
  NodeContext context = in_a_job_on("generic");
  context.command = {"python3", "train.py", "--compile"};
  const std::vector<Finding> findings = check_known_issues(sight, context);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].health, Health::unknown);
  EXPECT_NE(findings[0].why.find("no python3 in PATH"), std::string::npos);
}

TEST(KnownIssues, TellsWhatWasSeenWithoutControlBytesAndSecrets) {
  NodeSight sight = a_healthy_node();
  sight.env["FI_MR_CACHE_MONITOR"] = "mem\x1b[2Jhooks\n";
  sight.env["WANDB_API_KEY"] = "hunter2";
  NodeContext context = in_a_job_on("perlmutter");
  context.issues = *parse_known_issues(R"(
[[issue]]
id = "secret"
variables = { WANDB_API_KEY = { set = true }, FI_MR_CACHE_MONITOR = { other_than = ["x"] } }
text = "t"
remedy = "r"
)",
                                       "x.toml");
  const std::vector<Finding> findings = check_known_issues(sight, context);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].why.find("hunter2"), std::string::npos);
  EXPECT_NE(findings[0].why.find("WANDB_API_KEY (set, not shown)"), std::string::npos);
  EXPECT_NE(findings[0].why.find("mem?[2Jhooks?"), std::string::npos) << findings[0].why;
}

}  // namespace
}  // namespace ezpz::doctor
