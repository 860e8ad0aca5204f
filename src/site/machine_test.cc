#include "site/machine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ezpz::site {
namespace {

const std::vector<Machine>& machines() {
  static const std::vector<Machine> all = [] {
    auto loaded = load_machines();
    EXPECT_TRUE(loaded.ok()) << loaded.error().one_line();
    return *loaded;
  }();
  return all;
}

struct Case {
  const char* hostname;
  const char* fqdn;
  const char* cluster;
  Environment env;
  const char* machine;
};

TEST(Machine, EverySpellingOfEveryMachineIsDetected) {
  const Case cases[] = {
      // by host name
      {"nid001304", "", "", {}, "perlmutter"},
      {"NID001304", "", "", {}, "perlmutter"},
      {"frontier00123", "", "", {}, "frontier"},
      {"x4117c1s2b0n0", "", "", {}, "aurora"},
      {"aurora-uan-0010", "", "", {}, "aurora"},
      {"x1921c7s1b0n0", "", "", {}, "sunspot"},
      {"x3005c0s7b0n0", "", "", {}, "polaris"},
      {"polaris-login-01", "", "", {}, "polaris"},
      {"sirius-uan-0002", "", "", {}, "sirius"},
      {"sophia-gpu-06", "", "", {}, "sophia"},
      // by full name, also where the host name is the full one
      {"nid001304", "nid001304.chn.perlmutter.nersc.gov", "", {}, "perlmutter"},
      {"login29", "login29.chn.perlmutter.nersc.gov", "", {}, "perlmutter"},
      {"login29.chn.perlmutter.nersc.gov", "", "", {}, "perlmutter"},
      {"login29.chn.perlmutter.nersc.gov", "login29", "", {}, "perlmutter"},
      {"login10", "login10.frontier.olcf.ornl.gov", "", {}, "frontier"},
      {"x4117c1s2b0n0.hsn.cm.aurora.alcf.anl.gov", "", "", {}, "aurora"},
      {"x4117c1s2b0n0", "x4117c1s2b0n0.hostmgmt2117.cm.aurora.alcf.anl.gov", "", {}, "aurora"},
      {"x1921c7s1b0n0", "x1921c7s1b0n0-hsn0.hsn.cm.sunspot.alcf.anl.gov", "", {}, "sunspot"},
      {"x3005c0s7b0n0", "x3005c0s7b0n0.hsn.cm.polaris.alcf.anl.gov", "", {}, "polaris"},
      {"x3200c0s19b1n0", "x3200c0s19b1n0.hsn.cm.sirius.alcf.anl.gov", "", {}, "sirius"},
      // by the scheduler's cluster: SLURM's name, or the server in a PBS job id
      {"login29", "", "perlmutter", {}, "perlmutter"},
      {"nid001304", "nid001304.local", "perlmutter", {}, "perlmutter"},
      {"login10", "", "frontier", {}, "frontier"},
      {"x4117c1s2b0n0", "", "aurora-pbs-0001.hostmgmt.cm.aurora.alcf.anl.gov", {}, "aurora"},
      {"x1921c0s3b0n0", "", "sunspot-pbs-0001.head.cm.sunspot.alcf.anl.gov", {}, "sunspot"},
      {"x3200c0s19b1n0", "", "sirius-pbs-0001.hsn.cm.sirius.alcf.anl.gov", {}, "sirius"},
      {"gpu7", "", "sophia-pbs-01.lab.alcf.anl.gov", {}, "sophia"},
      // by the environment
      {"login29", "", "", {{"NERSC_HOST", "perlmutter"}}, "perlmutter"},
      {"login10", "", "", {{"LMOD_SYSTEM_NAME", "frontier"}}, "frontier"},
      {"x3200c0s19b1n0", "", "", {{"PBS_O_HOST", "sirius-uan-0002"}}, "sirius"},
      {"x3005c0s7b0n0", "", "", {{"PBS_O_HOST", "polaris-login-02"}}, "polaris"},
  };
  for (const Case& c : cases) {
    const Detection found = detect_machine(machines(), {c.hostname, c.fqdn, c.cluster, c.env});
    EXPECT_EQ(found.machine.name, c.machine)
        << c.hostname << " " << c.fqdn << " " << c.cluster << ": " << found.why;
    EXPECT_TRUE(found.known);
    EXPECT_FALSE(found.why.empty());
  }
}

TEST(Machine, NamesThatProveNothingAreNotClaimed) {
  const Case cases[] = {
      {"vm", "", "", {}, "generic"},
      {"", "", "", {}, "generic"},
      {"login29", "", "", {}, "generic"},  // every cluster has one
      {"nid001304", "nid001304.cm.elsewhere.fi", "", {}, "generic"},
      {"nid000001", "", "lab", {}, "generic"},
      {"nid12", "", "", {}, "generic"},
      {"x4117c1s2b0n0", "x4117c1s2b0n0.cluster.example", "", {}, "generic"},
      {"frontier", "", "", {}, "generic"},
      {"myaurora", "", "", {{"NERSC_HOST", "muller"}}, "generic"},
  };
  for (const Case& c : cases) {
    const Detection found = detect_machine(machines(), {c.hostname, c.fqdn, c.cluster, c.env});
    EXPECT_EQ(found.machine.name, c.machine) << c.hostname << ": " << found.why;
    EXPECT_FALSE(found.known);
    EXPECT_FALSE(found.why.empty());
  }
}

TEST(Machine, WhyNamesTheSignThatDecided) {
  EXPECT_EQ(detect_machine(machines(), {"nid001304", "", "", {}}).why,
            "host name \"nid001304\" matches \"nid######\"");
  EXPECT_EQ(detect_machine(machines(), {"login1", "", "", {{"NERSC_HOST", "perlmutter"}}}).why,
            "environment has NERSC_HOST=perlmutter");
  EXPECT_EQ(
      detect_machine(machines(), {"nid000001", "", "lab", {}}).why,
      "host name \"nid000001\" matches \"nid######\" of perlmutter, but the scheduler's cluster "
      "is \"lab\"");
}

TEST(Machine, TablesHoldWhatLaunchNeeds) {
  const Machine* perlmutter = find_machine(machines(), "Perlmutter");
  ASSERT_NE(perlmutter, nullptr);
  EXPECT_EQ(perlmutter->gpus_per_node, 4);
  EXPECT_EQ(perlmutter->scheduler, "slurm");
  EXPECT_EQ(perlmutter->launcher, "srun");
  EXPECT_EQ(perlmutter->network, "AWS Libfabric");
  EXPECT_EQ(perlmutter->network_remedy, "module load nccl/2.24.3");
  EXPECT_NE(perlmutter->network_price.find("8.3 times slower"), std::string::npos);
  EXPECT_EQ(find_machine(machines(), "aurora")->gpus_per_node, 12);
  EXPECT_EQ(find_machine(machines(), "sunspot")->gpus_per_node, 12);
  EXPECT_EQ(find_machine(machines(), "polaris")->gpus_per_node, 4);
  EXPECT_EQ(find_machine(machines(), "frontier")->gpus_per_node, 8);
  EXPECT_EQ(find_machine(machines(), "sophia")->gpus_per_node, 8);
  EXPECT_EQ(find_machine(machines(), "generic")->gpus_per_node, 0);
}

TEST(Machine, NamingFollowsTheTable) {
  const auto key = [](const char* machine, const char* host) {
    return node_key(host, find_machine(machines(), machine)->naming);
  };
  for (const char* spelled :
       {"x1921c7s1b0n0", "x1921c7s1b0n0-hsn0", "x1921c7s1b0n0-hsn0.hsn.cm.sunspot.alcf.anl.gov",
        "x1921c7s1b0n0.hsn.cm.sunspot.alcf.anl.gov",
        "x1921c7s1b0n0.hostmgmt2001.cm.sunspot.alcf.anl.gov"}) {
    for (const char* machine : {"aurora", "sunspot", "polaris", "sirius", "generic"}) {
      EXPECT_EQ(key(machine, spelled), "x1921c7s1b0n0") << machine << " " << spelled;
    }
  }
  EXPECT_EQ(key("perlmutter", "nid001304-hsn0"), "nid001304");
  EXPECT_EQ(key("perlmutter", "nid001304.chn.perlmutter.nersc.gov"), "nid001304");
  EXPECT_EQ(key("perlmutter", "10.249.1.7"), "10.249.1.7");
  EXPECT_EQ(key("frontier", "frontier00123.frontier.olcf.ornl.gov"), "frontier00123");
}

TEST(Machine, AnUnknownNameGetsASuggestion) {
  const auto found = named_machine(machines(), "perlmuter");
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().one_line().find("did you mean 'perlmutter'?"), std::string::npos);
  EXPECT_TRUE(named_machine(machines(), "aurora").ok());
}

