#include "train/app/tokenize.h"

#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "train/data/sentencepiece.h"
#include "train/data/tokenizer.h"

namespace ezpz::train {
namespace {

int told(const Error& error, int code) {
  log::error(error.one_line());
  return code;
}

}  // namespace

int tokenize_command(const std::vector<std::string>& words) {
  std::string name = "byte";
  FlagTable table("ezpz-train tokenize [flags] OUT.tok TEXT...",
                  "Writes the tokens of texts into one file that training maps into memory: made "
                  "once, used by every run. Each text is followed by the token that ends one.");
  table.add_string({"--tokenizer"}, "T",
                   "byte (a byte is a token), or a sentencepiece tokenizer.model. Default: byte.",
                   &name);
  if (table.wants_help(words)) {
    write_all(1, table.help());
    return 0;
  }
  const Result<std::vector<std::string>> rest = table.parse(words);
  if (!rest) return told(rest.error(), 2);
  if (rest->size() < 2) {
    return told({"an output and at least one text are needed", "ezpz-train tokenize",
                 "see ezpz-train tokenize --help"},
                2);
  }
  Result<std::unique_ptr<Tokenizer>> tokenizer =
      name == "byte" ? make_byte_tokenizer() : open_sentencepiece(name);
  if (!tokenizer) return told(tokenizer.error(), 1);
  const std::vector<std::string> texts(rest->begin() + 1, rest->end());
  const Result<TokenizeResult> made = tokenize_files(texts, **tokenizer, rest->front());
  if (!made) return told(made.error(), 1);
  write_all(1, std::to_string(made->tokens) + " tokens of " + std::to_string(made->files) +
                   " texts in " + rest->front() + "; vocabulary " +
                   std::to_string((*tokenizer)->vocab_size()) + "\n");
  return 0;
}

}  // namespace ezpz::train
