#include "train/loop/fault.h"

#include <errno.h>
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace ezpz::train {
namespace {

struct Named {
  const char* name;
  Fault::Kind kind;
};
constexpr std::array<Named, 4> kKinds{{{"kill", Fault::Kind::kill},
                                       {"hang", Fault::Kind::hang},
                                       {"exit", Fault::Kind::exit},
                                       {"enospc", Fault::Kind::enospc}}};

const char* name_of(Fault::Kind kind) {
  for (const Named& named : kKinds) {
    if (named.kind == kind) return named.name;
  }
  return "";
}

Error bad(std::string_view what, std::string_view text) {
  return {
      std::string(what) + ": " + printable(text, 60), "--fault",
      "KIND@STEP[:rank=R][:attempt=A|every][:host=H][:code=C][:times=N], KIND being kill, hang, "
      "exit or enospc"};
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Status set_detail(Fault* fault, std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos) return bad("not NAME=VALUE", word);
  const std::string_view name = word.substr(0, equals);
  const std::string_view value = word.substr(equals + 1);
  if (name == "host") {
    if (value.empty()) return bad("no host", word);
    fault->host = std::string(value);
    return success();
  }
  if (name == "attempt" && value == "every") {
    fault->attempt.reset();
    return success();
  }
  const std::optional<long> number = parse_int(value);
  if (!number || *number < 0 || *number > 1'000'000) return bad("not a number", word);
  const int n = static_cast<int>(*number);
  if (name == "rank") {
    fault->rank = n;
  } else if (name == "attempt") {
    fault->attempt = n;
  } else if (name == "code" && n <= 255) {
    fault->code = n;
  } else if (name == "times") {
    fault->times = n;
  } else {
    return bad("unknown, or out of range", word);
  }
  return success();
}

Result<Fault> parse_fault(std::string_view text) {
  const std::vector<std::string_view> words = split(text, ':');
  const size_t at = words[0].find('@');
  if (at == std::string_view::npos) return bad("no @", text);
  Fault fault;
  bool known = false;
  for (const Named& named : kKinds) {
    if (words[0].substr(0, at) != named.name) continue;
    fault.kind = named.kind;
    known = true;
  }
  if (!known) return bad("no such fault", words[0]);
  const std::optional<long> step = parse_int(words[0].substr(at + 1));
  if (!step || *step < 1) return bad("not a step", words[0]);
  fault.step = *step;
  for (size_t i = 1; i < words.size(); ++i) {
    const Status set = set_detail(&fault, words[i]);
    if (!set) return set.error();
  }
  return fault;
}

}  // namespace

Result<std::vector<Fault>> parse_faults(std::string_view text) {
  std::vector<Fault> faults;
  if (text.empty()) return faults;
  for (const std::string_view one : split(text, ',')) {
    Result<Fault> fault = parse_fault(one);
    if (!fault) return fault.error();
    faults.push_back(std::move(*fault));
  }
  return faults;
}

Faults::Faults(std::vector<Fault> faults, const Place& place, int attempt, std::string receipts_dir)
    : faults_(std::move(faults)),
      place_(place),
      attempt_(attempt),
      receipts_dir_(std::move(receipts_dir)) {}

bool Faults::is_meant(const Fault& fault) const {
  return (!fault.rank || *fault.rank == place_.rank) &&
         (!fault.attempt || *fault.attempt == attempt_) &&
         (fault.host.empty() || fault.host == place_.host);
}

void Faults::leave_receipt(const Fault& fault, long step) const {
  const std::string what = fmt::format("FAULT-{}-step-{}-rank-{}-attempt-{}", name_of(fault.kind),
                                       step, place_.rank, attempt_);
  write_all(2, fmt::format("ezpz-train: {} pid={} host={}\n", what, getpid(),
                           printable(place_.host, 80)));
  if (receipts_dir_.empty()) return;
  // The fault happens whether or not its receipt can be written.
  (void)make_directories(receipts_dir_);
  (void)write_file_atomically(receipts_dir_ + "/" + what, fmt::format("pid={} host={}\n", getpid(),
                                                                      printable(place_.host, 80)));
}

void Faults::before_step(long step) const {
  for (const Fault& fault : faults_) {
    if (fault.step != step || fault.kind == Fault::Kind::enospc || !is_meant(fault)) continue;
    leave_receipt(fault, step);
    if (fault.kind == Fault::Kind::kill) kill(getpid(), SIGKILL);
    if (fault.kind == Fault::Kind::exit) _exit(fault.code);
    for (;;) pause();
  }
}

int Faults::MaybeFull::write(int fd, const void* data, size_t bytes) {
  return full ? ENOSPC : Disk::write(fd, data, bytes);
}

void Faults::before_save(long step) {
  disk_.full = false;
  for (Fault& fault : faults_) {
    if (fault.kind != Fault::Kind::enospc || step < fault.step || fault.times == 0 ||
        !is_meant(fault)) {
      continue;
    }
    --fault.times;
    leave_receipt(fault, step);
    disk_.full = true;
  }
}

}  // namespace ezpz::train
