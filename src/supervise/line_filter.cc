#include "supervise/line_filter.h"

#include <string.h>

#include <algorithm>
#include <array>

namespace ezpz::supervise {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_name(char c) { return is_digit(c) || is_letter(c) || c == '.' || c == '_' || c == '-'; }

bool has(std::string_view text, std::string_view word) {
  return memmem(text.data(), text.size(), word.data(), word.size()) != nullptr;
}

// A reader of the beginning of a line. Whoever runs out of text does not know yet.
struct Cursor {
  std::string_view text;
  size_t at = 0;
  [[nodiscard]] bool ended() const { return at >= text.size(); }
  [[nodiscard]] char now() const { return text[at]; }
  template <class Is>
  size_t skip(Is is) {
    const size_t from = at;
    while (!ended() && is(now())) ++at;
    return at - from;
  }
  // A word that stands here, as far as there is text.
  NcclLine word(std::string_view word) {
    const std::string_view rest = text.substr(at);
    const size_t common = std::min(word.size(), rest.size());
    if (rest.substr(0, common) != word.substr(0, common)) return NcclLine::no;
    if (common < word.size()) return NcclLine::maybe;
    at += word.size();
    return NcclLine::yes;
  }
};

// "HOST:PID:TID [DEV] NCCL INFO "
NcclLine info_line(Cursor c) {
  if (c.skip(is_name) == 0) return c.ended() ? NcclLine::maybe : NcclLine::no;
  for (int i = 0; i < 2; ++i) {
    if (c.ended()) return NcclLine::maybe;
    if (c.now() != ':') return NcclLine::no;
    ++c.at;
    if (c.skip(is_digit) == 0) return c.ended() ? NcclLine::maybe : NcclLine::no;
  }
  if (const NcclLine open = c.word(" ["); open != NcclLine::yes) return open;
  if (c.skip(is_digit) == 0) return c.ended() ? NcclLine::maybe : NcclLine::no;
  return c.word("] NCCL INFO ");
}

// What is printed at the same level without a place before it.
constexpr std::array<std::string_view, 6> kBanner{"NCCL version ",   "RCCL version ",
                                                  "HIP version  : ", "ROCm version : ",
                                                  "Hostname     : ", "Librccl path : "};

NcclLine banner_line(Cursor c) {
  NcclLine best = NcclLine::no;
  for (const std::string_view word : kBanner) {
    Cursor copy = c;
    const NcclLine is = copy.word(word);
    if (is == NcclLine::yes) return is;
    if (is == NcclLine::maybe) best = is;
  }
  return best;
}

// Behind one label that launchers put before a line ("3: ", "host 3: ", "[rank3]: ",
// "[1,3]<stdout>:") or one time ("[2031-06-10 21:49:11] "). no: none stands here.
NcclLine skip_label(Cursor* cursor) {
  Cursor c = *cursor;
  c.skip([](char x) { return x == ' '; });
  if (c.ended()) return NcclLine::maybe;
  if (c.now() == '[') {
    ++c.at;
    c.skip([](char x) { return is_name(x) || x == ',' || x == ':' || x == ' '; });
    if (c.ended()) return NcclLine::maybe;
    if (c.now() != ']') return NcclLine::no;
    ++c.at;
    if (!c.ended() && c.now() == '<') {
      c.skip([](char x) { return x != '>'; });
      if (c.ended()) return NcclLine::maybe;
      ++c.at;
    }
    if (!c.ended() && c.now() == ':') ++c.at;
  } else if (is_digit(c.now())) {
    // "3: ", or a time without brackets
    c.skip([](char x) { return is_digit(x) || x == '-' || x == 'T' || x == '.' || x == ','; });
    if (c.ended()) return NcclLine::maybe;
    if (c.now() == ':') {
      c.skip([](char x) { return is_digit(x) || x == ':' || x == '.' || x == ',' || x == 'Z'; });
      if (c.ended()) return NcclLine::maybe;
    }
    if (c.now() != ' ') return NcclLine::no;
  } else if (is_letter(c.now())) {
    c.skip(is_name);
    const size_t spaces = c.skip([](char x) { return x == ' '; });
    const size_t digits = c.skip(is_digit);
    if (c.ended()) return NcclLine::maybe;
    if (spaces == 0 || digits == 0 || c.now() != ':') return NcclLine::no;
    ++c.at;
    if (c.ended()) return NcclLine::maybe;
    if (c.now() != ' ') return NcclLine::no;
  } else {
    return NcclLine::no;
  }
  c.skip([](char x) { return x == ' '; });
  if (c.at == cursor->at) return NcclLine::no;
  *cursor = c;
  return NcclLine::yes;
}

}  // namespace

