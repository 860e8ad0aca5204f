// Who speaks against a host. Several lines of one speaker are one witness: srun reports one broken
// connection twice, in two wordings.
#pragma once

#include <set>
#include <string>

#include "verdict/case_file.h"

namespace ezpz::verdict {

// A pattern's id up to its first dot, or where the fact came from.
std::string speaker_of(const Fact&);

// The speakers (a pattern's id up to its first dot, or where a fact came from) of the facts that
// speak of this active host as a cause and are no echo of the teardown.
std::set<std::string> witnesses_against(const CaseFile&, const std::string& host);

// The one of these hosts that more than one independent witness names, while each of the others has
// no more than one; empty when there is none.
std::string named_by_several(const CaseFile&, const std::set<std::string>& hosts);

}  // namespace ezpz::verdict
