// The few file operations the toy trainer needs. errno says why a false is false.
#pragma once

#include <string>
#include <string_view>

namespace toy {

bool read_all(const std::string& path, std::string* content);
bool write_fully(int fd, std::string_view bytes);
// Temp file, fsync, rename: there is always one whole file under the name.
bool replace_file(const std::string& path, std::string_view content);
void make_directories(const std::string& path);

}  // namespace toy
