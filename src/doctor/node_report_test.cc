#include "doctor/node_report.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ezpz::doctor {
namespace {

NodeReport full_report() {
  NodeReport report;
  report.facts.node = "nid000003";
  report.facts.hostname = "nid000003.site";
  report.facts.began_s = 1796000000.25;
  report.facts.answered_s = 1796000001.5;
  report.facts.cwd = "/home/me";
  report.facts.addresses = {{"hsn0", {"10.1.0.3", "fe80::1"}}};
  report.facts.names = {{"nid000001", {"10.1.0.1"}}, {"nid000009", {}}};
  report.facts.sees = {{"/scratch/logs", true}, {"/tmp/x", false}};
  report.facts.alike = {{"kernel", "5.14.21"}};
  report.facts.leftovers = {{4711, "python3", "56", "56.1a2b.1", true}};
  report.facts.socket_interfaces = {"hsn"};
  report.findings = {{"tmp-space", Health::warning, "12 MB free", "empty it", "somewhere"}};
  return report;
}

TEST(NodeReport, ReadsBackWhole) {
  const auto back = parse_report(format_report(full_report()));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(format_report(*back), format_report(full_report()));
  EXPECT_EQ(back->facts.leftovers.at(0).attempt_id, "56.1a2b.1");
  EXPECT_EQ(back->findings.at(0).health, Health::warning);
  EXPECT_EQ(back->facts.names.at("nid000009"), std::vector<std::string>{});
}

TEST(NodeReport, IsAsciiOnOneLineWhateverAProcessIsCalled) {
  NodeReport report = full_report();
  report.facts.leftovers[0].name = "\xff\n\x1b[31mpy\xc3\xa9";
  const std::string text = format_report(report);
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; }));
  const auto back = parse_report(text);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->facts.leftovers[0].name.find('\x1b'), std::string::npos);
}

TEST(NodeReport, WhatIsNoReportIsNone) {
  for (const char* text : {"", "{", "[]", "{}", R"({"form":1})", R"({"form":2,"node":"n"})",
                           R"({"form":1,"node":""})", R"({"form":1,"node":7})"}) {
    EXPECT_FALSE(parse_report(text).has_value()) << text;
  }
}

TEST(NodeReport, PartsOfTheWrongKindAreLeftOut) {
  const auto back = parse_report(
      R"({"form":1,"node":"n1","addresses":[1],"names":{"a":7},"sees":{"p":"yes"},"findings":
      [7,{"check":"x"},{"check":"","health":"ok"},{"check":"y","health":"grand"},
      {"check":"z","health":"error","why":["no"]}],"leftovers":{"pid":1}})");
  ASSERT_TRUE(back.has_value());
  EXPECT_TRUE(back->facts.addresses.empty());
  EXPECT_TRUE(back->facts.sees.empty());
  ASSERT_EQ(back->findings.size(), 1U);
  EXPECT_EQ(back->findings[0].check, "z");
  EXPECT_EQ(back->findings[0].why, "");
}

TEST(NodeReport, AFloodIsBounded) {
  NodeReport report = full_report();
  report.findings.assign(5000, report.findings[0]);
  report.facts.leftovers.assign(5000, report.facts.leftovers[0]);
  const auto back = parse_report(format_report(report));
  ASSERT_TRUE(back.has_value());
  EXPECT_LE(back->findings.size(), 200U);
  EXPECT_LE(back->facts.leftovers.size(), 200U);
}

}  // namespace
}  // namespace ezpz::doctor
