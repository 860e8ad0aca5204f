// One file over HTTP(S), by a curl process.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace ezpz::train {

// To `path`, whole or not at all, in at most at_most_s; gives up when nothing came for 30 s, or
// when stop() is true. curl: its path, from find_program("curl").
Status fetch(const std::string& curl, const std::string& url, const std::string& path,
             double at_most_s, const std::function<bool()>& stop);

}  // namespace ezpz::train
