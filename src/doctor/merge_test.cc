#include "doctor/merge.h"

#include <gtest/gtest.h>

#include "doctor/report.h"

namespace ezpz::doctor {
namespace {

using Hosts = std::vector<std::string>;

PeerFinding of(const std::string& host, Health health, const std::string& why,
               const std::string& check = "tmp") {
  return {{check, health, why, health == Health::ok ? "" : "empty it", ""}, {host}};
}

TEST(Merge, TheSameTroubleOnManyNodesIsOneGroup) {
  const std::vector<Row> rows =
      merge({},
            {of("n1", Health::warning, "12 MB free"), of("n2", Health::ok, "80.5 GB free"),
             of("n3", Health::warning, "9 MB free"), of("n4", Health::ok, "81.25 GB free"),
             of("n5", Health::error, "read-only")},
            5);
  ASSERT_EQ(rows.size(), 1U);
  ASSERT_EQ(rows[0].groups.size(), 3U);
  EXPECT_EQ(rows[0].groups[0].hosts, Hosts{"n5"}) << "the most worrying first";
  EXPECT_EQ(rows[0].groups[1].hosts, (Hosts{"n1", "n3"}));
  EXPECT_TRUE(rows[0].groups[1].figures_differ);
  EXPECT_EQ(rows[0].groups[2].hosts, (Hosts{"n2", "n4"}));
  EXPECT_EQ(rows[0].health(), Health::error);
}

TEST(Merge, DifferentTroublesStayApart) {
  const std::vector<Row> rows =
      merge({}, {of("n1", Health::warning, "full"), of("n2", Health::warning, "slow")}, 2);
  EXPECT_EQ(rows[0].groups.size(), 2U);
}

TEST(Merge, ChecksKeepTheOrderTheyCameIn) {
  const std::vector<Row> rows =
      merge({{"job", Health::ok, "runs", "", ""}},
            {of("n1", Health::ok, "", "gpus"), of("n1", Health::ok, "", "tmp"),
             of("n2", Health::ok, "", "gpus")},
            2);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].check, "job");
  EXPECT_EQ(rows[0].of, 0U);
  EXPECT_EQ(rows[1].check, "gpus");
  EXPECT_EQ(rows[1].of, 2U);
}

Report report_of(std::vector<Row> rows, size_t asked = 32) {
  Report report;
  report.host = "n1";
  report.machine_title = "a machine";
  report.scheduler = "slurm";
  report.asked = asked;
  report.answered = asked;
  report.rows = std::move(rows);
  return report;
}

TEST(Tell, OneBadNodeOfManyIsNamedBesideTheCount) {
  std::vector<PeerFinding> findings;
  for (int i = 1; i <= 32; ++i) {
    const std::string host = "nid" + std::to_string(1000 + i);
    findings.push_back(i == 7 ? of(host, Health::error, "3 of 4 GPUs", "gpus")
                              : of(host, Health::ok, "4 GPUs", "gpus"));
  }
  const std::string text = tell(report_of(merge({}, findings, 32)));
  EXPECT_NE(text.find("error    gpus  31 of 32 nodes: ok; nid1007: 3 of 4 GPUs\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("do: empty it\n"), std::string::npos);
  EXPECT_EQ(text.find("ok       gpus"), std::string::npos) << "said twice";
}

TEST(Tell, ManyBadNodesAreACompressedList) {
  std::vector<PeerFinding> findings;
  for (int i = 1; i <= 8; ++i) {
    findings.push_back(of("nid" + std::to_string(1000 + i), i <= 4 ? Health::warning : Health::ok,
                          std::to_string(i) + " MB free"));
  }
  const std::string text = tell(report_of(merge({}, findings, 8), 8));
  EXPECT_NE(text.find("4 of 8 nodes: ok; nid[1001-1004]: 1 MB free (and the like)"),
            std::string::npos)
      << text;
}

TEST(Tell, ARemedyThatNamesAHostNamesAllOfTheGroup) {
  std::vector<PeerFinding> findings;
  for (const char* host : {"nid1", "nid2"}) {
    findings.push_back(of(host, Health::error, "no GPU"));
    findings.back().finding.remedy = std::string("--exclude ") + host;
  }
  findings.push_back(of("nid3", Health::ok, "fine"));
  const std::string text = tell(report_of(merge({}, findings, 3), 3));
  EXPECT_NE(text.find("do: --exclude nid1,nid2\n"), std::string::npos) << text;
}

TEST(Tell, ErrorsStandBeforeWarningsBeforeWhatIsUnknown) {
  const std::string text = tell(report_of(merge({{"a", Health::ok, "fine", "", ""},
                                                 {"b", Health::unknown, "not seen", "ask", ""},
                                                 {"c", Health::error, "broken", "mend", "there"},
                                                 {"d", Health::warning, "odd", "look", ""}},
                                                {}, 0),
                                          1),
                                Fine::lines);
  const size_t c = text.find("error    c  broken\n");
  const size_t d = text.find("warning  d  odd\n");
  const size_t b = text.find("unknown  b  not seen\n");
  const size_t a = text.find("ok       a  fine\n");
  ASSERT_NE(c, std::string::npos) << text;
  EXPECT_TRUE(c < d && d < b && b < a) << text;
  EXPECT_NE(text.find("see: there"), std::string::npos);
  EXPECT_NE(text.find("1 error, 1 warning, 1 unknown, 1 ok\n"), std::string::npos) << text;
}

TEST(Tell, WhatIsFineIsAListOfNamesUnlessAskedFor) {
  std::vector<Finding> findings;
  findings.reserve(30);
  for (int i = 0; i < 30; ++i)
    findings.push_back({"check" + std::to_string(i), Health::ok, "why", "", ""});
  const std::string text = tell(report_of(merge(findings, {}, 0), 1));
  EXPECT_NE(text.find("ok       check0, check1, "), std::string::npos) << text;
  EXPECT_NE(text.find("check29\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("why"), std::string::npos);
  EXPECT_NE(tell(report_of(merge(findings, {}, 0), 1), Fine::lines).find("check29  why"),
            std::string::npos);
}

TEST(ExitCode, IsOneForErrorsAndTwoForWarningsWhereTheyCount) {
  const auto code = [](Health health, bool strict) {
    return exit_code(report_of(merge({{"a", health, "", "", ""}}, {}, 0)), strict);
  };
  EXPECT_EQ(code(Health::error, false), 1);
  EXPECT_EQ(code(Health::error, true), 1);
  EXPECT_EQ(code(Health::warning, false), 0);
  EXPECT_EQ(code(Health::warning, true), 2);
  EXPECT_EQ(code(Health::unknown, true), 0);
  EXPECT_EQ(code(Health::ok, true), 0);
}

TEST(TellJson, HoldsEveryGroupWithItsHosts) {
  const std::string text = tell_json(report_of(
      merge({}, {of("n1", Health::ok, "fine"), of("n2", Health::error, "broken")}, 2), 2));
  for (const char* part : {"\"check\": \"tmp\"", "\"of\": 2", "\"n2\"", "\"health\": \"error\"",
                           "\"error\": 1", "\"nodes_answered\": 2"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
}

}  // namespace
}  // namespace ezpz::doctor
