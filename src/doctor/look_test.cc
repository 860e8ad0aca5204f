// What is looked at really, on the machine that runs the tests.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "doctor/file_system.h"
#include "doctor/look_facts.h"
#include "doctor/look_folder.h"

namespace ezpz::doctor {
namespace {

HelperResult nobody(const Argv&, double) { return {}; }

class Folder {
 public:
  Folder() : path_("/tmp/doctor-look-XXXXXX") { EXPECT_NE(mkdtemp(path_.data()), nullptr); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(LookAtFolder, OneThatIsNotThereIsJudgedByTheNearestAboveAndNotMade) {
  const Folder folder;
  const FolderSight sight = look_at_folder(folder.path() + "/not/yet", nobody);
  EXPECT_EQ(sight.existing, folder.path());
  EXPECT_TRUE(sight.writable);
  EXPECT_GT(sight.total_bytes, 0);
  EXPECT_FALSE(file_exists(folder.path() + "/not"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "something was left in it";
}

TEST(LookAtFolder, AFileIsNoFolder) {
  const Folder folder;
  ASSERT_TRUE(write_file_atomically(folder.path() + "/logs", "x").ok());
  EXPECT_FALSE(look_at_folder(folder.path() + "/logs/run", nobody).is_folder);
}

TEST(LookAtFolder, ReadsBackWhole) {
  FolderSight sight;
  sight.path = "/scratch/\xff";
  sight.existing = "/scratch";
  sight.writable = true;
  sight.free_bytes = 12345;
  sight.file_system = "lustre";
  sight.lustre = LustreSight{{{"OST0001", 1, true, true, 100, 50}}, LustreStripes{4, -1, "fast"}};
  const auto back = parse_folder(format_folder(sight));
  ASSERT_TRUE(back.has_value());
  EXPECT_TRUE(back->writable);
  EXPECT_EQ(back->free_bytes, 12345);
  ASSERT_TRUE(back->lustre.has_value());
  EXPECT_EQ(back->lustre->targets.at(0).name, "OST0001");
  EXPECT_EQ(back->lustre->stripes->pool, "fast");
  for (const char* text : {"", "{", "{}", "[]", "7"}) EXPECT_FALSE(parse_folder(text).has_value());
}

TEST(FileSystem, OfProcIsNotOneOfOurs) {
  FileSystem system;
  ASSERT_TRUE(file_system_of("/proc", &system));
  EXPECT_EQ(system.name, "0x9fa0");
  EXPECT_FALSE(file_system_of("/no/such/path", &system));
}

TEST(LookAtFacts, NamesAreLookedUpAndWhatCouldNotBeAskedIsLeftOut) {
  const AskHelper ask = [](const Argv& argv, double) {
    HelperResult result;
    result.started = true;
    result.exit.code = 0;
    if (argv.back() == "n1") result.out = "10.0.0.1 STREAM n1\n10.0.0.1 DGRAM\nfd00::1 STREAM\n";
    if (argv.back() == "gone") result.exit.code = 2;
    if (argv.back() == "slow") result.timed_out = true;
    return result;
  };
  FactsRequest request;
  request.names = {"n1", "gone", "slow", "10.9.8.7"};
  request.paths = {"/", "/no/such/path"};
  request.version = "1.2";
  const NodeFacts facts = look_at_facts(request, ask);
  EXPECT_EQ(facts.names.at("n1"), (std::vector<std::string>{"10.0.0.1", "fd00::1"}));
  EXPECT_TRUE(facts.names.at("gone").empty());
  EXPECT_EQ(facts.names.count("slow"), 0U);
  EXPECT_EQ(facts.names.at("10.9.8.7"), (std::vector<std::string>{"10.9.8.7"}));
  EXPECT_TRUE(facts.sees.at("/"));
  EXPECT_FALSE(facts.sees.at("/no/such/path"));
  EXPECT_EQ(facts.alike.at("ezpz"), "1.2");
  EXPECT_FALSE(facts.hostname.empty());
}

// Whether the process is among the leftovers of a look.
bool is_left(const FactsRequest& request, pid_t pid) {
  for (const Leftover& leftover : look_at_facts(request, nobody).leftovers) {
    if (leftover.pid == pid) return true;
  }
  return false;
}

TEST(LookAtFacts, OnlyMarkedProcessesOfOtherJobsAreLeftovers) {
  const auto start = [](const EnvChanges& env) {
    SpawnSpec spec;
    spec.argv = {"sleep", "60"};
    spec.env = {{"SLURM_JOB_ID", std::nullopt},
                {"PBS_JOBID", std::nullopt},
                {"EZPZ_ATTEMPT_ID", std::nullopt},
                {"SLURMD_NODENAME", std::nullopt}};
    for (const auto& [name, value] : env) spec.env[name] = value;
    spec.new_session = true;
    // Not a child of ours: what we start ourselves is not left over.
    const Folder folder;
    const std::string path = folder.path() + "/pid";
    spec.argv = {"sh", "-c", "sleep 60 > /dev/null 2>&1 & echo $! > '" + path + "'"};
    const Result<pid_t> shell = spawn(spec);
    EXPECT_TRUE(shell.ok());
    int status = 0;
    waitpid(*shell, &status, 0);
    const Result<std::string> text = read_file(path);
    return static_cast<pid_t>(atoi(text.ok() ? text->c_str() : "0"));
  };
  FactsRequest request;
  request.node = "nodeA";
  request.job_id = "57";
  const pid_t other_job = start({{"SLURM_JOB_ID", "41"}});
  const pid_t this_job = start({{"SLURM_JOB_ID", "57"}});
  const pid_t attempt = start({{"SLURM_JOB_ID", "57"}, {"EZPZ_ATTEMPT_ID", "57.ab.1"}});
  const pid_t elsewhere = start({{"SLURM_JOB_ID", "41"}, {"SLURMD_NODENAME", "nodeB"}});
  const pid_t plain = start({});
  for (const pid_t pid : {other_job, this_job, attempt, elsewhere, plain}) ASSERT_GT(pid, 1);
  EXPECT_TRUE(is_left(request, other_job));
  EXPECT_FALSE(is_left(request, this_job)) << "the job's own script";
  EXPECT_TRUE(is_left(request, attempt)) << "to be judged by who knows which attempts run";
  EXPECT_FALSE(is_left(request, elsewhere)) << "another node of a laboratory";
  EXPECT_FALSE(is_left(request, plain));
  for (const pid_t pid : {other_job, this_job, attempt, elsewhere, plain}) kill(pid, SIGKILL);
}

}  // namespace
}  // namespace ezpz::doctor
