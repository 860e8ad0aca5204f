// A log read once, front to back, in constant memory.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"

namespace ezpz::postmortem {

class LogFile {
 public:
  using Sink = std::function<void(std::string_view)>;

  // "-" is standard input. A directory, or a file that cannot be opened, is an Error.
  static Result<LogFile> open(const std::string& path);

  // Gives the sink all bytes up to the present end; callable again when the file has grown.
  Status read_to_end(const Sink& sink);

  // Was the file cut shorter than what has been read ("tail -f" of a log that began anew)?
  [[nodiscard]] bool was_cut() const;

 private:
  LogFile(std::string path, Fd owned, int fd);

  std::string path_;
  Fd owned_;  // empty for standard input
  int fd_;
  int64_t read_ = 0;
  std::string buffer_;
};

}  // namespace ezpz::postmortem
