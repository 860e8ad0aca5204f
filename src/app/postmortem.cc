// `ezpz postmortem LOG ...`: what ended it and who is to blame, from a log alone or a job's
// directory.
#include <fmt/core.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "app/command.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/json.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/text.h"
#include "evidence/grammar.h"
#include "evidence/stream.h"
#include "postmortem/log_file.h"
#include "postmortem/replay.h"
#include "postmortem/tell.h"
#include "site/hostfile.h"
#include "site/machine.h"

namespace ezpz::app {
namespace {

struct Options {
  bool as_json = false;
  bool follow = false;
  std::optional<long> rc;
  std::string machine;
  std::string hosts_file;
  std::string machines_dir;
  std::string patterns_dir;
};

FlagTable flags_of(Options* options) {
  FlagTable table(
      "ezpz postmortem [flags] LOG ...",
      "Says what ended a job, which node is to blame if any, on which lines, and what to "
      "do. LOG is a log (- for standard input), or a job's directory "
      "(logs/failover-<jobid>): then every attempt is judged anew, with what the "
      "journal knows, and compared with the record. Several logs give a table.");
  table.add_switch({"--json"}, "For programs.", &options->as_json);
  table.add_int({"--rc"}, "N",
                "What the launcher returned. Without it an end without a word of its "
                "cause stays unknown, a clean one too.",
                0, &options->rc);
  table.add_string({"--machine"}, "NAME",
                   "Whose names and messages these are. Default: the names of all known machines.",
                   &options->machine);
  table.add_string({"--hosts"}, "FILE",
                   "The hosts the job ran on, a line each. Only these can be to blame. Default: "
                   "those that the log names.",
                   &options->hosts_file);
  table.add_switch({"-f", "--follow"},
                   "Goes on as the log grows: tells causes as they come and the verdict when it "
                   "changes, until Ctrl-C.",
                   &options->follow);
  table.section("Data");
  table.add_string({"--patterns-dir"}, "DIR", "More message patterns (docs/patterns.md).",
                   &options->patterns_dir);
  table.add_string({"--machines-dir"}, "DIR", "More machine tables.", &options->machines_dir);
  table.epilogue(
      "Exit code: 0 when there is a verdict (unknown is one), 1 when a job's directory is judged "
      "otherwise\nthan it was recorded, or a log could not be read to its end.");
  return table;
}

// What the questions need besides the logs.
struct Desk {
  std::vector<site::Machine> machines;
  evidence::Grammar grammar;
  postmortem::Circumstances known;

  [[nodiscard]] NodeNaming naming_of(const std::string& machine) const {
    const site::Machine* found = site::find_machine(machines, machine);
    return found != nullptr ? found->naming : site::naming_of_all(machines);
  }
};

Result<Desk> prepare(const Options& options) {
  Result<std::vector<site::Machine>> machines = site::load_machines(options.machines_dir);
  if (!machines) return machines.error();
  NodeNaming naming = site::naming_of_all(*machines);
  verdict::NetworkWish network;
  if (!options.machine.empty()) {
    const Result<site::Detection> named = site::named_machine(*machines, options.machine);
    if (!named) return named.error();
    naming = named->machine.naming;
    network = {named->machine.network, false, named->machine.network_remedy,
               named->machine.network_price};
  }
  Result<evidence::Grammar> grammar =
      evidence::Grammar::load(options.patterns_dir, options.machine);
  if (!grammar) return grammar.error();
  postmortem::Circumstances known;
  known.naming = naming;
  known.network = network;
  if (options.rc) known.rc = static_cast<int>(*options.rc);
  if (!options.hosts_file.empty()) {
    Result<site::Hostfile> hosts = site::read_hostfile(options.hosts_file, naming);
    if (!hosts) return hosts.error();
    known.active = hosts->hosts;
  }
  return Desk{*std::move(machines), *std::move(grammar), std::move(known)};
}

Result<postmortem::Autopsy> examine_log(const std::string& path, const Desk& desk) {
  Result<postmortem::LogFile> log = postmortem::LogFile::open(path);
  if (!log) return log.error();
  evidence::Stream stream(desk.grammar);
  Status read = log->read_to_end([&stream](std::string_view bytes) { stream.feed(bytes); });
  if (!read) log::warning(read.error().one_line());
  stream.finish();
  return postmortem::examine(postmortem::record_of(stream, desk.known), desk.known.naming,
                             desk.grammar);
}

int examine_job(const std::string& path, const Desk& desk, bool as_json) {
  const Result<postmortem::Replay> replay = postmortem::replay(
      path, desk.grammar, [&desk](const std::string& machine) { return desk.naming_of(machine); });
  if (!replay) return usage_error(replay.error().one_line());
  const Json json = postmortem::to_json(*replay);
  write_all(1, as_json ? dump_pretty(json) + "\n" : postmortem::tell(*replay));
  return json.at("agrees").get<bool>() ? 0 : 1;
}

// Tells what comes as it comes.
class Follower {
 public:
  Follower(postmortem::LogFile log, const Desk& desk)
      : log_(std::move(log)), desk_(desk), stream_(desk.grammar) {
    stream_.on_fact([this](const Fact& fact) {
      news_ = true;
      if (fact.role != Role::cause) return;
      write_all(1, fmt::format("line {}: {}\n", fact.line, printable(fact.text)));
    });
  }

