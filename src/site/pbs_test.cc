#include "site/pbs.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "site/scheduler.h"

namespace ezpz::site::pbs {
namespace {

using Hosts = std::vector<std::string>;

// The shape of OpenPBS 23.06's answer, names made up. 15:25 UTC is the time of asking.
constexpr const char* job_json = R"json({
    "timestamp":1795965900,
    "pbs_version":"23.06.06",
    "pbs_server":"vm",
    "Jobs":{
        "0.vm":{
            "Job_Name":"train",
            "Job_Owner":"me@login1",
            "resources_used":{"cput":"00:00:01","walltime":"00:02:20"},
            "job_state":"R",
            "queue":"workq",
            "Error_Path":"login1:\/home\/me\/train.e0",
            "exec_host":"h1/0*2+h1/1*2+h2/0*2+h2/1*2",
            "exec_vnode":"(h1:ncpus=2)+(h1:ncpus=2)+(h2:ncpus=2)+(h2:ncpus=2)",
            "Priority":0,
            "Resource_List":{"ncpus":8,"nodect":4,"walltime":"25:00:30"},
            "stime":"Sun Nov 29 15:22:35 2026",
            "Variable_List":{"PBS_O_HOME":"\/home\/me","job_state":"F","walltime":"00:00:01"},
            "tolerate_node_failures":"all"
        }
    }
})json";

constexpr const char* job_text =
    "Job Id: 0.vm\n"
    "    Job_Name = train\n"
    "    Job_Owner = me@login1\n"
    "    resources_used.walltime = 00:02:20\n"
    "    job_state = R\n"
    "    exec_host = h1/0*2+h1/1*2+h2/0*2\n\t+h2/1*2\n"
    "    exec_vnode = (h1:ncpus=2)+(h1:ncpus=2)+(h2:ncpus=2)+(h2:ncpus=2)\n"
    "    Resource_List.walltime = 25:00:30\n"
    "    stime = Sun Nov 29 15:22:35 2026\n"
    "    Variable_List = A=x\n    job_state = F\n    exec_host = evil/0\n"
    "    tolerate_node_failures = all\n\n";

class InUtc : public ::testing::Test {
 protected:
  void SetUp() override { zone("UTC"); }
  void TearDown() override {
    if (before_) {
      setenv("TZ", before_->c_str(), 1);
    } else {
      unsetenv("TZ");
    }
    tzset();
  }
  static void zone(const char* name) {
    setenv("TZ", name, 1);
    tzset();
  }

 private:
  std::optional<std::string> before_ =
      std::getenv("TZ") != nullptr ? std::optional<std::string>(std::getenv("TZ")) : std::nullopt;
};
using PbsJob = InUtc;
using PbsTime = InUtc;

TEST_F(PbsJob, IsReadAlikeFromJsonAndFromText) {
  for (const auto& [read, text] :
       {std::pair(&read_job_json, job_json), {&read_job_text, job_text}}) {
    const Result<Job> job = read(text);
    ASSERT_TRUE(job.ok()) << job.error().one_line();
    EXPECT_EQ(job->id, "0.vm");
    EXPECT_EQ(job->state, "R");
    EXPECT_EQ(job->phase, JobPhase::running);
    EXPECT_EQ(job->user, "me");
    EXPECT_EQ(job->hosts, (Hosts{"h1", "h2"}));
    EXPECT_EQ(job->end_time_s, 1795965755.0 + 25 * 3600 + 30);
    EXPECT_EQ(job->no_kill, true);
  }
}

TEST_F(PbsJob, TheUsersVariablesForgeNothing) {
  // Unescaped, as some versions print it: valid JSON, and a second job_state.
  std::string text = job_json;
  const std::string genuine = R"("PBS_O_HOME":"\/home\/me")";
  text.replace(text.find(genuine), genuine.size(),
               R"("X":"y"},"job_state":"F","exec_host":"evil\/0","Z":{"a":"b")");
  const Result<Job> job = read_job_json(text);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->state, "R");
  EXPECT_EQ(job->hosts, (Hosts{"h1", "h2"}));
}

TEST_F(PbsJob, BrokenJsonIsAnErrorAndNotHalfAJob) {
  std::string text = job_json;
  text.insert(text.find("home\\/me\",\"job_state"), "a \"quoted\" word ");
  EXPECT_FALSE(read_job_json(text).ok());
  EXPECT_FALSE(read_job_json("").ok());
  EXPECT_FALSE(read_job_json(R"({"timestamp":1,"Jobs":{}})").ok());
  EXPECT_FALSE(read_job_json(R"({"Jobs":{"1.vm":{"queue":"q"}}})").ok());
  EXPECT_FALSE(read_job_json(std::string(100000, '[')).ok());
  EXPECT_FALSE(read_job_text("qstat: Unknown Job Id 9.vm\n").ok());
}

