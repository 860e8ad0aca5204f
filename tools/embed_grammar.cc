// Run by the build: embed_grammar OUT.cc FILE.toml ... parses the built-in patterns and writes
// their images (evidence/grammar_image.h) as C++. A mistake in one ends the build with file and
// line.
#include <cstdio>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "evidence/grammar_image.h"

namespace {

std::string as_literal(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i % 100 == 0) text += i == 0 ? "\"" : "\"\n    \"";
    const auto byte = static_cast<unsigned char>(bytes[i]);
    constexpr char kDigits[] = "01234567";
    text += {'\\', kDigits[byte >> 6U], kDigits[byte >> 3U & 7U], kDigits[byte & 7U]};
  }
  return text.empty() ? "\"\"" : text + "\"";
}

}  // namespace

int main(int argc, char** argv) {
  std::string source =
      "// Generated from patterns/*.toml; edit those.\n"
      "#include \"evidence/grammar_image.h\"\n\n"
      "namespace ezpz::evidence {\n"
      "std::string_view built_in_image(std::string_view name) {\n";
  for (int i = 2; i < argc; ++i) {
    const std::string name = std::filesystem::path(argv[i]).filename().string();
    const ezpz::Result<std::string> text = ezpz::read_file(argv[i], size_t{1} << 20);
    if (!text) {
      std::fprintf(stderr, "%s\n", text.error().one_line().c_str());
      return 1;
    }
    ezpz::Result<ezpz::evidence::GrammarFile> file =
        ezpz::evidence::parse_grammar_file(name, *text);
    if (!file) {
      std::fprintf(stderr, "%s\n", file.error().one_line().c_str());
      return 1;
    }
    const std::string image = ezpz::evidence::to_image(*std::move(file));
    source += "  if (name == \"" + name + "\") {\n    return {" + as_literal(image) + ", " +
              std::to_string(image.size()) + "};\n  }\n";
  }
  source += "  return {};\n}\n}  // namespace ezpz::evidence\n";
  std::FILE* const out = argc > 1 ? std::fopen(argv[1], "w") : nullptr;
  if (out == nullptr) return 1;
  const bool written = std::fwrite(source.data(), 1, source.size(), out) == source.size();
  return std::fclose(out) == 0 && written ? 0 : 1;
}
