#include "evidence/grammar.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/embedded.h"
#include "evidence/fields.h"
#include "evidence/grammar_file.h"
#include "evidence/grammar_image.h"
#include "evidence/grammar_tables.h"
#include "evidence/matcher.h"
#include "evidence/stream.h"
#include "evidence/test_grammar.h"

namespace ezpz::evidence {
namespace {

std::vector<Fact> facts_of(const std::string& text) {
  Stream stream(test_grammar());
  stream.feed(text + "\n");
  return stream.facts();
}

// A directory with one patterns file, as a site would write it.
class SiteFile {
 public:
  explicit SiteFile(const std::string& text, const std::string& name = "site.toml") {
    directory_ =
        std::filesystem::temp_directory_path() / ("ezpz_grammar_test." + std::to_string(getpid()));
    std::filesystem::create_directories(directory_);
    std::ofstream(directory_ / name) << text;
  }
  ~SiteFile() { std::filesystem::remove_all(directory_); }
  SiteFile(const SiteFile&) = delete;
  SiteFile& operator=(const SiteFile&) = delete;
  Result<Grammar> load(const std::string& machine = "") const {
    return Grammar::load(directory_.string(), machine);
  }

 private:
  std::filesystem::path directory_;
};

std::vector<std::string> prefaces_in(Matcher* matcher, const std::string& line) {
  std::vector<std::string> ids;
  for (const size_t entry : matcher->match(line, 1).prefaces) {
    ids.push_back(test_grammar().tables().entries[entry].spec.id);
  }
  return ids;
}

std::string error_of(const std::string& toml) {
  const Result<Grammar> grammar = SiteFile(toml).load();
  return grammar ? "no error" : grammar.error().one_line();
}

// A correct entry, to be spoiled.
std::string entry(const std::string& extra) {
  return "[[pattern]]\nid = 'site.x'\nregex = 'blade {host} died'\ntriggers = ['blade ']\n"
         "example = 'blade nid1 died'\n" +
         extra + "\n";
}

// Its lines are no facts: they tell who has which rank.
bool names_a_communicator(const std::string& id) {
  const std::vector<Entry>& entries = test_grammar().tables().entries;
  return std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) {
    return entry.spec.id == id && entry.spec.purpose == Purpose::communicator;
  });
}

TEST(GrammarImage, OfEveryBuiltInFileHoldsAllThatParsingGives) {
  for (const embedded::File& file : embedded::patterns()) {
    const Result<GrammarFile> parsed = parse_grammar_file(file.name, file.text);
    ASSERT_TRUE(parsed.ok()) << parsed.error().one_line();
    const std::optional<GrammarFile> image = from_image(built_in_image(file.name));
    ASSERT_TRUE(image.has_value()) << file.name;
    EXPECT_EQ(*image, *parsed) << file.name;
  }
}

TEST(GrammarImage, ThatIsCutShortIsNone) {
  const std::string_view image = built_in_image("slurm.toml");
  for (size_t size = 0; size < image.size(); size += 1 + image.size() / 500) {
    EXPECT_FALSE(from_image(image.substr(0, size)).has_value()) << size;
  }
  EXPECT_FALSE(from_image(std::string(image) + "x").has_value());
}