TEST_F(PbsJob, AJobWithoutToleranceSaysSoByNotNamingIt) {
  EXPECT_EQ(read_job_text("Job Id: 1.vm\n    job_state = R\n")->no_kill, false);
  EXPECT_EQ(
      read_job_text("Job Id: 1.vm\n    job_state = R\n    tolerate_node_failures = job_start\n")
          ->no_kill,
      false);
}

TEST_F(PbsJob, TheHostsComeFromTheVnodesWhereThereIsNoExecHost) {
  const auto job = read_job_text(
      "Job Id: 1.vm\n    job_state = R\n    exec_vnode = "
      "(h1[0]:ncpus=2+h1[1]:ncpus=2)+(h2:ncpus=4)\n");
  EXPECT_EQ(job->hosts, (Hosts{"h1", "h2"}));
}

TEST_F(PbsJob, AClockOfAnotherZoneIsNoticedAndTheTimeUsedCounts) {
  std::string not_polled_yet = job_json;
  const std::string used = R"("resources_used":{"cput":"00:00:01","walltime":"00:02:20"},)";
  not_polled_yet.erase(not_polled_yet.find(used), used.size());
  EXPECT_TRUE(read_job_json(not_polled_yet)->end_time_s);
  for (const char* elsewhere : {"EST5", "UTC-9"}) {
    zone(elsewhere);
    EXPECT_EQ(read_job_json(job_json)->end_time_s, 1795965900.0 + 25 * 3600 + 30 - 140)
        << elsewhere;
    EXPECT_FALSE(read_job_json(not_polled_yet)->end_time_s) << elsewhere;
  }
}

TEST_F(PbsJob, LettersArePhases) {
  for (const char* state : {"R", "B"}) EXPECT_EQ(phase_of(state), JobPhase::running) << state;
  for (const char* state : {"Q", "H", "W", "T", "S"}) {
    EXPECT_EQ(phase_of(state), JobPhase::waiting) << state;
  }
  for (const char* state : {"E", "F", "X"}) EXPECT_EQ(phase_of(state), JobPhase::ending) << state;
  for (const char* state : {"", "RUNNING", "r", "?"}) {
    EXPECT_EQ(phase_of(state), JobPhase::unknown) << state;
  }
}

TEST(PbsJobId, KeepsAnArraysIndexAndTellsTheServer) {
  EXPECT_EQ(parse_job_id("0.vm").sequence, "0");
  EXPECT_EQ(parse_job_id("0.vm").server, "vm");
  EXPECT_EQ(parse_job_id("123[4].srv.site.gov").sequence, "123[4]");
  EXPECT_EQ(parse_job_id("123[4].srv.site.gov").server, "srv.site.gov");
  EXPECT_EQ(parse_job_id("77").sequence, "77");
  EXPECT_EQ(parse_job_id("77").server, "");
}

TEST(PbsHosts, AreEachNamedOnceInOrder) {
  EXPECT_EQ(hosts_of_exec_host("h2/0*2+h2/1*2+h1/0*2"), (Hosts{"h2", "h1"}));
  EXPECT_EQ(hosts_of_exec_host("x1.site:15002/0*208+x2.site:15002/0"),
            (Hosts{"x1.site", "x2.site"}));
  EXPECT_EQ(hosts_of_exec_host(""), Hosts{});
  EXPECT_EQ(hosts_of_exec_vnode("(h1:ncpus=2:mem=1gb)+(h2[0]:ncpus=1+h2[1]:ncpus=1)"),
            (Hosts{"h1", "h2"}));
}

TEST_F(PbsTime, WalltimesGoBeyondADay) {
  EXPECT_EQ(parse_walltime("00:01:00"), 60);
  EXPECT_EQ(parse_walltime("36:00:00"), 36 * 3600);
  EXPECT_EQ(parse_walltime("168:00:01"), 168 * 3600 + 1);
  EXPECT_EQ(parse_walltime("1:30"), 90);
  EXPECT_EQ(parse_walltime("90"), 90);
  for (const char* bad : {"", "1:2:3:4", "x", "-1", "1:-2", "99999999999999999999", "1::2"}) {
    EXPECT_FALSE(parse_walltime(bad)) << bad;
  }
}

