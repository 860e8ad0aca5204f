// run_info.json of a launch: kept beside its journal, from what the journal is told. Written anew,
// as a whole and through the scribe, whenever more is known: at the start of each attempt, when it
// has ended, at a swap, at the end. Whoever kills ezpz leaves what had been known by then.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "app/launch_options.h"
#include "app/launch_setup.h"
#include "app/site_view.h"
#include "base/json.h"
#include "base/loop.h"
#include "bench/run_info.h"
#include "journal/scribe.h"

namespace ezpz::app {

// What is known before anything runs.
bench::RunInfo run_info_of(const LaunchOptions&, const SiteView&, const LaunchSetup&);

class RunRecord {
 public:
  // loop and scribe must outlive it.
  RunRecord(Loop& loop, journal::Scribe& disk, const std::string& job_dir, bench::RunInfo run);

  // An event of the journal.
  void hear(std::string_view name, const Json& context);

  [[nodiscard]] const bench::RunInfo& run() const { return run_; }

 private:
  void begin_attempt(const Json& context);
  void hear_of_network(const Json& context);
  void ask_for_commit();
  void write();

  Loop& loop_;
  journal::Scribe& disk_;
  std::string path_;
  bench::RunInfo run_;
  int ranks_asked_for_ = 0;
  bool commit_asked_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // for an answer that comes after us
};

}  // namespace ezpz::app