TEST(Grammar, EveryExampleIsFoundInTheStreamWithItsCaptures) {
  for (const Grammar::Example& example : test_grammar().examples()) {
    if (!example.matches) continue;
    SCOPED_TRACE(example.pattern + ": " + example.line);
    if (names_a_communicator(example.pattern)) {
      Matcher matcher(test_grammar().tables());
      EXPECT_FALSE(matcher.match(example.line, 1).members.empty());
      continue;
    }
    if (example.preface) {
      Matcher matcher(test_grammar().tables());
      const std::vector<std::string> said = prefaces_in(&matcher, example.line);
      EXPECT_NE(std::find(said.begin(), said.end(), example.pattern), said.end());
      continue;
    }
    Stream stream(test_grammar());
    stream.feed(example.line + "\n");
    if (example.pattern.starts_with("checkpoint.")) {
      const Progress& progress = stream.progress();
      const std::optional<int64_t> step = example.pattern == "checkpoint.resumed"
                                              ? progress.resumed_from
                                              : progress.last_checkpoint;
      if (const auto expected = example.expect.find("step"); expected != example.expect.end()) {
        ASSERT_TRUE(step.has_value());
        EXPECT_EQ(std::to_string(*step), expected->second);
      }
      continue;
    }
    const Fact* found = nullptr;
    for (const Fact& fact : stream.facts()) {
      if (fact.pattern == example.pattern && found == nullptr) found = &fact;
    }
    EXPECT_NE(found, nullptr);
    if (found == nullptr) continue;
    for (const auto& [name, text] : example.expect) {
      const std::optional<Field> which = field(name);
      ASSERT_TRUE(which.has_value()) << name;
      EXPECT_EQ(describe(*found, *which), text) << name;
    }
  }
}

TEST(Grammar, NoCounterexampleIsFoundInTheStream) {
  for (const Grammar::Example& example : test_grammar().examples()) {
    if (example.matches) continue;
    SCOPED_TRACE(example.pattern + ": " + example.line);
    if (example.preface) {
      Matcher matcher(test_grammar().tables());
      const std::vector<std::string> said = prefaces_in(&matcher, example.line);
      EXPECT_EQ(std::find(said.begin(), said.end(), example.pattern), said.end());
      continue;
    }
    Stream stream(test_grammar());
    stream.feed(example.line + "\n");
    for (const Fact& fact : stream.facts()) EXPECT_NE(fact.pattern, example.pattern);
    if (example.pattern == "checkpoint.saved") {
      EXPECT_FALSE(stream.progress().last_checkpoint.has_value());
    }
    if (example.pattern == "checkpoint.resumed") {
      EXPECT_FALSE(stream.progress().resumed_from.has_value());
    }
  }
}

TEST(Grammar, TwoMessagesRunTogetherAreTwoFacts) {
  const std::vector<Fact> facts = facts_of(
      "srun: error: nid001306: task 5: Killedsrun: error: Node failure on nid001306srun: error: "
      "nid001304: tasks 0-3: Terminated");
  ASSERT_EQ(facts.size(), 3U);
  EXPECT_EQ(facts[0].pattern, "srun.task_killed");
  EXPECT_EQ(facts[0].ranks, std::vector<int>{5});
  EXPECT_EQ(facts[1].pattern, "srun.node_failure");
  EXPECT_EQ(facts[1].host, "nid001306");
  EXPECT_EQ(facts[2].pattern, "srun.task_terminated");
  EXPECT_EQ(facts[2].host, "nid001304");
}

TEST(Grammar, OneThingSaidTwiceInALineIsOneFact) {
  const std::vector<Fact> facts = facts_of(
      "bind to [::]:1 (Address already in use). bind to 0.0.0.0:1 (Address already in use)");
  EXPECT_EQ(facts.size(), 1U);
}

TEST(Grammar, ANodeListOfAFailureIsOneFactForEachNode) {
  const std::vector<Fact> facts = facts_of("srun: error: Node failure on nid[001306-001307],x3");
  ASSERT_EQ(facts.size(), 3U);
  EXPECT_EQ(facts[0].host, "nid001306");
  EXPECT_EQ(facts[1].host, "nid001307");
  EXPECT_EQ(facts[2].host, "x3");
}

TEST(Grammar, AHostIsCapturedWithoutThePunctuationBehindIt) {
  EXPECT_EQ(facts_of("srun: error: Node failure on nid001306.").at(0).host, "nid001306");
  EXPECT_EQ(facts_of("srun: error: Node failure on nid001306, aborting").at(0).host, "nid001306");
}