  int run() {
    bool stop = false;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      loop_.on_signal(signal, [&stop] { stop = true; });
    }
    look();
    loop_.run_until([&stop] { return stop; });
    stream_.finish();
    write_all(1, "\n" + postmortem::tell(autopsy()));
    return 0;
  }

 private:
  // Network file systems tell nobody that a file has grown: it is looked at.
  static constexpr double kLook_s = 0.2;

  [[nodiscard]] postmortem::Autopsy autopsy() const {
    return postmortem::examine(postmortem::record_of(stream_, desk_.known), desk_.known.naming,
                               desk_.grammar);
  }

  void look() {
    if (!said_cut_ && log_.was_cut()) {
      said_cut_ = true;
      log::warning("the log was cut: what it held before is still counted");
    }
    if (Status read = log_.read_to_end([this](std::string_view bytes) { stream_.feed(bytes); });
        !read && !std::exchange(said_unreadable_, true)) {
      log::warning(read.error().one_line());
    }
    if (std::exchange(news_, false)) {
      const std::string summary = autopsy().verdict.summary;
      if (summary != said_) write_all(1, "so far: " + printable_lines(summary) + "\n");
      said_ = summary;
    }
    loop_.after(kLook_s, [this] { look(); });
  }

  postmortem::LogFile log_;
  const Desk& desk_;
  evidence::Stream stream_;
  Loop loop_;
  bool news_ = false;
  bool said_cut_ = false;
  bool said_unreadable_ = false;
  std::string said_;
};

int examine_several(const Words& logs, const Desk& desk, bool as_json) {
  std::vector<postmortem::Named> judged;
  int code = 0;
  for (const std::string& path : logs) {
    Result<postmortem::Autopsy> autopsy = examine_log(path, desk);
    if (!autopsy) {
      log::error(autopsy.error().one_line());
      code = 1;
      continue;
    }
    judged.push_back({path, *std::move(autopsy)});
  }
  if (!as_json) {
    write_all(1, postmortem::table(judged));
    return code;
  }
  Json all = Json::array();
  for (const postmortem::Named& log : judged) {
    Json json = {{"log", log.log}};
    json.update(postmortem::to_json(log.autopsy));
    all.push_back(std::move(json));
  }
  write_all(1, dump_pretty({{"logs", all}}) + "\n");
  return code;
}

}  // namespace

int run_postmortem(const Words& words) {
  Options options;
  const FlagTable table = flags_of(&options);
  if (table.wants_help(words)) {
    write_all(1, table.help());
    return 0;
  }
  Result<std::vector<std::string>> logs = table.parse(words);
  if (!logs) return usage_error(logs.error().one_line());
  if (logs->empty()) return usage_error("give a log, or a job's directory (ezpz postmortem LOG)");
  Result<Desk> desk = prepare(options);
  if (!desk) return usage_error(desk.error().one_line());
  if (logs->size() > 1) {
    if (options.follow) return usage_error("--follow takes one log");
    return examine_several(*logs, *desk, options.as_json);
  }
  const std::string& path = logs->front();
  if (postmortem::is_job_dir(path)) {
    if (options.follow) return usage_error("--follow takes a log, not a directory: " + path);
    return examine_job(path, *desk, options.as_json);
  }
  if (options.follow) {
    if (options.as_json) return usage_error("--follow and --json do not go together");
    Result<postmortem::LogFile> log = postmortem::LogFile::open(path);
    if (!log) return usage_error(log.error().one_line());
    return Follower(*std::move(log), *desk).run();
  }
  const Result<postmortem::Autopsy> autopsy = examine_log(path, *desk);
  if (!autopsy) return usage_error(autopsy.error().one_line());
  write_all(1, options.as_json ? dump_pretty(postmortem::to_json(*autopsy)) + "\n"
                               : postmortem::tell(*autopsy));
  return 0;
}

}  // namespace ezpz::app
