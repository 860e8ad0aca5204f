// `ezpz report DIR`: what happened in a job, from its journal.
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/json.h"
#include "failover/report.h"
#include "journal/reader.h"

namespace ezpz::app {

int run_report(const Words& words) {
  bool as_json = false;
  FlagTable table("ezpz report [--json] DIR",
                  "Tells what happened in a job: what died, on what evidence, who was swapped, how "
                  "many steps were redone. DIR is the job's directory, logs/failover-<jobid>.");
  table.add_switch({"--json"}, "For programs.", &as_json);
  if (table.wants_help(words)) {
    write_all(1, table.help());
    return 0;
  }
  const Result<std::vector<std::string>> rest = table.parse(words);
  if (!rest) return usage_error(rest.error().one_line());
  if (rest->size() != 1) return usage_error("give one job directory (ezpz report DIR)");
  const Result<journal::Reading> reading = journal::read_journal(rest->at(0) + "/journal.jsonl");
  if (!reading) return usage_error(reading.error().one_line());
  const failover::Story story = failover::read_story(*reading);
  std::string text = as_json ? dump_pretty(failover::to_json(story)) + "\n" : failover::tell(story);
  if (!as_json && reading->unreadable_lines > 0) {
    text += std::to_string(reading->unreadable_lines) + " lines of the journal could not be read\n";
  }
  write_all(1, text);
  return 0;
}

}  // namespace ezpz::app
