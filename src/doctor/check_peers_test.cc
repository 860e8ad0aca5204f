#include "doctor/check_peers.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ezpz::doctor {
namespace {

using Hosts = std::vector<std::string>;

// Four nodes that answered in half a second and are alike.
PeerQuestion healthy() {
  PeerQuestion question;
  question.first_host = "n1";
  question.cwd = "/home/me";
  question.log_dir_mark = "/logs/.mark";
  question.job_id = "57";
  question.running_jobs = {"57", "58"};
  question.running_jobs_known = true;
  question.machine.naming.interfaces = {"-hsn#"};
  for (int i = 1; i <= 4; ++i) {
    const std::string host = "n" + std::to_string(i);
    const std::string address = "10.0.0." + std::to_string(i);
    PeerAnswer answer;
    NodeFacts& facts = answer.report.facts;
    facts.node = facts.hostname = host;
    facts.began_s = 1000.2;
    facts.answered_s = 1000.4;
    answer.asked_s = 1000;
    answer.answered_s = 1000.5;
    facts.cwd = question.cwd;
    facts.addresses = {{"hsn0", {address}}, {"eth0", {"192.168.0." + std::to_string(i)}}};
    facts.names = {{host, {address}}, {"n1", {"10.0.0.1"}}};
    facts.sees = {{question.log_dir_mark, true}};
    facts.alike = {{"kernel", "5.14"}, {"ezpz", "0.1"}};
    question.answers[host] = answer;
  }
  return question;
}

NodeFacts& facts_of(PeerQuestion& question, const std::string& host) {
  return question.answers.at(host).report.facts;
}

// Who has findings of that health, and what they say.
Hosts hosts_with(const std::vector<PeerFinding>& found, Health health, std::string* why = nullptr) {
  Hosts hosts;
  for (const PeerFinding& finding : found) {
    if (finding.finding.health != health) continue;
    hosts.insert(hosts.end(), finding.hosts.begin(), finding.hosts.end());
    if (why != nullptr) *why += finding.finding.why + "; ";
  }
  std::sort(hosts.begin(), hosts.end());
  return hosts;
}

TEST(CheckPeers, NothingIsWrongWithNodesThatAreAlike) {
  for (const PeerFinding& found : check_everything_of_peers(healthy())) {
    EXPECT_EQ(found.finding.health, Health::ok) << found.finding.check << found.finding.why;
    EXPECT_EQ(found.hosts.empty() ? 0U : found.hosts.size(),
              found.finding.check == "names" ? 1U : 4U)
        << found.finding.check;
  }
}

TEST(CheckAnswers, SilenceIsUnknownAndNeverAnError) {
  PeerQuestion question = healthy();
  question.answers.erase("n3");
  question.not_answered["n3"] = "did not answer within 40 s";
  const auto found = check_answers(question);
  EXPECT_EQ(hosts_with(found, Health::unknown), Hosts{"n3"});
  EXPECT_EQ(hosts_with(found, Health::ok), (Hosts{"n1", "n2", "n4"}));
  EXPECT_TRUE(hosts_with(found, Health::error).empty());
}

TEST(CheckClocks, OnlyWhatARoundTripCannotExplainIsWrong) {
  PeerQuestion question = healthy();
  facts_of(question, "n2").began_s += 30;
  facts_of(question, "n2").answered_s += 30;
  facts_of(question, "n3").began_s -= 30;
  facts_of(question, "n3").answered_s -= 30;
  // Two seconds may have gone by on the way.
  facts_of(question, "n4").began_s += 1.9;
  facts_of(question, "n4").answered_s += 1.9;
  std::string why;
  const auto found = check_clocks(question);
  EXPECT_EQ(hosts_with(found, Health::warning, &why), (Hosts{"n2", "n3"})) << why;
  EXPECT_NE(why.find("ahead by 29.9 to 30.2 s"), std::string::npos) << why;
  EXPECT_NE(why.find("behind by 29.8 to 30.1 s"), std::string::npos) << why;
  EXPECT_EQ(hosts_with(found, Health::ok), (Hosts{"n1", "n4"}));
}

TEST(CheckClocks, TheBoundsHoldTheTruthWhateverTheDelays) {
  // A node whose clock is off by `skew`, asked with delays on the way there and back.
  for (const double skew : {-100.0, -1.0, 0.0, 0.5, 100.0}) {
    for (const double there : {0.0, 3.0}) {
      for (const double back : {0.0, 5.0}) {
        PeerAnswer answer;
        answer.asked_s = 1000;
        answer.report.facts.began_s = 1000 + there + skew;
        answer.report.facts.answered_s = 1000 + there + 2 + skew;
        answer.answered_s = 1000 + there + 2 + back;
        const ClockOffset offset = clock_offset(answer);
        EXPECT_LE(offset.least_s, skew + 1e-9);
        EXPECT_GE(offset.most_s, skew - 1e-9);
      }
    }
  }
}

TEST(CheckClocks, AnAnswerThatTookTooLongTellsNothing) {
  PeerQuestion question = healthy();
  for (auto& [host, answer] : question.answers) answer.answered_s += 60;
  EXPECT_EQ(hosts_with(check_clocks(question), Health::unknown).size(), 4U);
}

TEST(CheckNames, TheFirstHostMustBeFoundWhereItIs) {
  PeerQuestion question = healthy();
  facts_of(question, "n2").names["n1"] = {"10.9.9.9"};
  facts_of(question, "n3").names["n1"] = {};
  EXPECT_EQ(hosts_with(check_names(question), Health::error), (Hosts{"n2", "n3"}));
}

TEST(CheckNames, WhatNobodyCouldBeAskedAboutIsNoError) {
  PeerQuestion question = healthy();
  facts_of(question, "n2").names.erase("n1");
  facts_of(question, "n3").names.clear();
  const auto found = check_names(question);
  EXPECT_TRUE(hosts_with(found, Health::error).empty());
  EXPECT_EQ(hosts_with(found, Health::unknown), Hosts{"n3"});
}

TEST(CheckNames, ANameOnTheSlowNetworkIsAWarningUnlessTheSocketsAreTold) {
  PeerQuestion question = healthy();
  facts_of(question, "n2").names["n2"] = {"192.168.0.2"};
  std::string why;
  EXPECT_EQ(hosts_with(check_names(question), Health::warning, &why), Hosts{"n2"});
  EXPECT_NE(why.find("192.168.0.2 on eth0, though it has hsn0"), std::string::npos) << why;
  facts_of(question, "n2").socket_interfaces = {"hsn"};
  EXPECT_TRUE(hosts_with(check_names(question), Health::warning).empty());
}

TEST(CheckNames, ANameThatIsTheLoopbacksIsAWarningAmongSeveralNodes) {
  PeerQuestion question = healthy();
  facts_of(question, "n2").names["n2"] = {"127.0.1.1"};
  EXPECT_EQ(hosts_with(check_names(question), Health::warning), Hosts{"n2"});
}

TEST(CheckNames, WithoutAFastNetworkAnyInterfaceWillDo) {
  PeerQuestion question = healthy();
  for (auto& [host, answer] : question.answers) answer.report.facts.addresses.erase("hsn0");
  for (auto& [host, answer] : question.answers) {
    answer.report.facts.names[host] = {"192.168.0." + host.substr(1)};
    answer.report.facts.names["n1"] = {"192.168.0.1"};
  }
  EXPECT_EQ(hosts_with(check_names(question), Health::ok).size(), 4U);
}

TEST(CheckAlike, OneThatDiffersFromItsPeersIsNamed) {
  PeerQuestion question = healthy();
  facts_of(question, "n3").alike["kernel"] = "4.18";
  facts_of(question, "n4").alike.erase("ezpz");
  std::string why;
  const auto found = check_alike(question);
  EXPECT_EQ(hosts_with(found, Health::warning, &why), (Hosts{"n3", "n4"}));
  EXPECT_NE(why.find("kernel is 4.18, on most others it is 5.14"), std::string::npos) << why;
  EXPECT_EQ(hosts_with(found, Health::ok), (Hosts{"n1", "n2"}));
}

TEST(CheckAlike, OneNodeHasNoPeers) {
  PeerQuestion question = healthy();
  for (const char* host : {"n2", "n3", "n4"}) question.answers.erase(host);
  EXPECT_TRUE(check_alike(question).empty());
}

TEST(CheckSeen, AFolderThatANodeDoesNotSeeIsAWarning) {
  PeerQuestion question = healthy();
  facts_of(question, "n2").sees[question.log_dir_mark] = false;
  facts_of(question, "n3").cwd = "/tmp";
  const auto found = check_seen(question);
  EXPECT_EQ(hosts_with(found, Health::warning), (Hosts{"n2", "n3"}));
}

TEST(CheckLeftovers, RunningJobsAndAttemptsAreInOrder) {
  PeerQuestion question = healthy();
  question.running_attempts = {"57.1a2b.2"};
  facts_of(question, "n2").leftovers = {{10, "python3", "57", "57.1a2b.2", true},
                                        {11, "python3", "58", "", true},
                                        {12, "srun", "57", "57.1a2b.2", false}};
  EXPECT_EQ(hosts_with(check_leftovers(question), Health::ok).size(), 4U);
}

TEST(CheckLeftovers, OfAnEarlierAttemptOrJobAreNamedByTheirPids) {
  PeerQuestion question = healthy();
  question.running_attempts = {"57.1a2b.2"};
  facts_of(question, "n2").leftovers = {{10, "python3", "57", "57.1a2b.1", true},
                                        {11, "python3", "57", "57.1a2b.1", true}};
  facts_of(question, "n3").leftovers = {{20, "python3", "41", "", true}};
  facts_of(question, "n4").leftovers = {{30, "toy", "", "local-99.ab.1", true}};
  std::string why;
  EXPECT_EQ(hosts_with(check_leftovers(question), Health::warning, &why),
            (Hosts{"n2", "n3", "n4"}));
  EXPECT_NE(why.find("pid 10-11 (attempt 57.1a2b.1)"), std::string::npos) << why;
  EXPECT_NE(why.find("pid 20 (job 41)"), std::string::npos) << why;
}

TEST(CheckLeftovers, WhetherAJobRunsThatNobodyToldIsUnknown) {
  PeerQuestion question = healthy();
  question.running_jobs_known = false;
  question.running_jobs.clear();
  facts_of(question, "n3").leftovers = {{20, "python3", "41", "", true}};
  const auto found = check_leftovers(question);
  EXPECT_EQ(hosts_with(found, Health::unknown), Hosts{"n3"});
  EXPECT_TRUE(hosts_with(found, Health::warning).empty());
}

TEST(CheckLeftovers, PbsIdsAreComparedByTheirNumber) {
  PeerQuestion question = healthy();
  question.running_jobs = {"58"};
  facts_of(question, "n3").leftovers = {{20, "python3", "58.server.site", "", true}};
  EXPECT_EQ(hosts_with(check_leftovers(question), Health::ok).size(), 4U);
}

TEST(AttemptName, IsTakenApartFromBehind) {
  EXPECT_EQ(parse_attempt_id("57.1a2b.2").job_id, "57");
  EXPECT_EQ(parse_attempt_id("7.server.site.1a2b.2").job_id, "7.server.site");
  EXPECT_EQ(parse_attempt_id("57.1a2b.2").run, "57.1a2b");
  for (const char* id : {"", "57", "57.1", ".1", "."}) {
    EXPECT_EQ(parse_attempt_id(id).job_id, "") << id;
  }
}

}  // namespace
}  // namespace ezpz::doctor
