// A built-in patterns file as it is after parsing, in a form that is read in no time: TOML takes
// longer to parse than a rank to start. tools/embed_grammar.cc writes the images when ezpz is
// built.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "evidence/grammar_file.h"

namespace ezpz::evidence {

std::string to_image(GrammarFile file);
// Nothing for what is no whole image.
std::optional<GrammarFile> from_image(std::string_view image);

// Of the embedded file of that name; empty for another.
std::string_view built_in_image(std::string_view name);

}  // namespace ezpz::evidence
