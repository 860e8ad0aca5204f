#include "workload/receipts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cstdio>

#include "workload/files.h"
#include "workload/waiting.h"

namespace toy {
namespace {

std::string number(const char* name, long long value) {
  return std::string("\"") + name + "\":" + std::to_string(value);
}

std::string text(const char* name, const std::string& value) {
  return std::string("\"") + name + "\":" + json_string(value);
}

// The kernel's start time of this process, in ticks after boot: with the pid, its identity.
long long start_ticks() {
  std::string stat;
  if (!read_all("/proc/self/stat", &stat)) return -1;
  // Field 22; the second field is the command in parentheses and may hold anything.
  size_t at = stat.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
  return at == std::string::npos ? -1 : atoll(stat.c_str() + at);
}

}  // namespace

std::string json_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) {
      char escaped[8];
      snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned char>(c));
      quoted += escaped;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

Receipts::Receipts(const std::string& dir, const Identity& me) : me_(me) {
  if (dir.empty()) return;
  make_directories(dir);
  const std::string path =
      dir + "/attempt-" + std::to_string(me.attempt) + ".rank-" + std::to_string(me.rank);
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) {
    fprintf(stderr, "toy_train: cannot write receipts: %s: %s\n", path.c_str(), strerror(errno));
    exit(2);
  }
}

void Receipts::start() {
  const char* id = getenv("EZPZ_ATTEMPT_ID");
  add("start", number("attempt", me_.attempt) + "," + number("rank", me_.rank) + "," +
                   number("local_rank", me_.local_rank) + "," + number("node_rank", me_.node_rank) +
                   "," + number("world_size", me_.world_size) + "," + text("host", me_.host) + "," +
                   text("hostname", me_.hostname) + "," + number("pid", getpid()) + "," +
                   number("sid", getsid(0)) + "," + number("start_ticks", start_ticks()) + "," +
                   text("master_addr", me_.master_addr) + "," +
                   number("master_port", me_.master_port) + "," +
                   text("attempt_id", id != nullptr ? id : ""));
}

void Receipts::add(const std::string& event, const std::string& more) {
  if (fd_ < 0) return;
  char time[64];
  snprintf(time, sizeof time, "%.3f", wall_s());
  std::string line = "{\"event\":" + json_string(event) + ",\"time\":" + time;
  if (!more.empty()) line += "," + more;
  line += "}\n";
  write_fully(fd_, line);
}

}  // namespace toy
