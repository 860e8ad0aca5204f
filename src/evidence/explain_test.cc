// What an author of a pattern is told.
#include "evidence/explain.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "evidence/test_grammar.h"

namespace ezpz::evidence {
namespace {

Grammar with_site_file(const std::string& toml) {
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("ezpz_explain_test." + std::to_string(getpid()));
  std::filesystem::create_directories(directory);
  std::ofstream(directory / "site.toml") << toml;
  Result<Grammar> grammar = Grammar::load(directory.string());
  std::filesystem::remove_all(directory);
  return *std::move(grammar);
}

std::string pattern(const std::string& id, const std::string& regex, const std::string& more = "") {
  return "[[pattern]]\nid = '" + id + "'\nregex = '" + regex +
         "'\ntriggers = ['blade ']\nexample = 'blade nid7 lost power'\n" + more + "\n";
}

// "site.a taken" for each look at the line, the built-in ones left out.
std::vector<std::string> fates(const Grammar& grammar, const std::vector<std::string>& lines) {
  Explainer explainer(grammar);
  std::vector<std::string> fates;
  int64_t number = 0;
  for (const std::string& line : lines) {
    const Explanation* explanation = explainer.explain(line, ++number);
    if (explanation == nullptr) continue;
    for (const Look& look : explanation->looks) {
      if (look.entry->spec.id.rfind("site.", 0) != 0) continue;
      std::string text = look.entry->spec.id + ' ' + std::string(to_string(look.fate));
      if (!look.why.empty()) text += ' ' + look.why;
      for (const auto& [name, value] : look.captures)
        text.append(1, ' ').append(name).append(1, '=').append(value);
      fates.push_back(text);
    }
  }
  return fates;
}

using Fates = std::vector<std::string>;

TEST(Explain, ALineWithoutATriggerIsNotExplained) {
  Explainer explainer(test_grammar());
  EXPECT_EQ(explainer.explain("nothing of interest", 1), nullptr);
}

TEST(Explain, CapturesOfWhatIsTakenAreShown) {
  const Grammar grammar = with_site_file(pattern("site.a", "blade {host} lost"));
  EXPECT_EQ(fates(grammar, {"\x1b[31mblade nid7 lost power\x1b[0m"}),
            Fates{"site.a taken host=nid7"});
}

TEST(Explain, ATriggerWithoutAMatchIsSaid) {
  const Grammar grammar = with_site_file(pattern("site.a", "blade {host} lost"));
  EXPECT_EQ(fates(grammar, {"blade nid7 is fine"}), Fates{"site.a no match"});
}

TEST(Explain, AVetoNamesItsText) {
  const Grammar grammar =
      with_site_file(pattern("site.a", "blade {host} lost", "unless = ['Redundancy']"));
  EXPECT_EQ(fates(grammar, {"blade nid7 lost power redundancy"}),
            Fates{"site.a vetoed redundancy host=nid7"});
}

TEST(Explain, WhoLosesTheSameTextIsToldToWhom) {
  const Grammar grammar = with_site_file(pattern("site.a", "blade {host}") +
                                         pattern("site.b", "{host} lost power", "priority = 1"));
  EXPECT_EQ(fates(grammar, {"blade nid7 lost power"}),
            (Fates{"site.b taken host=nid7", "site.a lost site.b host=nid7"}));
}

TEST(Explain, PrefacesAreShownWhereTheyAreTakenAndWhereTheyAreMissing) {
  const Grammar grammar = with_site_file(
      "[[preface]]\nid = 'site.where'\nregex = 'worker at {host}'\ntriggers = ['worker at ']\n"
      "example = 'worker at nid1'\n" +
      pattern("site.a", "blade", "takes_from = 'site.where'\nonly_after = 'site.where'"));
  EXPECT_EQ(fates(grammar, {"blade failure"}), Fates{"site.a not after site.where"});
  EXPECT_EQ(fates(grammar, {"worker at nid7", "blade failure"}),
            (Fates{"site.where taken host=nid7", "site.a taken host=nid7"}));
}

TEST(Explain, WhatIsSaidToBeTakenIsWhatTheMatcherTakes) {
  size_t tried = 0;
  for (const Grammar::Example& example : test_grammar().examples()) {
    SCOPED_TRACE(example.line);
    Explainer explainer(test_grammar());
    Matcher matcher(test_grammar().tables());
    const Explanation* explanation = explainer.explain(example.line, 1);
    std::set<std::string> taken;
    std::set<std::string> facts;
    for (const Fact& fact : matcher.match(example.line, 1).facts) facts.insert(fact.pattern);
    if (explanation != nullptr) {
      for (const Look& look : explanation->looks) {
        const bool fact = look.entry->spec.purpose == Purpose::fact;
        if (fact && look.fate == Fate::taken) taken.insert(look.entry->spec.id);
        EXPECT_NE(look.fate, Fate::repeated) << look.entry->spec.id;
      }
    }
    EXPECT_EQ(taken, facts);
    ++tried;
  }
  EXPECT_GT(tried, 50U);
}

}  // namespace
}  // namespace ezpz::evidence