TEST(Machine, ADirectoryReplacesAndAddsTables) {
  const std::string directory = ::testing::TempDir() + "ezpz_machines_test";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/polaris.toml") << "gpus_per_node = 2\nhostnames = [\"pol#\"]\n";
  std::ofstream(directory + "/mycluster.toml") << "title = \"Mine\"\nenv = { WHERE = \"mine*\" }\n";
  const auto loaded = load_machines(directory);
  ASSERT_TRUE(loaded.ok()) << loaded.error().one_line();
  EXPECT_EQ(find_machine(*loaded, "polaris")->gpus_per_node, 2);
  EXPECT_EQ(detect_machine(*loaded, {"pol7", "", "", {}}).machine.name, "polaris");
  EXPECT_EQ(detect_machine(*loaded, {"a", "", "", {{"WHERE", "mine2"}}}).machine.name, "mycluster");
  EXPECT_EQ(find_machine(*loaded, "aurora")->gpus_per_node, 12);
  std::filesystem::remove_all(directory);
  EXPECT_FALSE(load_machines(directory).ok());
}

TEST(Machine, TheNamingOfAllFoldsEachSitesSpellingsAndLeavesForeignDomains) {
  const NodeNaming all = naming_of_all(load_machines().value());
  EXPECT_EQ(node_key("x1822c7s6b0n0-hsn0.hsn.cm.siteb.example", all), "x1822c7s6b0n0");
  EXPECT_EQ(node_key("x1821c1s4b0n0.hostmgmt2000.cm.siteb.example", all), "x1821c1s4b0n0");
  EXPECT_EQ(node_key("nid001304.chn.perlmutter.nersc.gov", all), "nid001304");
  EXPECT_EQ(node_key("ip-192-0-2-17.ec2x.internal", all), "ip-192-0-2-17.ec2x.internal");
}

TEST(Machine, AWrongTableIsRefusedInOneLine) {
  const auto line = [](const char* text) {
    const auto machine = parse_machine(text, "dir/mine.toml");
    return machine.ok() ? "accepted" : machine.error().one_line();
  };
  EXPECT_NE(line("gpu_per_node = 4").find("did you mean 'gpus_per_node'?"), std::string::npos);
  EXPECT_NE(line("\ngpus_per_node = \"4\"").find("dir/mine.toml:2"), std::string::npos);
  EXPECT_NE(line("gpus_per_node = -1").find("wrong type"), std::string::npos);
  EXPECT_NE(line("hostnames = \"a\"").find("wrong type"), std::string::npos);
  EXPECT_NE(line("env = { A = 1 }").find("wrong type"), std::string::npos);
  EXPECT_NE(line("a = = b").find("not valid TOML"), std::string::npos);
  EXPECT_EQ(line("a = = b").find('\n'), std::string::npos);
}

TEST(Machine, HowPalsBindsAndLabelsIsInTheTable) {
  const Machine* sunspot = find_machine(machines(), "sunspot");
  const Machine* polaris = find_machine(machines(), "polaris");
  ASSERT_TRUE(sunspot != nullptr && polaris != nullptr);
  EXPECT_EQ(sunspot->cpu_bind.at(12).substr(0, 14), "list:1-8:9-16:");
  EXPECT_TRUE(sunspot->label_output && polaris->label_output);
  EXPECT_TRUE(polaris->cpu_bind.empty());
  EXPECT_FALSE(find_machine(machines(), "perlmutter")->label_output);

  const auto machine =
      parse_machine("cpu_bind = { 4 = \"list:0-7\" }\nlabel_output = true", "m.toml");
  ASSERT_TRUE(machine.ok()) << machine.error().one_line();
  EXPECT_EQ(machine->cpu_bind.at(4), "list:0-7");
  for (const char* bad : {"cpu_bind = \"list:0\"", "cpu_bind = { x = \"list:0\" }",
                          "cpu_bind = { 4 = 7 }", "label_output = \"yes\""}) {
    EXPECT_FALSE(parse_machine(bad, "m.toml").ok()) << bad;
  }
}

}  // namespace
}  // namespace ezpz::site
