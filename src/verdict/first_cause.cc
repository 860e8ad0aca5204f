#include "verdict/first_cause.h"

#include <array>

#include "verdict/death.h"
#include "verdict/gpu_error.h"

namespace ezpz::verdict {
namespace {

struct KindWeight {
  Kind kind;
  Weight weight;
};
// Kinds that are not listed (endings, success) are never the cause of a failure.
constexpr std::array kKindWeights{
    KindWeight{Kind::oom, Weight::proof},
    KindWeight{Kind::node_failure, Weight::own_trouble},
    KindWeight{Kind::gpu_fault, Weight::own_trouble},
    KindWeight{Kind::env_fault, Weight::own_trouble},
    KindWeight{Kind::filesystem_fault, Weight::own_trouble},
    KindWeight{Kind::port_in_use, Weight::own_trouble},
    KindWeight{Kind::launcher_fault, Weight::own_trouble},
    KindWeight{Kind::app_error, Weight::may_be_echo},
    KindWeight{Kind::fabric_fault, Weight::may_be_echo},
    KindWeight{Kind::collective_timeout, Weight::may_be_echo},
    KindWeight{Kind::hang, Weight::may_be_echo},
    KindWeight{Kind::unknown, Weight::unclassified},
};

std::optional<Weight> weight_of_kind(Kind kind) {
  for (const KindWeight& entry : kKindWeights) {
    if (entry.kind == kind) return entry.weight;
  }
  return std::nullopt;
}

// An illegal access reported by the GPU is the program's error, whatever the message calls it.
Kind kind_of(const Fact& fact) {
  if (fact.kind == Kind::gpu_fault && gpu_error(fact) == GpuError::application) {
    return Kind::app_error;
  }
  return fact.kind;
}

// Does the grammar know more of this death than how the process ended ("task 3: Out Of Memory")?
bool says_why(const Fact& death) {
  switch (death.kind) {
    case Kind::unknown:
    case Kind::node_failure:
    case Kind::app_error:
      return false;
    default:
      return true;
  }
}

bool is_bare_death(const Fact& fact) { return fact.event == Event::death && !says_why(fact); }

std::optional<Weight> weight_of_death(const Fact& death, const Killed& killed) {
  if (says_why(death)) return weight_of_kind(death.kind);
  switch (hand_in_death(death)) {
    case Hand::outside:
      return killed.one_host_alone ? Weight::own_trouble : Weight::bare_exit;
    case Hand::itself:
      return Weight::may_be_echo;
    case Hand::asked:
      return std::nullopt;
    case Hand::exit:
    case Hand::unusable:
    case Hand::unknown:
      return Weight::bare_exit;
  }
  return std::nullopt;
}

// Printed after the teardown began, a genuine cause may still be one: the kernel's word about
// memory or a GPU always, other troubles of their own when something had died before.
bool counts_in_teardown(const Fact& fact, Weight weight, bool something_died) {
  if (fact.event == Event::death) return fact.kind == Kind::oom;
  if (fact.kind == Kind::oom || fact.kind == Kind::gpu_fault) return true;
  return something_died && weight == Weight::own_trouble;
}

// Memory that ran out on another host does not explain ranks killed on this one: a program that
// caught the error and went on, most likely.
bool is_beside_the_point(const Exhibit& exhibit, const Killed& killed) {
  return exhibit.fact->kind == Kind::oom && killed.one_host_alone && !exhibit.host.empty() &&
         killed.hosts.count(exhibit.host) == 0;
}

// Troubles of a start that the training went on after: a plugin that failed and was done without, a
// port that was taken and another found.
bool was_survived(const CaseFile& file, const Fact& fact) {
  if (fact.source != Source::output || fact.event != Event::message) return false;
  if (fact.kind != Kind::env_fault && fact.kind != Kind::port_in_use) return false;
  const evidence::Progress& progress = file.record.progress;
  if (!progress.last_step) return false;
  constexpr int64_t kIntervals = 10;  // lines of steps: ranks die one after the other
  const int64_t before = fact.step >= 0 ? fact.step : progress.first_step.value_or(0) - 1;
  return *progress.last_step - before >= kIntervals * progress.interval.value_or(1);
}

std::optional<Weight> weigh(const CaseFile& file, const Exhibit& exhibit, const Killed& killed,
                            bool something_died) {
  const Fact& fact = *exhibit.fact;
  if (fact.role != Role::cause || exhibit.standing == Standing::retired) return std::nullopt;
  std::optional<Weight> weight;
  switch (fact.event) {
    case Event::message:
    case Event::aborted:
    case Event::launcher:
    case Event::unreachable:
    case Event::lost_of_several:
      weight = weight_of_kind(kind_of(fact));
      break;
    case Event::part_failed:
      weight = Weight::own_trouble;
      break;
    case Event::death:
      weight = weight_of_death(fact, killed);
      break;
    case Event::node_lost:  // judged by a rule of its own
    case Event::teardown:
    case Event::limit:
    case Event::placement:
    case Event::within_host:
    case Event::between_hosts:
    case Event::network:
    case Event::provider:
    case Event::version:
    case Event::waiting:
    case Event::not_booted:
    case Event::new_run:
      return std::nullopt;
  }
  if (!weight) return std::nullopt;
  if (exhibit.in_teardown && !counts_in_teardown(fact, *weight, something_died)) {
    return std::nullopt;
  }
  if (fact.weak || was_survived(file, fact)) return Weight::unclassified;
  if (is_beside_the_point(exhibit, killed)) return Weight::may_be_echo;
  return weight;
}

}  // namespace

Killed killed(const CaseFile& file) {
  Killed killed;
  for (const Exhibit* death : file.first_deaths()) {
    if (is_bare_death(*death->fact) && hand_in_death(*death->fact) == Hand::outside) {
      killed.deaths.push_back(death);
    }
  }
  killed.hosts = hosts_of(killed.deaths);
  bool all_placed = !killed.deaths.empty();
  for (const Exhibit* death : killed.deaths) all_placed = all_placed && !death->host.empty();
  killed.one_host_alone =
      all_placed && killed.hosts.size() == 1 && file.has_hosts_besides(*killed.hosts.begin());
  return killed;
}

std::optional<Cause> first_cause(const CaseFile& file) {
  const Killed killed_ranks = killed(file);
  const bool something_died = !file.first_deaths().empty();
  std::optional<Cause> best;
  for (const Exhibit& exhibit : file.exhibits) {
    const std::optional<Weight> weight = weigh(file, exhibit, killed_ranks, something_died);
    if (weight && (!best || *weight < best->weight)) {
      best = Cause{&exhibit, *weight,
                   is_bare_death(*exhibit.fact) ? Kind::unknown : kind_of(*exhibit.fact)};
    }
  }
  return best;
}

std::vector<const Exhibit*> same_failure(const CaseFile& file, const Cause& cause) {
  const Killed killed_ranks = killed(file);
  const bool something_died = !file.first_deaths().empty();
  const Fact& fact = *cause.exhibit->fact;
  const bool by_death = is_bare_death(fact);
  std::vector<const Exhibit*> same;
  for (const Exhibit& exhibit : file.exhibits) {
    const Fact& other = *exhibit.fact;
    if (!weigh(file, exhibit, killed_ranks, something_died)) continue;
    if (by_death != is_bare_death(other)) continue;
    if (by_death ? hand_in_death(other) == hand_in_death(fact) : kind_of(other) == cause.kind) {
      same.push_back(&exhibit);
    }
  }
  return same;
}

}  // namespace ezpz::verdict
