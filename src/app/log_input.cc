#include "app/log_input.h"

#include <sys/stat.h>

#include "postmortem/log_file.h"

namespace ezpz::app {

Status read_log(const std::string& path, const std::function<void(std::string_view)>& feed) {
  const char* const hint = "name one log file, or - for standard input";
  struct stat status {};
  if (path != "-" && stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    return Error{"cannot read the log: it is a directory", path, hint};
  }
  Result<postmortem::LogFile> file = postmortem::LogFile::open(path);
  Status read = file ? file->read_to_end(feed) : Status(file.error());
  if (read) return read;
  Error error = read.error();
  error.hint = hint;
  return error;
}

}  // namespace ezpz::app
