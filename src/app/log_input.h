// A log as an argument: a file, or "-" for standard input. Read in pieces, whatever its size.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ezpz::app {

Status read_log(const std::string& path, const std::function<void(std::string_view)>& feed);

}  // namespace ezpz::app
