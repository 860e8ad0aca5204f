# Run by ezpz_embed: writes OUT, a C++ table of FILES as raw strings. Their length is in the literal
# (sv): counting it takes clang more steps than it allows a constant expression.
set(text "// Generated from ${FOLDER}/*.toml; edit those.\n#include \"base/embedded.h\"\n\nnamespace ezpz::embedded {\nusing namespace std::string_view_literals;\n\nstd::span<const File> ${FOLDER}() {\n  static constexpr File files[] = {\n")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} content)
  string(APPEND text "    {\"${name}\"sv, R\"ezpz_toml(${content})ezpz_toml\"sv},\n")
endforeach()
string(APPEND text "  };\n  return files;\n}\n}  // namespace ezpz::embedded\n")
file(WRITE ${OUT} "${text}")
