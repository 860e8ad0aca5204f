#include "journal/journal.h"

#include <string.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "journal/event.h"

namespace ezpz::journal {

std::string format_event(double wall_s, std::string_view name, const Json& context) {
  const Json line = {{"time", iso8601(wall_s)}, {"name", std::string(name)}, {"context", context}};
  return dump(line) + "\n";
}

Journal::Journal(Loop& loop, Scribe& scribe, const std::string& path)
    : loop_(loop), scribe_(scribe), path_(path) {}

void Journal::record(std::string_view name, const Json& context) {
  note(name, context);
  if (behind_ && in_flight_ > 0) return;
  auto expired = std::make_shared<bool>(false);
  const Loop::TimerId timer = loop_.after(kWait_s, [expired] { *expired = true; });
  loop_.run_until([this, expired] { return in_flight_ == 0 || *expired; });
  loop_.cancel(timer);
  behind_ = in_flight_ > 0;
}

void Journal::note(std::string_view name, const Json& context) {
  retry_kept();
  hand_over(format_event(wall_s(), name, context));
}

void Journal::hand_over(std::string line) {
  if (!open_) {
    open_ = true;
    file_ = scribe_.open_append(path_, [this](int trouble) {
      if (trouble != 0) open_ = false;  // the next record tries again
    });
  }
  ++in_flight_;
  const std::string_view bytes = line;
  scribe_.append_whole(file_, bytes, [this, kept = std::move(line)](int trouble) mutable {
    --in_flight_;
    if (trouble == 0) return;
    if (failed_ == 0) trouble_since_s_ = wall_s();
    ++failed_;
    last_trouble_ = trouble;
    kept_.push_back(std::move(kept));
    if (kept_.size() > kMaxKept) {
      kept_.pop_front();
      ++dropped_;
    }
  });
}

// Sends what failed earlier, oldest first, then one record of the gap. While the disk still fails
// the lines come straight back; only one is sent as a trial then.
void Journal::retry_kept() {
  if (kept_.empty() || in_flight_ > 0) return;
  std::string first = std::move(kept_.front());
  kept_.pop_front();
  const size_t failed_before = failed_;
  hand_over(std::move(first));
  auto expired = std::make_shared<bool>(false);
  const Loop::TimerId timer = loop_.after(kWait_s, [expired] { *expired = true; });
  loop_.run_until([this, expired] { return in_flight_ == 0 || *expired; });
  loop_.cancel(timer);
  if (failed_ > failed_before || in_flight_ > 0) {
    // The trial went to the end of the queue; it is the oldest.
    if (failed_ > failed_before && kept_.size() > 1) {
      kept_.push_front(std::move(kept_.back()));
      kept_.pop_back();
    }
    return;
  }
  std::deque<std::string> rest = std::move(kept_);
  kept_.clear();
  for (std::string& line : rest) hand_over(std::move(line));
  hand_over(format_event(wall_s(), "journal_gap",
                         {{"since", iso8601(trouble_since_s_)},
                          {"late_events", rest.size() + 1},
                          {"lost_events", dropped_},
                          {"trouble", strerrordesc_np(last_trouble_)}}));
  failed_ = 0;
  dropped_ = 0;
}

void Journal::close(double at_most_s) {
  retry_kept();
  scribe_.settle(at_most_s);
}

}  // namespace ezpz::journal
