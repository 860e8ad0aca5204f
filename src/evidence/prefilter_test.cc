#include "evidence/prefilter.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>

#include "evidence/grammar_tables.h"
#include "evidence/test_grammar.h"

namespace ezpz::evidence {
namespace {

using Hits = std::set<std::pair<size_t, int>>;

Hits scan(const Prefilter& prefilter, std::string_view text) {
  Hits hits;
  prefilter.scan(text, [&](size_t at, int literal) {
    EXPECT_TRUE(hits.emplace(at, literal).second) << "told twice: " << at;
  });
  return hits;
}

std::string lower_of(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

Hits by_search(const std::vector<std::string>& literals, const std::string& text) {
  Hits hits;
  for (size_t n = 0; n < literals.size(); ++n) {
    const std::string folded = lower_of(text);
    for (size_t at = 0; (at = folded.find(lower_of(literals[n]), at)) != std::string::npos; ++at) {
      hits.emplace(at, static_cast<int>(n));
    }
  }
  return hits;
}

TEST(Prefilter, FindsWhatAPlainSearchFindsWithEveryInstructionSet) {
  const std::vector<std::string> literals{"step", "Step created", "srun: error: ", "Killed",
                                          "iter", "it/s",         "[rank=",        "aaaa"};
  const std::string alphabet = std::string("abstepiKrun: /[=\x1b\n\xc3illed") + '\0';
  std::mt19937 random(7);
  for (const Simd simd : {Simd::none, Simd::ssse3, Simd::avx2, Simd::avx512}) {
    if (simd > best_simd()) continue;
    const Prefilter prefilter(literals, simd);
    for (int round = 0; round < 400; ++round) {
      std::string text;
      const size_t length = random() % (round % 10 == 0 ? 9000 : 200);
      while (text.size() < length) {
        if (random() % 8 == 0) {
          text += literals[random() % literals.size()];
        } else {
          text += alphabet[random() % alphabet.size()];
        }
      }
      ASSERT_EQ(scan(prefilter, text), by_search(literals, text));
    }
  }
}

TEST(Prefilter, LiteralsOfOneBeginningAreToldApart) {
  const Prefilter prefilter({"step", "step created", "steps"});
  EXPECT_EQ(scan(prefilter, "a STEP creAted"), (Hits{{2, 0}, {2, 1}}));
}

TEST(Prefilter, EveryLiteralOfTheGrammarIsFoundWhereverItStands) {
  const std::vector<std::string>& literals = test_grammar().tables().literals;
  for (const Simd simd : {Simd::none, Simd::ssse3, Simd::avx2, Simd::avx512}) {
    if (simd > best_simd()) continue;
    const Prefilter prefilter(literals, simd);
    for (size_t i = 0; i < literals.size(); ++i) {
      const size_t before = i % 71;
      const std::string text = std::string(before, '~') + literals[i] + std::string(i % 67, '~');
      EXPECT_TRUE(scan(prefilter, text).contains({before, static_cast<int>(i)})) << literals[i];
    }
  }
}

TEST(Windows, ManyLiteralsShareFew) {
  std::vector<std::string> literals;
  for (char c = 'a'; c <= 'p'; ++c) literals.push_back(std::string("zyxw: ") + c + c);
  const std::vector<size_t> places = choose_windows(literals);
  std::set<std::string> windows;
  for (size_t i = 0; i < literals.size(); ++i) windows.insert(literals[i].substr(places[i], 4));
  EXPECT_EQ(windows.size(), 1U);
}

TEST(Windows, AreNotWhatEveryLineHolds) {
  EXPECT_NE(choose_windows({"step=quux"})[0], 0U);
  EXPECT_NE(choose_windows({"nccl info zyxw"})[0], 0U);
}

TEST(Prefilter, NothingToFindFindsNothing) {
  const Prefilter prefilter(std::vector<std::string>{});
  EXPECT_EQ(scan(prefilter, "some text that is long enough for the vector code to be used"),
            Hits());
  EXPECT_EQ(scan(prefilter, ""), Hits());
}

}  // namespace
}  // namespace ezpz::evidence
