#include "bench/csv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

namespace ezpz::bench {
namespace {

constexpr double kPatience_s = 10;  // for others who append, each of which takes a moment
constexpr size_t kHeader_bytes = 64U << 10U;

Error system_error(const std::string& what, const std::string& where, std::string hint = "") {
  return Error{what + ": " + strerrordesc_np(errno), where, std::move(hint)};
}

Status lock(int fd, const std::string& path, std::string* note) {
  const double until_s = monotonic_s() + kPatience_s;
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) {
      // Some parallel file systems are mounted without locks. The write is still one.
      *note = path + " cannot be locked (" + strerrordesc_np(errno) +
              "): do not append to it from two places at once";
      return success();
    }
    if (monotonic_s() > until_s) {
      return Error{"somebody else has held the lock for 10 s", path, "look who: lsof, fuser"};
    }
    constexpr timespec moment{0, 5'000'000};
    nanosleep(&moment, nullptr);
  }
  return success();
}

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? std::string() : path.substr(0, slash);
}

}  // namespace

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string field = "\"";
  for (const char c : text) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + '"';
}

std::string csv_row(const std::vector<std::string>& fields) {
  std::vector<std::string> quoted;
  quoted.reserve(fields.size());
  for (const std::string& field : fields) quoted.push_back(csv_field(field));
  return join(quoted, ",");
}

bool looks_like_formula(std::string_view field) {
  return !field.empty() && std::string_view("=+-@\t\r").find(field[0]) != std::string_view::npos;
}

Status append_csv_row(const std::string& path, const std::string& header, const std::string& row,
                      std::string* note) {
  if (const std::string parent = parent_of(path); !parent.empty()) {
    if (Status made = make_directories(parent); !made) return made.error();
  }
  const Fd fd(open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644));
  if (!fd) return system_error("cannot append", path);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return system_error("cannot look at", path);
  if (!S_ISREG(info.st_mode)) return Error{"not a file that rows can be appended to", path, ""};
  if (Status locked = lock(fd.get(), path, note); !locked) return locked.error();
  if (fstat(fd.get(), &info) != 0) return system_error("cannot look at", path);

  std::string bytes;
  std::string end_of_line = "\n";
  if (info.st_size == 0) {
    bytes = header + end_of_line;
  } else {
    std::string begin(kHeader_bytes, '\0');
    const ssize_t n = pread(fd.get(), begin.data(), begin.size(), 0);
    if (n < 0) return system_error("cannot read", path);
    begin.resize(static_cast<size_t>(n));
    begin.resize(std::min(begin.size(), begin.find('\n')));
    // A file that went through a spreadsheet ends its lines that spreadsheet's way.
    if (!begin.empty() && begin.back() == '\r') {
      begin.pop_back();
      end_of_line = "\r\n";
    }
    if (begin != header) {
      return Error{"its header is another one: " + printable(begin, 300), path,
                   "the row's columns are " + header};
    }
    char last = '\n';
    if (pread(fd.get(), &last, 1, info.st_size - 1) != 1) return system_error("cannot read", path);
    if (last != '\n') bytes = end_of_line;
  }
  bytes += row + end_of_line;
  const ssize_t written = write(fd.get(), bytes.data(), bytes.size());
  if (written == static_cast<ssize_t>(bytes.size())) return success();
  if (written < 0) return system_error("cannot append", path);
  // A part of a row is worse than none.
  errno = ENOSPC;
  Error error = system_error("cannot append the whole row", path);
  if (ftruncate(fd.get(), info.st_size) != 0) error.hint = "the file now ends with a part of it";
  return error;
}

}  // namespace ezpz::bench
