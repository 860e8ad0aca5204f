// One compiled regular expression (RE2: linear time, whatever a site's file or a hostile log hold).
// Text is bytes, not UTF-8. RE2's header stays in regex.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ezpz::evidence {

class Regex {
 public:
  // Fails with the reason in Error.what; the caller knows where.
  static Result<Regex> compile(const std::string& pattern);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // Name of each group by number; "" for unnamed ones and for group 0, the whole match.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  // Whether it matches anywhere; cheaper than finding out where.
  [[nodiscard]] bool matches(std::string_view text) const;
  [[nodiscard]] bool matches_at_start(std::string_view text) const;
  // First match at or after `from`; groups (by number) of it, a group that took no part is empty.
  bool find(std::string_view text, size_t from, std::vector<std::string_view>* groups) const;

 private:
  struct Compiled;
  explicit Regex(std::unique_ptr<Compiled>);
  std::unique_ptr<Compiled> compiled_;
  std::vector<std::string> names_;
};

}  // namespace ezpz::evidence
