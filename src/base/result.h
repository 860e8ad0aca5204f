// Errors are values: what went wrong, where, and what to try. Nothing is thrown across folders
// (std::expected does not exist on the compilers this must build with).
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace ezpz {

struct Error {
  std::string what;   // "hostfile is empty"
  std::string where;  // "/path/to/hostfile", "--nhosts"; may be empty
  std::string hint;   // "list one host per line"; may be empty

  // "hostfile is empty: /path/to/hostfile (list one host per line)", always one line.
  [[nodiscard]] std::string one_line() const;
};

// Either a T or an Error. Look before taking: value() of an error aborts the process.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT: a value is a success
  Result(Error error) : state_(std::move(error)) {}  // NOLINT: an Error is a failure

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  [[nodiscard]] const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

struct Unit {};
using Status = Result<Unit>;
inline Status success() { return Status(Unit{}); }

}  // namespace ezpz
