// Faults that a rank does to itself when it is told to, so that what watches it can be tested with
// the real workload. Readable as C++17.
//
//   KIND@STEP[:rank=R][:attempt=A|every][:host=H][:code=C][:times=N], several with commas
//
//   kill    SIGKILL before the step's first collective    exit    exit code C (1) there
//   hang    stops there, silently, for ever               enospc  the saves from that step on fail
//                                                                 with ENOSPC, N times (1)
//
// Without a rank all do it; without an attempt only the first attempt does (EZPZ_ATTEMPT), because
// the run after it comes to the same step again.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/checkpoint/disk.h"
#include "train/loop/place.h"

namespace ezpz::train {

struct Fault {
  enum class Kind { kill, hang, exit, enospc } kind = Kind::kill;
  long step = 0;
  std::optional<int> rank;
  std::optional<int> attempt = 1;  // nothing: every
  std::string host;                // empty: any
  int code = 1;
  int times = 1;
};

Result<std::vector<Fault>> parse_faults(std::string_view text);

// What a fault leaves before it acts: a line on stderr, and a file FAULT-... in the folder, if one
// is given, so that a test can tell "survived" from "never happened".
class Faults {
 public:
  Faults(std::vector<Fault> faults, const Place& place, int attempt, std::string receipts_dir);
  // Before the step's first collective. May not return.
  void before_step(long step) const;
  // The disk to save with, and what it will do until the next call.
  Disk* disk() { return &disk_; }
  void before_save(long step);

 private:
  [[nodiscard]] bool is_meant(const Fault&) const;
  void leave_receipt(const Fault&, long step) const;

  class MaybeFull : public Disk {
   public:
    std::atomic<bool> full = false;
    int write(int fd, const void* data, size_t bytes) override;
  };
  std::vector<Fault> faults_;
  Place place_;
  int attempt_;
  std::string receipts_dir_;
  MaybeFull disk_;
};

}  // namespace ezpz::train