NcclLine is_nccl_line(std::string_view start, bool whole) {
  constexpr int kMostLabels = 3;
  Cursor c{start.substr(0, LineFilter::kMaxHeld)};
  const bool cut = whole || start.size() > LineFilter::kMaxHeld;
  NcclLine best = NcclLine::no;
  for (int i = 0; i <= kMostLabels; ++i) {
    for (const NcclLine is : {info_line(c), banner_line(c)}) {
      if (is == NcclLine::yes) return is;
      if (is == NcclLine::maybe) best = is;
    }
    const NcclLine label = skip_label(&c);
    if (label == NcclLine::maybe) best = label;
    if (label != NcclLine::yes) break;
  }
  return cut && best == NcclLine::maybe ? NcclLine::no : best;
}

void LineFilter::feed(std::string_view bytes) {
  finish_line(&bytes);
  if (bytes.empty()) return;
  const size_t last = bytes.rfind('\n');
  const size_t lines = last == std::string_view::npos ? 0 : last + 1;
  whole_lines(bytes.substr(0, lines));
  begin_line(bytes.substr(lines));
}

// The line that earlier bytes began, as far as these go.
void LineFilter::finish_line(std::string_view* bytes) {
  if (line_ == Line::open && held_.empty()) return;
  const size_t newline = bytes->find('\n');
  const bool ends = newline != std::string_view::npos;
  const std::string_view rest = bytes->substr(0, ends ? newline + 1 : bytes->size());
  bytes->remove_prefix(rest.size());
  if (line_ == Line::open) {
    const size_t fits = kMaxHeld + 1 - std::min(kMaxHeld + 1, held_.size());
    std::string start = held_ + std::string(rest.substr(0, std::min(fits, rest.size())));
    const NcclLine is = is_nccl_line(start, ends);
    if (is == NcclLine::maybe) {
      held_.append(rest);
      return;
    }
    line_ = is == NcclLine::yes ? Line::hidden : Line::shown;
    if (line_ == Line::shown) show_(held_);
    held_.clear();
  }
  if (line_ == Line::shown && !rest.empty()) show_(rest);
  if (ends) line_ = Line::open;
}

// Shown in as few pieces as the hidden lines leave.
void LineFilter::whole_lines(std::string_view lines) {
  if (lines.empty()) return;
  const bool may_hide = has(lines, " NCCL INFO ") || has(lines, "version") ||
                        has(lines, "Librccl path : ") || has(lines, "Hostname     : ");
  if (!may_hide) return show_(lines);
  size_t shown_from = 0;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = lines.find('\n', at) + 1;
    if (is_nccl_line(lines.substr(at, end - at), true) == NcclLine::yes) {
      if (at > shown_from) show_(lines.substr(shown_from, at - shown_from));
      shown_from = end;
    }
    at = end;
  }
  if (shown_from < lines.size()) show_(lines.substr(shown_from));
}

void LineFilter::begin_line(std::string_view start) {
  line_ = Line::open;
  if (start.empty()) return;
  switch (is_nccl_line(start, false)) {
    case NcclLine::yes:
      line_ = Line::hidden;
      return;
    case NcclLine::no:
      line_ = Line::shown;
      return show_(start);
    case NcclLine::maybe:
      held_ = start;
      ++held_line_;
  }
}

void LineFilter::release() {
  if (held_.empty()) return;
  const std::string held = std::move(held_);
  held_.clear();
  line_ = Line::shown;
  show_(held);
}

}  // namespace ezpz::supervise
