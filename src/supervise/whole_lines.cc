#include "supervise/whole_lines.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"

namespace ezpz::supervise {

WholeLines::~WholeLines() {
  loop_.cancel(patience_);
  if (watched_ >= 0) loop_.unwatch_write(watched_);
}

void WholeLines::add(Speaker speaker, int fd, std::string_view bytes) {
  Unfinished& line = unfinished_[speaker];
  line.fd = fd;
  const size_t last = bytes.find_last_of("\r\n");
  if (last != std::string_view::npos) {
    if (!line.text.empty()) put(speaker, fd, line.text);
    line.text.clear();
    put(speaker, fd, bytes.substr(0, last + 1));
    bytes.remove_prefix(last + 1);
  }
  line.text.append(bytes);
  if (line.text.size() > kLongest_bytes) finish(speaker);
  if (!line.text.empty()) {
    line.touched_s = monotonic_s();
    be_patient();
  }
  flush();
}

void WholeLines::be_patient() {
  if (patience_ != 0) return;
  patience_ = loop_.after(kPatience_s, [this] {
    patience_ = 0;
    const double now_s = monotonic_s();
    bool more = false;
    for (auto& [speaker, line] : unfinished_) {
      if (line.text.empty()) continue;
      // While the reader is slow we do not listen either: the end of the line may be there.
      if (!waiting_.empty() || now_s - line.touched_s < kPatience_s) {
        more = true;
        continue;
      }
      put(speaker, line.fd, line.text);
      line.text.clear();
    }
    if (more) be_patient();
    flush();
  });
}

void WholeLines::finish(Speaker speaker) {
  const auto found = unfinished_.find(speaker);
  if (found == unfinished_.end()) return;
  put(speaker, found->second.fd, found->second.text);
  found->second.text.clear();
  flush();
}

void WholeLines::finish_all() {
  for (auto& [speaker, line] : unfinished_) {
    put(speaker, line.fd, line.text);
    line.text.clear();
  }
  flush();
}

void WholeLines::say(int fd, std::string_view line) {
  constexpr Speaker ourselves{-1, 0};
  put(ourselves, fd, std::string(line) + "\n");
  flush();
}

void WholeLines::put(Speaker speaker, int fd, std::string_view bytes) {
  if (bytes.empty() || broken_) return;
  if (line_is_open_ && speaker != last_speaker_) {
    line_is_open_ = false;
    put(speaker, fd, "\n");
  }
  last_speaker_ = speaker;
  line_is_open_ = bytes.back() != '\n';
  waiting_bytes_ += bytes.size();
  if (waiting_.empty() || waiting_.back().first != fd ||
      waiting_.back().second.size() > kLongest_bytes) {
    waiting_.emplace_back(fd, bytes);
  } else {
    waiting_.back().second.append(bytes);
  }
}

void WholeLines::flush() {
  int wanted = -1;
  while (!waiting_.empty() && !broken_) {
    const auto& [fd, text] = waiting_.front();
    const ssize_t n = write(fd, text.data() + written_, text.size() - written_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      wanted = fd;
      break;
    }
    if (n < 0) {
      broken_ = true;
      waiting_.clear();
      waiting_bytes_ = 0;
      break;
    }
    written_ += static_cast<size_t>(n);
    waiting_bytes_ -= static_cast<size_t>(n);
    if (written_ == text.size()) {
      waiting_.pop_front();
      written_ = 0;
    }
  }
  if (wanted != watched_) {
    if (watched_ >= 0) loop_.unwatch_write(watched_);
    watched_ = wanted;
    if (watched_ >= 0) loop_.watch_write(watched_, [this] { flush(); });
  }
  if (waiting_bytes_ > kMuch_bytes) full_ = true;
  if (full_ && waiting_bytes_ < kLittle_bytes) {
    full_ = false;
    if (on_room_) on_room_();
  }
}

}  // namespace ezpz::supervise
