// The built-in grammar, loaded once for all tests.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "evidence/grammar.h"

namespace ezpz::evidence {

inline const Grammar& test_grammar() {
  static const Grammar grammar = [] {
    Result<Grammar> loaded = Grammar::load();
    if (!loaded) {
      std::fprintf(stderr, "%s\n", loaded.error().one_line().c_str());
      std::abort();
    }
    return *std::move(loaded);
  }();
  return grammar;
}

}  // namespace ezpz::evidence
