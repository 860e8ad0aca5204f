#include "supervise/line_filter.h"

#include <gtest/gtest.h>

#include <random>

#include "base/clock.h"

namespace ezpz::supervise {
namespace {

const std::string kOurs =
    "nid001:17754:17754 [0] NCCL INFO Using network AWS Libfabric\n"
    "3: nid001:17754:17760 [3] NCCL INFO Channel 00/0 : 3[3] -> 4[0] [send] via NET/Socket/0\n"
    "nid001.hsn.cm.site.example 12: nid001:1:2 [0] NCCL INFO Connected all rings\n"
    "[rank3]: nid001:1:2 [3] NCCL INFO comm 0x1 rank 3 nranks 8 - Init COMPLETE\n"
    "[1,3]<stdout>:nid001:1:2 [3] NCCL INFO NET/OFI Selected Provider is cxi (found 4 nics)\n"
    "[2031-06-10 21:49:11] gpuh1x:72:72 [0] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.14.0\n"
    "2031-06-10 21:49:11 gpuh1x:72:72 [0] NCCL INFO Bootstrap : Using hsn0:10.0.0.1<0>\n"
    "NCCL version 2.29.7+cuda13.0\n"
    "RCCL version : 2.21.5-HEAD:9a0e6a1\n"
    "HIP version  : 6.3.42134-a9a80e791\n"
    "ROCm version : 6.3.3.0-74-cbc70b5\n"
    "Hostname     : z292\n"
    "Librccl path : /opt/rocm-6.3.3/lib/librccl.so.1\n";

const std::string kTheirs =
    "step=1 loss=3.2\n"
    "\n"
    "seen in another log: nid001:1:2 [0] NCCL INFO Using network Socket\n"
    "nid001:17754:17754 [0] net.cc:600 NCCL WARN Error: network AWS Libfabric not found.\n"
    "loss 3.1nid001 1:2 [0] NCCL INFO\n"
    "torch version 2.9\n"
    "  12%|##        | 3/25\r 50%|#####     | 12/25\r\n"
    "nid001: up\n"
    "\xff\xfe NCCL INFO \x1b[1mcolour\x1b[0m\n";

std::string shown(const std::string& text, size_t piece) {
  std::string out;
  LineFilter filter([&out](std::string_view bytes) { out += bytes; });
  for (size_t at = 0; at < text.size(); at += piece) {
    filter.feed(std::string_view(text).substr(at, piece));
  }
  filter.release();
  return out;
}

TEST(LineFilter, HidesNcclsLinesAndShowsAllOthersHoweverTheBytesAreCut) {
  std::string text;
  std::string expected;
  size_t ours = 0;
  size_t theirs = 0;
  while (ours < kOurs.size() || theirs < kTheirs.size()) {
    const auto take = [](const std::string& from, size_t* at) {
      const size_t end = from.find('\n', *at) + 1;
      std::string line = from.substr(*at, end - *at);
      *at = end;
      return line;
    };
    if (ours < kOurs.size()) text += take(kOurs, &ours);
    if (theirs < kTheirs.size()) {
      const std::string line = take(kTheirs, &theirs);
      text += line;
      expected += line;
    }
  }
  for (size_t piece = 1; piece < 90; ++piece) EXPECT_EQ(shown(text, piece), expected) << piece;
  EXPECT_EQ(shown(text, text.size()), expected);
}

TEST(LineFilter, WhatCannotBecomeSuchALineIsShownAtOnce) {
  for (const char* start : {"step=1", "Epoch 3: 12%|", "  5%|#", "loading weights...", "\x1b[1m"}) {
    std::string out;
    LineFilter filter([&out](std::string_view bytes) { out += bytes; });
    filter.feed(start);
    EXPECT_EQ(out, start);
    EXPECT_FALSE(filter.holds());
  }
}

TEST(LineFilter, WhatMayStillBecomeOneIsHeldUntilPatienceEnds) {
  std::string out;
  LineFilter filter([&out](std::string_view bytes) { out += bytes; });
  filter.feed("nid001");
  EXPECT_EQ(out, "");
  EXPECT_TRUE(filter.holds());
  filter.release();
  EXPECT_EQ(out, "nid001");
  // A line of which something was shown is shown to its end.
  filter.feed(":1:2 [0] NCCL INFO x\nnid001:1:2 [0] NCCL INFO y\nend");
  EXPECT_EQ(out, "nid001:1:2 [0] NCCL INFO x\n");
}

TEST(LineFilter, HoldsAFewBytesOnlyOfALineWithoutAnEnd) {
  std::string out;
  LineFilter filter([&out](std::string_view bytes) { out += bytes; });
  const std::string name(1 << 20, 'n');
  for (size_t at = 0; at < name.size(); at += 100) filter.feed(name.substr(at, 100));
  EXPECT_GE(out.size() + LineFilter::kMaxHeld + 100, name.size());
  filter.release();
  EXPECT_EQ(out, name);
}

TEST(LineFilter, RandomCutsNeverChangeWhatIsShown) {
  std::mt19937 random(7);
  const std::string parts[] = {"nid001:1:2 [0] NCCL INFO x\n",
                               "nid001",
                               ":1",
                               ":2 [",
                               "0] NCCL INFO ",
                               "\n",
                               "step=1\n",
                               "3: ",
                               "NCCL version 2.1\n",
                               "[rank1]: ",
                               " "};
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (int i = 0; i < 30; ++i) text += parts[random() % std::size(parts)];
    const std::string whole = shown(text, text.size());
    for (const size_t piece : {1, 2, 3, 5, 8, 13}) ASSERT_EQ(shown(text, piece), whole) << text;
  }
}

}  // namespace
}  // namespace ezpz::supervise