TEST(Grammar, ALabelledLineKeepsWhoseItIs) {
  const std::vector<Fact> facts =
      facts_of("x1821c1s4b0n0.hsn.cm.site.example 12: [rank12]: MemoryError: std::bad_alloc");
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_EQ(facts[0].label, "x1821c1s4b0n0.hsn.cm.site.example");
  EXPECT_EQ(facts[0].host, "");
  EXPECT_EQ(facts[0].ranks, std::vector<int>{12});
  EXPECT_EQ(facts[0].text, "MemoryError: std::bad_alloc");
}

TEST(Grammar, ALabelSaysNothingAboutWhomALauncherMeans) {
  const std::vector<Fact> facts = facts_of(
      " 0: slurmstepd: error: *** STEP 58.0 ON h15c90 CANCELLED AT 2031-04-09T10:32:42 DUE TO TIME "
      "LIMIT ***");
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_EQ(facts[0].kind, Kind::walltime);
  EXPECT_EQ(facts[0].host, "");
  EXPECT_TRUE(facts[0].ranks.empty());
}

TEST(Grammar, MoreTellingPatternsWinOverGeneralOnesForTheSameText) {
  const std::vector<Fact> facts = facts_of("OSError: [Errno 28] No space left on device: '/x'");
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_EQ(facts[0].pattern, "filesystem.no_space");
  EXPECT_EQ(facts[0].reason, "'/x'");
}

TEST(Grammar, ARemedyIsFoundByItsPattern) {
  EXPECT_NE(test_grammar().remedy("filesystem.no_space").find("lfs df"), std::string_view::npos);
  EXPECT_EQ(test_grammar().remedy("no.such.pattern"), "");
}

TEST(Grammar, EveryIdIsUniqueAndNamesItsSpeaker) {
  for (const std::string& id : test_grammar().ids()) {
    EXPECT_NE(id.find('.'), std::string::npos) << id << " has no speaker";
  }
  const std::vector<std::string> ids = test_grammar().ids();
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size());
}

TEST(Grammar, ASiteFileAddsAPattern) {
  const SiteFile file(entry("kind = 'node_failure'\nrole = 'cause'\nevent = 'node_lost'"));
  const Result<Grammar> grammar = file.load();
  ASSERT_TRUE(grammar.ok()) << grammar.error().one_line();
  Stream stream(*grammar);
  stream.feed("mgmt: blade nid001306 died\n");
  ASSERT_EQ(stream.facts().size(), 1U);
  EXPECT_EQ(stream.facts()[0].host, "nid001306");
  EXPECT_EQ(stream.facts()[0].kind, Kind::node_failure);
}

TEST(Grammar, ASiteFileOfTheSameNameReplacesTheBuiltInOne) {
  const SiteFile file(entry(""), "slurm.toml");
  const Result<Grammar> grammar = file.load();
  ASSERT_TRUE(grammar.ok()) << grammar.error().one_line();
  const std::vector<std::string> ids = grammar->ids();
  EXPECT_EQ(std::count(ids.begin(), ids.end(), "srun.task_killed"), 0);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), "site.x"), 1);
}

TEST(Grammar, APatternForOtherMachinesIsLeftOut) {
  const SiteFile file(entry("machines = ['aurora']"));
  const auto has = [](const Result<Grammar>& grammar) {
    const std::vector<std::string> ids = grammar->ids();
    return std::count(ids.begin(), ids.end(), "site.x") == 1;
  };
  EXPECT_TRUE(has(file.load("aurora")));
  EXPECT_TRUE(has(file.load("")));
  EXPECT_FALSE(has(file.load("perlmutter")));
}

TEST(Grammar, ASiteFileAddsAProgressKey) {
  const SiteFile file("[[progress]]\nkeys = ['update']\n");
  const Result<Grammar> grammar = file.load();
  ASSERT_TRUE(grammar.ok()) << grammar.error().one_line();
  Stream stream(*grammar);
  stream.feed("update 7 | loss 2\n");
  EXPECT_EQ(stream.progress().last_step, 7);
}