TEST_F(PbsTime, IsLocalAndKnowsDaylightSaving) {
  EXPECT_EQ(parse_ctime("Sun Nov 29 15:22:35 2026"), 1795965755.0);
  EXPECT_EQ(parse_ctime("Tue Dec  1 00:00:00 2026\n"), 1796083200.0);
  zone("PST8PDT,M3.2.0,M11.1.0");
  EXPECT_EQ(parse_ctime("Thu Jan 15 00:00:00 2026"), 1768464000.0);  // UTC-8
  EXPECT_EQ(parse_ctime("Wed Jul 15 00:00:00 2026"), 1784098800.0);  // UTC-7
  for (const char* bad : {"", "1795965755", "Sun Nov 29 15:22:35", "UNKNOWN"}) {
    EXPECT_FALSE(parse_ctime(bad)) << bad;
  }
}

TEST(PbsJobs, OnlyThoseThatRunAreListed) {
  EXPECT_EQ(my_jobs_query("me"), (Argv{"qstat", "-u", "me"}));
  EXPECT_EQ(
      read_my_jobs(
          "\nvm: \n"
          "                                                            Req'd  Req'd   Elap\n"
          "Job ID          Username Queue    Jobname    SessID NDS TSK Memory Time  S Time\n"
          "--------------- -------- -------- ---------- ------ --- --- ------ ----- - -----\n"
          "8474921.aurora* me       prod     train       30612  32 6656    -- 06:00 R 00:10\n"
          "8474922.aurora* me       prod     train         --   32 6656    -- 06:00 Q   -- \n"
          "123[4].aurora-* me       debug    R            1234   1   1    --  00:30 R 00:01\n"
          "124[].aurora-p* me       debug    R             --    1   1    --  00:30 B   -- \n"),
      (Hosts{"8474921", "123[4]"}));
  EXPECT_EQ(read_my_jobs(""), Hosts{});
}

TEST(PbsNodes, StatesAreReadUnderEveryNameOfAHost) {
  EXPECT_EQ(nodes_query({"h1"}), (Argv{"pbsnodes", "-a", "-F", "json"}));
  const auto states = read_nodes(R"({"timestamp":1,"nodes":{
      "h1":{"Mom":"h1.site.gov","ntype":"PBS","state":"job-busy","jobs":["0.vm","0.vm"],
            "resources_available":{"host":"h1","vnode":"h1"}},
      "h2":{"Mom":"h2.site.gov","state":"down,offline","resources_available":{"host":"h2"},
            "comment":"node down: communication closed"},
      "h3[0]":{"Mom":"h3","state":"free","resources_available":{"host":"h3"}},
      "h3[1]":{"Mom":"h3","state":"offline","resources_available":{"host":"h3"}},
      "h4":{"state":"state-unknown,down"}}})");
  EXPECT_EQ(states, (std::map<std::string, std::string>{{"h1", "job-busy"},
                                                        {"h1.site.gov", "job-busy"},
                                                        {"h2", "down,offline"},
                                                        {"h2.site.gov", "down,offline"},
                                                        {"h3", "free,offline"},
                                                        {"h4", "state-unknown,down"}}));
}

TEST(PbsNodes, AnAnswerThatBreaksOffTellsWhatCameBefore) {
  const auto states = read_nodes(
      R"({"nodes":{"h1":{"state":"down"},"h2":{"state":"free"},"h3":{"comment":"it "broke"","state":"down"})");
  EXPECT_EQ(states, (std::map<std::string, std::string>{{"h1", "down"}, {"h2", "free"}}));
  EXPECT_TRUE(read_nodes("").empty());
  EXPECT_TRUE(read_nodes("pbsnodes: Server has no node list\n").empty());
}

TEST(PbsNodes, DownIsNotUsableAndOfflineIsDraining) {
  for (const char* state : {"free", "job-busy", "job-exclusive", "resv-exclusive", "busy",
                            "offline", "offline,job-busy"}) {
    EXPECT_TRUE(is_usable(state)) << state;
  }
  for (const char* state : {"down", "down,offline", "offline,down", "state-unknown", "stale",
                            "state-unknown,down", "job-busy,down", "unresolvable"}) {
    EXPECT_FALSE(is_usable(state)) << state;
  }
  EXPECT_TRUE(is_draining("offline,job-busy"));
  EXPECT_FALSE(is_draining("job-busy"));
}

TEST(PbsTrouble, OfAMomentIsToldFromAnAnswer) {
  EXPECT_TRUE(is_passing_trouble(
      "Communication failure.\nqstat: cannot connect to server vm (errno=15056)"));
  EXPECT_TRUE(is_passing_trouble("pbsnodes: cannot connect to server vm, error=15010"));
  EXPECT_FALSE(is_passing_trouble("qstat: Unknown Job Id 9.vm"));
  EXPECT_FALSE(is_passing_trouble(
      "qstat: 9.vm Job has finished, use -x or -H to obtain historical job information"));
  EXPECT_FALSE(is_passing_trouble(""));
}

}  // namespace
}  // namespace ezpz::site::pbs
