#include "doctor/wire.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace ezpz::doctor {
namespace {

using Payloads = std::vector<std::string>;

TEST(Wire, AReportReadsBackWhateverItsLength) {
  for (const size_t size : {0U, 1U, 799U, 800U, 801U, 5000U}) {
    std::string payload(size, 'x');
    for (size_t i = 0; i < size; ++i) payload[i] = static_cast<char>('a' + i % 26);
    EXPECT_EQ(read_wire(write_wire(payload, "1f")), Payloads{payload}) << size;
  }
}

TEST(Wire, NoLineIsLongerThanWhatALauncherPassesOnInOnePiece) {
  for (const std::string& line : split_lines(write_wire(std::string(100'000, 'x'), wire_id()))) {
    EXPECT_LT(line.size(), 1024U);
  }
}

TEST(Wire, LabelsAndMessagesAroundItDoNotMatter) {
  std::string output = "srun: launching\n";
  for (const std::string& line : split_lines(write_wire(std::string(1000, 'y'), "a1"))) {
    output += "x1921c7s1b0n0 0: " + line + "rank 3 died from signal 9\n";
  }
  EXPECT_EQ(read_wire(output), Payloads{std::string(1000, 'y')});
}

TEST(Wire, PartsOfSeveralNodesMayComeInAnyOrder) {
  const auto first = split_lines(write_wire(std::string(1700, 'a'), "1"));
  const auto second = split_lines(write_wire(std::string(1700, 'b'), "2"));
  const std::string output = join({first[2], second[0], first[0], second[1], first[1]}, "\n");
  EXPECT_EQ(read_wire(output), Payloads{std::string(1700, 'a')}) << "the second lacks a part";
}

TEST(Wire, WhatIsCutOffIsNoReport) {
  const std::string whole = write_wire(R"({"node":"nid1"})", "3");
  for (size_t size = 0; size + 1 < whole.size(); ++size) {
    EXPECT_TRUE(read_wire(whole.substr(0, size)).empty()) << size;
  }
  EXPECT_TRUE(read_wire("ezpz-doctor-node 1 2/1 3 abc\n").empty());
  EXPECT_TRUE(read_wire("ezpz-doctor-node 1 1/99999999 3 abc\n").empty());
  EXPECT_TRUE(read_wire("ezpz-doctor-node 1 1/1 -3 abc\n").empty());
}

TEST(Wire, NoTwoSendersShareAnId) { EXPECT_NE(wire_id(), wire_id()); }

}  // namespace
}  // namespace ezpz::doctor
