// The small parts: escapes, fields, lines, the fact store, the topology.
#include <gtest/gtest.h>

#include <random>

#include "evidence/escapes.h"
#include "evidence/fact_store.h"
#include "evidence/fields.h"
#include "evidence/lines.h"
#include "evidence/survey.h"
#include "evidence/topology.h"

namespace ezpz::evidence {
namespace {

std::string stripped(std::string_view line) {
  std::string out;
  strip_escapes(line, &out);
  return out;
}

TEST(Escapes, ColoursTitlesAndCharacterSetsAreTakenOut) {
  EXPECT_EQ(stripped("it\x1b[1;32mer\x1b[0m=4\x1b[K2"), "iter=42");
  EXPECT_EQ(stripped("\x1b]0;a title\aok"), "ok");
  EXPECT_EQ(stripped("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\"), "link");
  EXPECT_EQ(stripped("\x1b(Bplain\x1b=\x1bM"), "plain");
}

TEST(Escapes, AnUnendedOneHidesNoText) {
  EXPECT_EQ(stripped("\x1b]0;srun: error: x"), "0;srun: error: x");
  EXPECT_EQ(stripped("x\x1b"), "x");
  EXPECT_EQ(stripped("x\x1b["), "x");
  EXPECT_EQ(stripped("x\x1b[31"), "x");
  EXPECT_EQ(stripped("\x1b[31\xc3\xa9!"), "\xc3\xa9!");
}

TEST(Escapes, ALineOfOpeningsTakesNoSquareOfItsLength) {
  std::string openings;
  while (openings.size() < 60000) openings += "\x1b]";
  EXPECT_EQ(stripped(openings), "");
}

TEST(Escapes, ManyLinesInBulkAreStrippedAsEachByItself) {
  using namespace std::string_literals;
  const std::vector<std::string> parts{
      "\x1b[0m"s,   "\x1b[1;36m"s, "\x1b["s,    "\x1b"s, "\x1b[\x1b[3m"s, "\x1b]0;"s,
      "\a"s,        "\x1b\\"s,     "\x1b(B"s,   "\0"s,   "\n"s,           "\r"s,
      "\x1b[31\n"s, "\x1b[3\0m"s,  "step=42 "s, "x"s,    "\xc3\xa9"s,     "[m0;9"s};
  std::mt19937 random(20311130);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    const bool long_lines = round % 4 == 0;
    const size_t length = random() % 400;
    while (text.size() < length) {
      text += random() % 3 == 0 ? std::string(random() % (long_lines ? 80 : 20), 'y')
                                : parts[random() % parts.size()];
    }
    for (const size_t longest : {size_t{1000}, size_t{30}}) {
      std::string in_bulk;
      strip_escapes(text, longest, &in_bulk);
      std::string one_by_one;
      strip_escapes(text, longest, &one_by_one, Simd::none);
      ASSERT_EQ(in_bulk, one_by_one) << "round " << round;
    }
  }
}

TEST(Escapes, OfALongSegmentOnlyTheBeginningIsKept) {
  std::string out;
  strip_escapes("ab\x1b[0mcdef\nghi\r0123456789\n", 8, &out);
  EXPECT_EQ(out, "abcd\nghi\r01234567\n");
}

TEST(Escapes, NulIsTakenOut) { EXPECT_EQ(stripped(std::string_view("st\0ep", 5)), "step"); }

TEST(Fields, RanksAreExpandedAscendingAndOnce) {
  EXPECT_EQ(parse_ranks("5"), std::vector<int>{5});
  EXPECT_EQ(parse_ranks("2,4-5,7"), (std::vector<int>{2, 4, 5, 7}));
  EXPECT_EQ(parse_ranks("[0-3]"), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(parse_ranks("7,1-2,2"), (std::vector<int>{1, 2, 7}));
  EXPECT_EQ(parse_ranks(""), std::vector<int>());
  EXPECT_EQ(parse_ranks("x,3-1,-5,99999999999999999999"), std::vector<int>());
  EXPECT_EQ(parse_ranks("0-16000000").size(), kMaxRanks);
}

TEST(Fields, SignalsAreKnownByNumberNameAndDescription) {
  EXPECT_EQ(parse_signal("Killed"), 9);
  EXPECT_EQ(parse_signal("SIGSEGV"), 11);
  EXPECT_EQ(parse_signal("Segmentation fault"), 11);
  EXPECT_EQ(parse_signal("15"), 15);
  EXPECT_EQ(parse_signal("-9"), 9);
  EXPECT_EQ(parse_signal("Killing"), 0);
  EXPECT_EQ(parse_signal("255"), 0);
  EXPECT_EQ(parse_signal(""), 0);
}

TEST(Lines, SegmentsEndAtNewlineAndCarriageReturn) {
  const std::string text = "first line of some length\rsecond segment of this\nthird, unfinished";
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const char* const first = find_separator(begin, end);
  EXPECT_EQ(first - begin, 25);
  const char* const second = find_separator(first + 1, end);
  EXPECT_EQ(*second, '\n');
  EXPECT_EQ(find_separator(second + 1, end), end);
  EXPECT_EQ(segment_start(begin, end), second + 1);
  EXPECT_EQ(segment_start(begin, second), first + 1);
  EXPECT_EQ(segment_start(begin, first), begin);
}

TEST(Lines, NewlinesAreCountedExactlyAtEveryLength) {
  std::string text;
  int64_t expected = 0;
  for (size_t i = 0; i < 10000; ++i) {
    if (i % 97 == 0 || i > 9000) {
      const Newlines found = count_newlines(text.data(), text.data() + text.size());
      ASSERT_EQ(found.count, expected) << i;
      if (expected > 0) {
        ASSERT_EQ(static_cast<size_t>(found.last - text.data()), text.rfind('\n'));
      }
    }
    const bool newline = i % 3 == 0 || i > 5000;
    text += newline ? '\n' : 'x';
    expected += newline ? 1 : 0;
  }
}

TEST(Survey, CountsLinesAndSeesOneDirtyByteAtEveryLengthAndPlace) {
  const auto widths = {Simd::none, Simd::ssse3, Simd::avx2, Simd::avx512};
  for (const Simd simd : widths) {
    if (simd > best_simd()) continue;
    std::string text;
    int64_t newlines = 0;
    for (size_t i = 0; i < 9000; ++i) {
      if (i < 300 || i > 8800) {
        const Survey clean = survey(text, simd);
        ASSERT_EQ(clean.newlines, newlines) << i;
        ASSERT_FALSE(clean.dirty) << i;
      }
      const bool newline = i % 3 == 0 || i > 5000;
      text += newline ? '\n' : 'x';
      newlines += newline ? 1 : 0;
    }
    text.resize(200);
    for (size_t i = 0; i < text.size(); ++i) {
      for (const char bad : {'\x1b', '\0'}) {
        std::string dirty = text;
        dirty[i] = bad;
        ASSERT_TRUE(survey(dirty, simd).dirty) << i;
      }
    }
  }
}

TEST(Lines, TheNthNewlineIsFoundAtEveryDistance) {
  std::string text;
  for (size_t i = 0; i < 3000; ++i) text += std::string(i % 7, 'x') + '\n';
  size_t at = 0;
  for (int64_t n = 1; n <= 3000; ++n) {
    at = text.find('\n', at) + 1;
    const char* const found = behind_newline(text.data(), text.data() + text.size(), n);
    ASSERT_EQ(static_cast<size_t>(found - text.data()), at);
  }
}

Fact fact(const std::string& pattern, const std::string& host, Event event = Event::message) {
  Fact made;
  made.pattern = pattern;
  made.host = host;
  made.event = event;
  return made;
}

TEST(FactStore, KeepsTheFirstOfEveryPatternAndHostWhenItFills) {
  FactStore store(100);
  for (int i = 0; i < 500; ++i) store.add(fact("flood", "a"));
  EXPECT_EQ(store.facts().size(), 50U);
  EXPECT_NE(store.add(fact("flood", "b")), nullptr);
  EXPECT_EQ(store.add(fact("flood", "b")), nullptr);
  for (int i = 0; i < 500; ++i) store.add(fact("flood", "host" + std::to_string(i)));
  EXPECT_EQ(store.facts().size(), 90U);
  EXPECT_NE(store.add(fact("new", "a")), nullptr);
  for (int i = 0; i < 500; ++i) store.add(fact("pattern" + std::to_string(i), "a"));
  EXPECT_EQ(store.facts().size(), 100U);
}

TEST(FactStore, APatternIsSettledOnceItsNextFactWouldBeRefused) {
  FactStore store(100);
  for (int i = 0; i < 49; ++i) store.add(fact("flood", ""));
  EXPECT_FALSE(store.is_settled("flood"));
  store.add(fact("flood", ""));
  EXPECT_TRUE(store.is_settled("flood"));
  EXPECT_EQ(store.add(fact("flood", "")), nullptr);
  EXPECT_FALSE(store.is_settled("other"));
}

TEST(FactStore, PlacementsDoNotCrowdOutTheRest) {
  FactStore store(80);
  for (int i = 0; i < 500; ++i) {
    store.add(fact("placed", "host" + std::to_string(i), Event::placement));
  }
  EXPECT_EQ(store.facts().size(), 10U);
  EXPECT_NE(store.add(fact("error", "a")), nullptr);
}

TEST(Topology, HostsComeByTheirLowestRank) {
  Topology topology;
  EXPECT_TRUE(topology.empty());
  topology.place(2, "b");
  topology.place(0, "z");
  topology.place(3, "b");
  topology.place(1, "z");
  topology.place(-1, "x");
  topology.place(9, "");
  const std::vector<std::pair<std::string, std::vector<int>>> expected{{"z", {0, 1}},
                                                                       {"b", {2, 3}}};
  EXPECT_EQ(topology.hosts(), expected);
  EXPECT_EQ(topology.host_of(3), "b");
  EXPECT_EQ(topology.host_of(4), std::nullopt);
  EXPECT_EQ(topology.world_size(), std::nullopt);
}

TEST(Topology, TheLargestCommunicatorPlacesRanksThatNobodyElsePlaced) {
  Topology topology;
  topology.place(0, "a");
  topology.place_in_group(0, 2, "x");
  topology.place_in_group(1, 2, "x");
  for (int rank = 0; rank < 8; ++rank) topology.place_in_group(rank, 8, rank < 4 ? "b" : "c");
  EXPECT_EQ(topology.host_of(0), "a");
  EXPECT_EQ(topology.host_of(3), "b");
  EXPECT_EQ(topology.host_of(7), "c");
  EXPECT_EQ(topology.placed().size(), 1U);
  EXPECT_FALSE(topology.host_of(8));
}

TEST(Topology, ACommunicatorThatIsNotTheWholeJobPlacesNobody) {
  Topology part;
  part.set_world_size(16);
  for (int rank = 0; rank < 8; ++rank) part.place_in_group(rank, 8, "b");
  EXPECT_FALSE(part.host_of(5));
  Topology incomplete;
  for (int rank = 0; rank < 7; ++rank) incomplete.place_in_group(rank, 8, "b");
  EXPECT_FALSE(incomplete.host_of(5));
  Topology contradiction;
  contradiction.place_in_group(0, 4, "b");
  contradiction.place_in_group(0, 4, "c");
  EXPECT_FALSE(contradiction.host_of(0));
  Topology too_small;
  too_small.place(9, "a");
  for (int rank = 0; rank < 8; ++rank) too_small.place_in_group(rank, 8, "b");
  EXPECT_FALSE(too_small.host_of(0));
}

TEST(Topology, ALabelPlacesARankUnlessSomebodySaysMore) {
  Topology topology;
  topology.place_by_label(3, "a");
  EXPECT_EQ(topology.host_of(3), "a");
  topology.place(3, "b");
  EXPECT_EQ(topology.host_of(3), "b");
}

}  // namespace
}  // namespace ezpz::evidence
