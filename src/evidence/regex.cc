#include "evidence/regex.h"

#include <re2/re2.h>

#include <array>

namespace ezpz::evidence {
namespace {

constexpr int kMaxGroups = 24;

}  // namespace

struct Regex::Compiled {
  Compiled(const std::string& pattern, const re2::RE2::Options& options) : re(pattern, options) {}
  re2::RE2 re;
};

Regex::Regex(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {
  names_.resize(static_cast<size_t>(compiled_->re.NumberOfCapturingGroups()) + 1);
  for (const auto& [number, name] : compiled_->re.CapturingGroupNames()) {
    names_[static_cast<size_t>(number)] = name;
  }
}

Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::compile(const std::string& pattern) {
  re2::RE2::Options options(re2::RE2::Latin1);
  options.set_log_errors(false);
  options.set_max_mem(int64_t{1} << 20);
  auto compiled = std::make_unique<Compiled>(pattern, options);
  if (!compiled->re.ok()) return Error{"bad regex: " + compiled->re.error(), "", ""};
  if (compiled->re.NumberOfCapturingGroups() >= kMaxGroups) {
    return Error{"bad regex: too many groups", "", "write (?:...) for groups that capture nothing"};
  }
  return Regex(std::move(compiled));
}

bool Regex::matches(std::string_view text) const {
  const re2::StringPiece whole(text.data(), text.size());
  return compiled_->re.Match(whole, 0, text.size(), re2::RE2::UNANCHORED, nullptr, 0);
}

bool Regex::matches_at_start(std::string_view text) const {
  const re2::StringPiece whole(text.data(), text.size());
  return compiled_->re.Match(whole, 0, text.size(), re2::RE2::ANCHOR_START, nullptr, 0);
}

bool Regex::find(std::string_view text, size_t from, std::vector<std::string_view>* groups) const {
  std::array<re2::StringPiece, kMaxGroups> found;
  const re2::StringPiece whole(text.data(), text.size());
  if (!compiled_->re.Match(whole, from, text.size(), re2::RE2::UNANCHORED, found.data(),
                           static_cast<int>(names_.size()))) {
    return false;
  }
  groups->clear();
  for (size_t i = 0; i < names_.size(); ++i) {
    const bool took_part = found[i].data() != nullptr;
    groups->push_back(took_part ? std::string_view(found[i].data(), found[i].size())
                                : std::string_view());
  }
  return true;
}

}  // namespace ezpz::evidence
