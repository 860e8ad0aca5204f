// Output that is hard to digest.
#pragma once

#include <cstdint>
#include <string>

namespace toy {

// All of it on stdout at once: what is printed is in the pipe when the call returns.
void print(const std::string& text);

// "step=N loss=L", or the same with colour escapes inside the words, behind bytes that are no text.
std::string step_line(int64_t step, double loss, bool junk);

// megabytes MiB of lines of 128 bytes: "burst 00000000 xxx...", numbered from 0.
void print_burst(int64_t megabytes);

}  // namespace toy