TEST(Grammar, MistakesInSiteFilesAreOneLineWithFileAndLine) {
  EXPECT_NE(error_of("[[pattern]\nid = 1").find("site.toml:1"), std::string::npos);
  EXPECT_NE(error_of("machines = [}\n").find("site.toml:1"), std::string::npos);
  EXPECT_EQ(error_of(entry("kind = 'nod_failure'")),
            "unknown kind 'nod_failure': site.toml:6 (one of: success walltime cancelled preempted "
            "node_failure gpu_fault fabric_fault filesystem_fault oom app_error env_fault "
            "launcher_fault port_in_use collective_timeout hang unknown)");
  EXPECT_EQ(error_of(entry("trigers = ['x']")),
            "unknown key 'trigers': site.toml:6 (did you mean 'triggers'?)");
  EXPECT_EQ(error_of(entry("signal = 'nine'")), "signal is not a small whole number: site.toml:6");
  EXPECT_EQ(error_of(entry("machines = 3")), "machines is not a list of strings: site.toml:6");
  EXPECT_EQ(error_of(entry("not = ['blade nid7 died']")),
            "a match of 'blade nid7 died', which is under 'not': site.toml:1");
  EXPECT_EQ(error_of("[[pattern]]\nid = 'a.b'\n"), "regex is missing: site.toml:1");
  EXPECT_EQ(
      error_of("[[pattern]]\nid = 'a.b'\nregex = 'abcd'\nexample = 'abcd'\n"),
      "pattern 'a.b' has no triggers: site.toml:1 (list literals of which every matching line "
      "holds at least one)");
  EXPECT_EQ(error_of("[[pattern]]\nid = 'a.b'\nregex = 'abcd'\ntriggers='abcd'\n"),
            "pattern 'a.b' has no example: site.toml:1 (give a line that it must match)");
  EXPECT_EQ(
      error_of("[[pattern]]\nid = 'a.b'\nregex = 'abcd'\ntriggers='bcde'\nexample = 'abcd'\n"),
      "no trigger of 'a.b' is in its example 'abcd': site.toml:1 (a line without a trigger is "
      "never "
      "looked at)");
  EXPECT_EQ(error_of("[[pattern]]\nid = 'a.b'\nregex = 'abcd'\ntriggers='abc'\nexample = 'abcd'\n"),
            "trigger 'abc' is too short: site.toml:1 (at least 4 characters)");
  EXPECT_EQ(
      error_of("[[pattern]]\nid = 'a.b'\nregex = '(abcd'\ntriggers='abcd'\nexample = 'abcd'\n"),
      "bad regex: missing ): (abcd: site.toml:1 (RE2 syntax: no look-around, no back-references)");
  EXPECT_EQ(
      error_of("[[pattern]]\nid = 'a.b'\nregex = '(?P<hots>abcd)'\ntriggers='abcd'\nexample = "
               "'abcd'\n"),
      "unknown capture 'hots': site.toml:1 (did you mean 'host'?)");
  EXPECT_EQ(
      error_of("[[pattern]]\nid = 'a.b'\nregex = '(abcd)?'\ntriggers='abcd'\nexample='abcd'\n"),
      "regex matches an empty line: site.toml:1 (make it demand some text)");
  EXPECT_EQ(error_of(entry("") + entry("")),
            "pattern id 'site.x' is used twice: site.toml:7 (ids are unique over all files)");
  EXPECT_EQ(error_of("[[patern]]\nid = 'a.b'\n"),
            "unknown key 'patern': site.toml:1 (did you mean 'pattern'?)");
  EXPECT_EQ(error_of("[[label]]\nregex = 'x: '\n"), "a label's regex begins with ^: site.toml:1");
  EXPECT_EQ(error_of("[[progress]]\nkeys = ['it']\n"),
            "progress key 'it' is not one word of at least 4 characters: site.toml:1");
}

TEST(Grammar, AMissingPatternsDirectoryIsAnError) {
  const Result<Grammar> grammar = Grammar::load("/no/such/directory");
  ASSERT_FALSE(grammar.ok());
  EXPECT_EQ(grammar.error().one_line(),
            "cannot read patterns: No such file or directory: /no/such/directory (name a directory "
            "of *.toml files)");
}

}  // namespace
}  // namespace ezpz::evidence
