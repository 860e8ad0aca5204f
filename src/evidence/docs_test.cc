// docs/patterns.md tells the truth: its tables load, and it names whatever a file may hold.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/text.h"
#include "evidence/fields.h"
#include "evidence/grammar.h"
#include "evidence/grammar_file.h"

namespace ezpz::evidence {
namespace {

std::string docs() {
  // Tests run in the checkout's root.
  Result<std::string> text = read_file("docs/patterns.md");
  EXPECT_TRUE(text.ok()) << "run this in the root of the checkout";
  return text.ok() ? *std::move(text) : "";
}

std::vector<std::string> toml_blocks(const std::string& text) {
  std::vector<std::string> blocks;
  bool inside = false;
  for (const std::string& line : split_lines(text)) {
    if (!inside && line == "```toml") {
      inside = true;
      blocks.emplace_back();
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      blocks.back() += line + "\n";
    }
  }
  return blocks;
}

// What the parser says it would have accepted instead of a key that it does not know.
std::vector<std::string> known_keys(std::string text) {
  for (const char* addition : {"", "id = 'a'\n", "regex = '^b'\n"}) {
    text += addition;
    const Result<GrammarFile> parsed = parse_grammar_file("test.toml", text);
    if (parsed.ok()) return {};
    const std::string& hint = parsed.error().hint;
    if (hint.starts_with("known: ")) return split(hint.substr(7), ' ');
  }
  ADD_FAILURE() << "the parser does not list the keys of " << text;
  return {};
}

std::vector<std::string> known_words(const std::string& key) {
  const Result<GrammarFile> parsed = parse_grammar_file(
      "test.toml", "[[pattern]]\nid = 'a'\nregex = 'b'\n" + key + " = 'zzzzzzzz'\n");
  if (parsed.ok() || !parsed.error().hint.starts_with("one of: ")) return {};
  return split(parsed.error().hint.substr(8), ' ');
}

TEST(Docs, EveryTableInThemLoads) {
  const std::vector<std::string> blocks = toml_blocks(docs());
  ASSERT_GE(blocks.size(), 3U);
  for (const std::string& block : blocks) {
    const std::filesystem::path directory =
        std::filesystem::temp_directory_path() / ("ezpz_docs_test." + std::to_string(getpid()));
    std::filesystem::create_directories(directory);
    std::ofstream(directory / "site.toml") << block;
    const Result<Grammar> grammar = Grammar::load(directory.string());
    EXPECT_TRUE(grammar.ok()) << (grammar.ok() ? "" : grammar.error().one_line()) << "\n" << block;
    std::filesystem::remove_all(directory);
  }
}

TEST(Docs, TheyNameEveryKeyThatTheParserAccepts) {
  const std::string text = docs();
  const std::vector<std::string> top = known_keys("zzzzzzzz = 1\n");
  ASSERT_GE(top.size(), 9U);
  size_t tables = 0;
  for (const std::string& key : top) {
    const bool table = text.find("`[[" + key + "]]`") != std::string::npos ||
                       text.find("\n[[" + key + "]]\n") != std::string::npos;
    EXPECT_TRUE(table || text.find("`" + key + "`") != std::string::npos) << key;
    if (!table) continue;
    ++tables;
    for (const std::string& inner : known_keys("[[" + key + "]]\nzzzzzzzz = 1\n")) {
      EXPECT_NE(text.find("`" + inner + "`"), std::string::npos) << inner << " of " << key;
    }
  }
  EXPECT_GE(tables, 7U);
}

TEST(Docs, TheyNameEveryWordAndEveryCapture) {
  const std::string text = docs();
  for (const char* key : {"kind", "role", "event"}) {
    const std::vector<std::string> words = known_words(key);
    EXPECT_GE(words.size(), 3U) << key;
    for (const std::string& word : words) {
      EXPECT_NE(text.find("`" + word + "`"), std::string::npos) << word << " of " << key;
    }
  }
  for (const std::string& name : field_names()) {
    EXPECT_NE(text.find("`" + name + "`"), std::string::npos) << "capture " << name;
  }
}

}  // namespace
}  // namespace ezpz::evidence
