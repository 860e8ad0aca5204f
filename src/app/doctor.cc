// `ezpz doctor`: looks at the job, its site and its nodes before hours are spent on them, and says
// what is wrong, why, and what to do.
#include <fcntl.h>
#include <fmt/core.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "app/command.h"
#include "app/doctor_node.h"
#include "app/launch_setup.h"
#include "app/site_view.h"
#include "app/version.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/text.h"
#include "doctor/check_job.h"
#include "doctor/look_facts.h"
#include "doctor/look_folder.h"
#include "doctor/look_job.h"
#include "doctor/report.h"
#include "doctor/text_of_hosts.h"
#include "doctor/wire.h"
#include "probe/ask_nodes.h"
#include "site/ask.h"

namespace ezpz::app {
namespace {

constexpr double kFolder_s = 6;

struct DoctorOptions {
  bool as_json = false;
  bool strict = false;
  bool verbose = false;
  bool all_nodes = false;
  LaunchOptions launch;  // the flags that are those of `ezpz launch`
  std::string log_dir = "logs";
  std::string known_issues_dir;
  std::string python;
  double timeout_s = 40;
};

FlagTable doctor_flags(DoctorOptions& o) {
  FlagTable table(
      "ezpz doctor [flags] [-- CMD ...]",
      "Checks, before time is spent, whether a job can run here: the scheduler and the job, the "
      "hosts and spares, the launcher, the log directory, and this node. Each check says ok, "
      "warning, error or unknown, why, and what to do. A check that could not be made is unknown, "
      "never ok. On a login node it checks what it can; inside a job --all-nodes has every node "
      "look at itself. It changes nothing.");
  table.add_switch({"--all-nodes"},
                   "Look at every host of the job (or of --hostfile), through the launcher.",
                   &o.all_nodes);
  table.add_switch({"--json"}, "For programs.", &o.as_json);
  table.add_switch({"-v", "--verbose"}, "A line for each check that is ok, too.", &o.verbose);
  table.add_switch({"--strict"}, "Exit with 2 when there is a warning and no error.", &o.strict);
  table.add_seconds(
      {"--timeout"}, "S",
      "For the nodes' answers, all together. Default 40. A node that has not answered "
      "by then is unknown.",
      &o.timeout_s);
  table.section("What would be launched (as for ezpz launch)");
  LaunchOptions& l = o.launch;
  table.add_int({"-n", "-np", "--nproc"}, "N", "Ranks in all.", 1, &l.ranks);
  table.add_int({"-ppn", "--ppn", "--nproc-per-node"}, "N", "Ranks on each host.", 1,
                &l.ranks_per_node);
  table.add_int({"-nh", "--nhosts", "--nnodes"}, "N", "Hosts that run ranks; the rest are spares.",
                1, &l.hosts);
  table.add_string({"--spare-nodes"}, "auto|N", "Hosts to keep as spares.", &l.spare_nodes);
  table.add_string({"--hostfile"}, "FILE", "Hosts, one a line. Default: the job's own.",
                   &l.hostfile);
  table.add_list({"--exclude"}, "H,...", "Hosts never to use.", &l.exclude);
  table.add_choice({"--launcher"}, "How ranks would be started. Default: auto.",
                   {"auto", "srun", "pals", "hydra", "openmpi", "local"}, &l.launcher);
  table.add_string({"--machine"}, "NAME", "Take this machine's table instead of detecting one.",
                   &l.machine);
  table.add_string({"--machines-dir"}, "DIR", "Machine tables that replace or add to the built-in.",
                   &l.machines_dir);
  table.add_int({"--gpus-per-node"}, "N", "GPUs to ask the launcher for on each host.", 0,
                &l.gpus_per_node);
  table.add_string({"--log-dir"}, "DIR", "Where the record would be kept. Default: logs.",
                   &o.log_dir);
  table.add_string({"--known-issues-dir"}, "DIR",
                   "Known issues that replace or add to the built-in.", &o.known_issues_dir);
  table.add_string({"--python"}, "PATH",
                   "The interpreter whose torch is looked at. Default: CMD's, else python3.",
                   &o.python);
  table.epilogue(
      "Exit: 0; 1 when there is an error; with --strict 2 when there is a warning and no error;\n"
      "2 for bad usage.\n\n"
      "Examples\n"
      "  ezpz doctor\n"
      "  ezpz doctor --all-nodes --nhosts 30 --ppn 4 -- python3 train.py --compile\n"
      "  ezpz doctor --all-nodes --strict || exit     (first line of a batch script)");
  return table;
}

std::string absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path full = std::filesystem::absolute(path, error);
  std::string text = error ? path : full.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

std::string current_folder() {
  std::error_code error;
  return std::filesystem::current_path(error).string();
}

// A file of ours in a folder, for other nodes to look for.
class Mark {
 public:
  explicit Mark(const std::string& folder) : path_(folder + "/.ezpz-doctor-XXXXXX") {
    const Fd fd(mkostemp(path_.data(), O_CLOEXEC));
    if (!fd) path_.clear();
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// ---- the job and its site

// In a process of its own: the folder's file system may hang.
doctor::FolderSight look_at_log_dir(Loop& loop, const std::string& path) {
  DoctorNodeRequest request;
  request.folder = path;
  request.inner = true;
  const HelperResult result = run_helper(loop, doctor_node_argv(self_path(), request), kFolder_s);
  for (const std::string& payload : doctor::read_wire(result.out)) {
    if (auto sight = doctor::parse_folder(payload)) return std::move(*sight);
  }
  doctor::FolderSight sight;
  sight.path = sight.existing = path;
  sight.trouble = result.timed_out         ? fmt::format("no answer within {:.0f} s", kFolder_s)
                  : result.trouble.empty() ? "no answer"
                                           : result.trouble;
  return sight;
}

// The launcher alone, so that what is wrong with it is not taken for what is wrong with the plan.
std::optional<Error> find_launcher(const LaunchOptions& options, const SiteView& site,
                                   const launch::MpiSearch& search, doctor::LaunchSight& sight) {
  launch::LauncherWish wish;
  wish.asked = options.launcher;
  wish.job = site.job.in_job() ? site.job.scheduler : site::SchedulerKind::none;
  wish.suggestion = site.machine.machine.launcher;
  wish.has_hostfile = !options.hostfile.empty();
  wish.installed = [&search] { return launch::installed_mpi(search); };
  const Result<const launch::Launcher*> chosen = launch::choose_launcher(wish);
  if (!chosen) return chosen.error();
  sight.launcher = (*chosen)->name;
  if (sight.launcher == "srun" && find_program("srun").empty()) {
    return Error{"srun is not in PATH", "", "load SLURM's module, or add its folder to PATH"};
  }
  if ((*chosen)->programs.empty()) return std::nullopt;
  const Result<launch::MpiProgram> program = launch::find_mpi(**chosen, search);
  if (!program) return program.error();
  sight.program = program->path;
  return std::nullopt;
}

struct Looked {
  doctor::JobSight sight;
  std::optional<LaunchSetup> setup;
};

void look_at_launch(const DoctorOptions& options, const SiteView& site,
                    const launch::MpiSearch& search, Looked& looked) {
  doctor::LaunchSight& launch = looked.sight.launch;
  launch.asked = options.launch.launcher;
  launch.launcher_error = find_launcher(options.launch, site, search, launch);
  const NodeNaming& naming = site.machine.machine.naming;
  const auto& hostfile = looked.sight.hostfile;
  launch.pool = hostfile ? hostfile->hosts : make_nodes(site.job.hosts, naming);
  if (launch.launcher_error || (hostfile && hostfile->error)) return;
  LaunchOptions wanted = options.launch;
  if (wanted.command.empty()) wanted.command = {"true"};  // a plan is for some command
  Result<LaunchSetup> setup = set_up_launch(wanted, site, search);
  if (!setup) {
    // A host that is not the job's is the hostfile's fault, and said there.
    const std::string what = setup.error().what;
    if (what.find("in this job's allocation") == std::string::npos) {
      launch.plan_error = setup.error();
    }
    return;
  }
  launch.pool = setup->pool;
  launch.plan = fmt::format("{} on {}", doctor::count_of(setup->request.ranks, "rank"),
                            doctor::count_of(setup->active, "host"));
  const LaunchOptions& l = options.launch;
  if (l.spare_nodes != "auto") {
    const auto spares = static_cast<size_t>(*parse_int(l.spare_nodes));
    if (spares >= setup->pool.size() && !l.hosts) {
      launch.plan_error =
          Error{fmt::format("{} spares leave no active host of {}", spares, setup->pool.size()),
                "--spare-nodes", ""};
    } else {
      launch.active = l.hosts ? setup->active : setup->pool.size() - spares;
      // What is neither active nor asked for as a spare is not used.
      if (l.hosts && *launch.active + spares < launch.pool.size()) {
        launch.pool.resize(*launch.active + spares);
      }
    }
  } else if (l.hosts || (l.ranks && l.ranks_per_node)) {
    launch.active = setup->active;
  }
  looked.setup = std::move(*setup);
}

Looked look_at_everything(Loop& loop, const DoctorOptions& options, const SiteView& site) {
  const AskHelper ask = [&loop](const Argv& argv, double timeout_s) {
    return site::run_question(loop, argv, timeout_s);
  };
  Looked looked;
  doctor::JobSight& sight = looked.sight;
  sight.now_s = wall_s();
  sight.hostname = site.hostname;
  sight.machine = site.machine.machine;
  sight.machine_known = site.machine.known || !options.launch.machine.empty();
  sight.job = site.job;
  doctor::look_at_environment(site.env, sight);
  // Asking a scheduler that has not answered before would only cost the same time again.
  if (site.job.job_state) sight.batch_script = doctor::ask_batch_script(site.job, ask);
  if (!options.launch.hostfile.empty()) {
    sight.hostfile = doctor::look_at_hostfile(options.launch.hostfile, site.machine.machine.naming);
  }
  sight.log_dir = look_at_log_dir(loop, absolute(options.log_dir));
  sight.binary = doctor::look_at_binary(self_path());
  look_at_launch(options, site, launch::search_here(ask), looked);
  return looked;
}

// ---- the nodes

std::vector<probe::Said> reports_in(const std::string& output) {
  std::vector<probe::Said> found;
  for (std::string& payload : doctor::read_wire(output)) {
    if (const auto report = doctor::parse_report(payload)) {
      found.push_back({report->facts.node, std::move(payload)});
    }
  }
  return found;
}

// Which hosts are asked, and through what.
struct Rounds {
  std::vector<Node> hosts;
  bool local = true;  // this host alone
};

Rounds whom_to_ask(const DoctorOptions& options, const Looked& looked) {
  const doctor::LaunchSight& launch = looked.sight.launch;
  Rounds rounds;
  const bool elsewhere = launch.launcher != "local" && !launch.pool.empty() &&
                         (looked.sight.job.in_job() || looked.sight.hostfile);
  if (options.all_nodes && elsewhere) {
    rounds.hosts = launch.pool;
    rounds.local = false;
  } else {
    rounds.hosts = {make_node(looked.sight.hostname, looked.sight.machine.naming)};
  }
  return rounds;
}

DoctorNodeRequest node_request(const DoctorOptions& options, const Looked& looked,
                               const Rounds& rounds, const std::string& mark) {
  DoctorNodeRequest request;
  request.job_id = looked.sight.job.job_id;
  if (!rounds.local) request.resolve = {rounds.hosts[0].spelled};
  if (!mark.empty()) request.see = {mark};
  if (looked.sight.machine_known) request.machine = looked.sight.machine.name;
  if (!options.launch.machines_dir.empty()) {
    request.machines_dir = absolute(options.launch.machines_dir);
  }
  if (!options.known_issues_dir.empty()) {
    request.known_issues_dir = absolute(options.known_issues_dir);
  }
  request.python = options.python;
  request.nodes =
      static_cast<long>(looked.sight.launch.active.value_or(looked.sight.launch.pool.size()));
  request.command = options.launch.command;
  return request;
}

probe::AskResult ask_them(Loop& loop, const DoctorOptions& options, const Looked& looked,
                          const Rounds& rounds, DoctorNodeRequest request) {
  probe::AskSpec spec;
  spec.hosts = rounds.hosts;
  spec.read = reports_in;
  spec.at_once = 64;
  spec.overlap = true;
  const bool srun = looked.sight.launch.launcher == "srun";
  // Two rounds fit into the time: one over all, one for those that were silent.
  spec.together_s = 0.6 * options.timeout_s;
  spec.alone_s = rounds.local ? options.timeout_s : 0.4 * options.timeout_s;
  request.timeout_s = std::max(1.0, 0.4 * options.timeout_s - 2);
  request.patience_s = std::max(1.0, request.timeout_s / 3);
  spec.command = [request](const std::string& node) {
    DoctorNodeRequest named = request;
    named.node = node;
    return doctor_node_argv(self_path(), named);
  };
  if (rounds.local) {
    spec.reach = probe::Reach::local;
  } else if (!looked.setup) {
    probe::AskResult nobody;
    nobody.trouble = "the launcher cannot be used (see launcher and launch-plan)";
    return nobody;
  } else {
    spec.reach = srun ? probe::Reach::srun : probe::Reach::launcher;
    spec.gpus_per_node = looked.setup->request.gpus_per_node;
    const LaunchSetup& setup = *looked.setup;
    spec.beside = [&setup](const std::vector<Node>& hosts, const Argv& command) {
      return launch::beside_argv(setup.launcher->plan, setup.request, hosts, command);
    };
  }
  auto over = std::make_shared<bool>(false);
  const Loop::TimerId deadline = loop.after(options.timeout_s + 1, [over] { *over = true; });
  spec.give_up = [over] { return *over; };
  probe::AskResult result = probe::ask_nodes(loop, spec, looked.sight.machine.naming);
  loop.cancel(deadline);
  return result;
}

std::string why_silent(const probe::AskResult& asked, const std::string& key, double timeout_s) {
  const auto refused = asked.refused.find(key);
  if (refused != asked.refused.end()) return "could not look there: " + refused->second;
  if (!asked.ran && !asked.trouble.empty()) return "nobody was asked: " + asked.trouble;
  return fmt::format("did not answer within {:.0f} s", timeout_s);
}

doctor::PeerQuestion question_of(const Looked& looked, const Rounds& rounds,
                                 const probe::AskResult& asked, const std::string& mark,
                                 double timeout_s) {
  doctor::PeerQuestion question;
  for (const Node& host : rounds.hosts) {
    const auto answer = asked.answered.find(host.key);
    const auto report =
        answer == asked.answered.end() ? std::nullopt : doctor::parse_report(answer->second.text);
    if (report) {
      question.answers[host.spelled] = {*report, answer->second.asked_s, answer->second.answered_s};
    } else {
      question.not_answered[host.spelled] = why_silent(asked, host.key, timeout_s);
    }
  }
  question.alone = rounds.local;
  if (!rounds.local) question.first_host = rounds.hosts[0].spelled;
  question.cwd = current_folder();
  question.log_dir_mark = mark;
  const site::Discovery& job = looked.sight.job;
  question.job_id = job.job_id;
  question.running_jobs = {job.running_jobs.begin(), job.running_jobs.end()};
  question.running_jobs_known = job.why.count("running_jobs") != 0;
  question.running_attempts = doctor::attempts_running_here();
  question.machine = looked.sight.machine;
  return question;
}

std::vector<doctor::PeerFinding> look_at_nodes(Loop& loop, const DoctorOptions& options,
                                               const Looked& looked, const Rounds& rounds,
                                               doctor::Report& report) {
  const doctor::FolderSight& log_dir = looked.sight.log_dir;
  std::optional<Mark> mark;
  if (!rounds.local && log_dir.writable) mark.emplace(log_dir.existing);
  const std::string mark_path = mark ? mark->path() : "";
  const probe::AskResult asked =
      ask_them(loop, options, looked, rounds, node_request(options, looked, rounds, mark_path));
  const doctor::PeerQuestion question =
      question_of(looked, rounds, asked, mark_path, options.timeout_s);
  report.asked = rounds.hosts.size();
  report.answered = question.answers.size();
  std::vector<doctor::PeerFinding> found = doctor::check_everything_of_peers(question);
  for (const auto& [host, answer] : question.answers) {
    for (const doctor::Finding& finding : answer.report.findings) {
      found.push_back({finding, {host}});
    }
  }
  return found;
}

}  // namespace

int run_doctor(const Words& words) {
  DoctorOptions options;
  const FlagTable table = doctor_flags(options);
  if (table.wants_help(words)) {
    write_all(1, table.help());
    return 0;
  }
  const Result<std::vector<std::string>> rest = table.parse(words);
  if (!rest) return usage_error(rest.error().one_line());
  options.launch.command = *rest;
  if (options.log_dir.empty()) {
    return usage_error("an empty value means nothing here: --log-dir");
  }
  const std::string& spares = options.launch.spare_nodes;
  if (spares != "auto" && parse_int(spares).value_or(-1) < 0) {
    return usage_error("neither auto nor a number: " + printable(spares, 60) + ": --spare-nodes");
  }
  if (options.timeout_s < 1) return usage_error("at least a second: --timeout");

  const double began_s = monotonic_s();
  Loop loop;
  const Result<SiteView> site = look_around(loop, options.launch.machine,
                                            options.launch.machines_dir, site::Depth::everything);
  if (!site) return usage_error(site.error().one_line());
  Looked looked = look_at_everything(loop, options, *site);
  const Rounds rounds = whom_to_ask(options, looked);
  looked.sight.nodes_were_asked = !rounds.local;

  doctor::Report report;
  const std::vector<doctor::PeerFinding> of_nodes =
      look_at_nodes(loop, options, looked, rounds, report);
  report.version = kVersion;
  report.host = site->hostname;
  report.machine = site->machine.machine.name;
  report.machine_title = site->machine.machine.title;
  report.machine_why = site->machine.why;
  report.scheduler = to_string(site->job.scheduler);
  report.job_id = site->job.job_id;
  report.hosts = spellings(looked.sight.launch.launcher == "local" ? std::vector<Node>{}
                                                                   : looked.sight.launch.pool);
  report.not_answered = site->job.trouble;
  report.not_answered.insert(report.not_answered.end(), site->trouble.begin(), site->trouble.end());
  report.rows = merge(check_everything_of_the_job(looked.sight), of_nodes, report.asked);
  report.took_s = monotonic_s() - began_s;
  const doctor::Fine fine = options.verbose ? doctor::Fine::lines : doctor::Fine::names;
  write_all(1, options.as_json ? tell_json(report) : tell(report, fine));
  return exit_code(report, options.strict);
}

}  // namespace ezpz::app
