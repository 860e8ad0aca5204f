#pragma once

#include <string_view>

namespace ezpz::app {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace ezpz::app
