// Whose machine a line speaks of, by what stands before the message.
#include "evidence/source_host.h"

#include <gtest/gtest.h>

namespace ezpz::evidence {
namespace {

std::string host(const std::string& header, const std::string& behind = "") {
  return source_host(header + "NVRM: Xid" + behind, header.size());
}

TEST(SourceHost, IsFoundInEveryCollectorsForm) {
  for (const char* header : {
           "gpu-17: ",
           "gpu-17: [ 1193.2] ",
           "gpu-17: [1193.207114] ",
           "[Mon Feb  2 22:52:45 2031] gpu-17 ",
           "gpu-17 [Mon Feb  2 22:52:45 2031] ",
           "Jun  9 13:40:02 gpu-17 kernel: ",
           "Jun  9 13:40:02 gpu-17 kernel: [ 1193.2] ",
           "Jun  9 13:40:02 gpu-17 kernel[0]: ",
           "gpu-17 kernel: ",
           "2031-06-09T13:40:02.123456+02:00 gpu-17 kernel: ",
           "2031-06-09 13:40:02,123 gpu-17 kernel: ",
           "<3>1 2031-06-09T13:40:02Z gpu-17 kernel - - - ",
           "[preflight] gpu-17: ",
           "[dmesg] [gpu-17] ",
           "[gpu-17] ",
           "[gpu-17]: ",
           "kernel: [gpu-17] ",
           "kern  :err   : gpu-17: ",
           "conman <gpu-17>: ",
           "console.gpu-17: [911200.211] ",
           "Message from syslogd@gpu-17 at Jun  9 13:40:02 ... gpu-17 kernel: ",
           "2031-08-21T18:35:35Z gpu-17 node-problem-detector: {\"level\":\"info\",\"message\":\"",
           "{\"host\":\"gpu-17\",\"msg\":\"",
           "{\"ts\":\"2031-08-21T18:35:35Z\", \"Hostname\": \"gpu-17\", \"msg\": \"",
           "ts=2031-08-21T18:35:35Z level=error node=gpu-17 msg=\"",
       }) {
    EXPECT_EQ(host(header), "gpu-17") << header;
  }
  EXPECT_EQ(host("{\"msg\":\"", " 79\",\"node\":\"gpu-17\"}"), "gpu-17");
  EXPECT_EQ(host("Jun  9 13:40:02 lambda kernel: "), "lambda") << "its place tells it";
  EXPECT_EQ(host("node3.cluster.example: "), "node3.cluster.example");
}

TEST(SourceHost, IsNotTakenFromTimesDevicesAndTools) {
  for (const char* header : {
           "",
           "[ 1193.2] ",
           "kernel: ",
           "10:00:00 kernel: ",
           "Jun  9 13:40:02 kernel: ",
           "[Mon Feb  2 22:52:45 2031] ",
           "kernel: [1193.2] ",
           "nvme0n1: ",
           "[rank3]: ",
           "0000:41:00.0: ",
           "mlx5_core 0000:5e:00.0: ",
           "localhost kernel: ",
       }) {
    EXPECT_EQ(host(header), "") << header;
  }
}

TEST(SourceHost, IsNotTakenFromProseOrFromTwo) {
  EXPECT_EQ(host("see what gpu-17 printed: "), "");
  EXPECT_EQ(host("gpu-17 and gpu-18 report "), "");
  EXPECT_EQ(host("gpu-17: gpu-18: "), "");
  EXPECT_EQ(host("{\"host\":\"gpu-17\",\"node\":\"gpu-18\",\"msg\":\""), "");
  EXPECT_EQ(host(std::string(5000, 'a') + "1 "), "");
}

TEST(SourceRank, IsTheOneInBracketsBeforeTheMessage) {
  const auto rank = [](const std::string& header) {
    return source_rank(header + "CUDA error", header.size());
  };
  EXPECT_EQ(rank("[E ProcessGroupNCCL.cpp:916] [Rank 5] NCCL watchdog thread terminated: "), 5);
  EXPECT_EQ(rank("2031-08-21 ERROR [rank=12]: "), 12);
  EXPECT_EQ(rank("[rank:3/8] "), 3);
  EXPECT_EQ(rank("[E x.cpp:9] "), -1);
  EXPECT_EQ(rank("[Rank 5] heard of [Rank 6]: "), -1);
  EXPECT_EQ(rank("[Rank -5] "), -1);
  EXPECT_EQ(rank("[Rank 99999999999] "), -1);
}

}  // namespace
}  // namespace ezpz::evidence
