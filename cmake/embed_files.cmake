# Run by ezpz_embed: writes OUT, a C++ table of FILES as raw strings.
set(text "// Generated from ${FOLDER}/*.toml; edit those.\n#include \"base/embedded.h\"\n\nnamespace ezpz::embedded {\nstd::span<const File> ${FOLDER}() {\n  static constexpr File files[] = {\n")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} content)
  string(APPEND text "    {\"${name}\", R\"ezpz_toml(${content})ezpz_toml\"},\n")
endforeach()
string(APPEND text "  };\n  return files;\n}\n}  // namespace ezpz::embedded\n")
file(WRITE ${OUT} "${text}")
