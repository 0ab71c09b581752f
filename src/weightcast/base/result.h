// What a call returns: a value, or an error that says what failed, on which rank, and what to do.
// Values: copyable, any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace weightcast {

/// Why an operation failed. The command line maps each code to one exit code (docs/operations.md).
enum class Code {
  kInvalidArgument,  ///< the caller's fault: an option or an argument is wrong
  kBadInput,         ///< a file or a model is malformed or cannot be read
  kPeerLost,         ///< another rank died, hung up or left
  kDeadline,         ///< nothing moved for as long as the caller allowed
  kCorruption,       ///< bytes are not what their digest or schema says
  kRefused,          ///< ticket, rank or protocol version was not accepted
  kNoResource,       ///< memory, disk, shared memory or descriptors are exhausted
  kUnsupported,      ///< this build or machine cannot do that
  kInternal,         ///< a system call failed in a way that is not the caller's fault
};

/// The name of a code as it appears in messages and reports, for example `peer lost`.
std::string_view to_string(Code code);

/// One failure. `rank` is the rank on which it happened first, or -1 where that is unknown.
class Error {
 public:
  Error(Code code, std::string message, int rank = -1)
      : code_(code), rank_(rank), message_(std::move(message)) {}

  [[nodiscard]] Code code() const { return code_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] const std::string& message() const { return message_; }

  /// The same error with `what: ` before its message.
  [[nodiscard]] Error context(std::string_view what) const&;
  /// The same error, said to have happened on `rank`.
  [[nodiscard]] Error on_rank(int rank) const&;

  friend bool operator==(const Error&, const Error&) = default;

 private:
  Code code_;
  int rank_;
  std::string message_;
};

/// `T` or an `Error`. Ignoring one is a compiler warning.
template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  // Implicit, so that `return Error(...)` reads like `return value`.
  Result(Error error) : tl::expected<T, Error>(tl::unexpect, std::move(error)) {}
};

/// Success or an `Error`.
using Status = Result<void>;

/// The error for `errno` value `number` of the system call `what`; memory, space and descriptors
/// that ran out become `kNoResource`, everything else `kInternal`.
Error system_error(int number, std::string_view what);

}  // namespace weightcast

/// Passes the error of `expression` up.
#define WEIGHTCAST_TRY(expression)                                                \
  do {                                                                            \
    if (auto status_ = (expression); !status_) return std::move(status_).error(); \
  } while (false)

#define WEIGHTCAST_CONCAT_INNER(a, b) a##b
#define WEIGHTCAST_CONCAT(a, b) WEIGHTCAST_CONCAT_INNER(a, b)
// A name that is declared and a declaration can not stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define WEIGHTCAST_ASSIGN_IMPL(result, declaration, expression) \
  auto result = (expression);                                   \
  if (!result) return std::move(result).error();                \
  declaration = *std::move(result)
// NOLINTEND(bugprone-macro-parentheses)

/// `WEIGHTCAST_ASSIGN(auto x, f())`: declares `x` with the value of `f()`, or passes its error up.
#define WEIGHTCAST_ASSIGN(declaration, expression) \
  WEIGHTCAST_ASSIGN_IMPL(WEIGHTCAST_CONCAT(result_, __LINE__), declaration, expression)
