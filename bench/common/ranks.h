// The processes of one side of a comparison: rank 0 is the program itself, the others its children.
// Says what they cost together, and obeys the harness.
// One thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "weightcast/base/mapping.h"
#include "weightcast/base/result.h"

namespace weightcast::bench {

/// `name=value` arguments of a program. Each has a default, so a program says what it knows.
class Arguments {
 public:
  /// Errors: `kInvalidArgument` for an argument without `=`.
  static Result<Arguments> parse(int argc, char** argv);
  std::string text(const std::string& name, std::string_view fallback) const;
  /// A size or a plain number. Ends the program with a message if it is neither.
  uint64_t number(const std::string& name, uint64_t fallback) const;

 private:
  std::map<std::string, std::string> values_;
};

/// Binds this process to CPU `rank` mod the number of CPUs it may use, as every side does.
void pin_to_cpu(int rank);

/// Processor time and page faults of some processes so far.
struct Usage {
  double cpu_seconds = 0;
  uint64_t minor_faults = 0;
};
/// Requires: the processes live.
Usage usage_of(const std::vector<pid_t>& processes);

/// Waits on `word` while it is `seen`: a short spin, then asleep.
void wait_while(const std::atomic<uint32_t>& word, uint32_t seen);
/// Adds one to `word` and wakes who waits on it.
void advance(std::atomic<uint32_t>& word);

/// Memory that the ranks of one side share, for their control words only.
struct Shared {
  std::atomic<uint32_t> verified{0};  ///< ranks that compared every byte they received
};

/// Forked children that die with this process.
class Ranks {
 public:
  /// Forks ranks 1 to `num_children`; each pins itself, runs `child(rank)` and exits with what it
  /// returns. Pins this process as rank 0. Call before any thread or large memory exists.
  static Result<Ranks> fork(int num_children, const std::function<int(int)>& child);
  Ranks(Ranks&&) = default;
  Ranks& operator=(Ranks&&) = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks() = default;

  /// All processes, rank 0 first.
  const std::vector<pid_t>& pids() const { return pids_; }
  /// Waits for the children. False when one did not exit with 0.
  bool join();

 private:
  Ranks() = default;
  std::vector<pid_t> pids_;
};

/// One timed transfer of all tensors to all ranks.
struct Sample {
  double seconds = 0;
  Usage usage;
};

/// Prints `ready`, one JSON object, then answers each line `run` on standard input with a sample as
/// one JSON line. Returns the exit status at `quit`, at the end of the input, or at an error.
int serve(std::string_view ready, const std::function<Result<Sample>()>& run);

/// Calls `transfer` and says what it cost in time and on `processes`.
Result<Sample> take_sample(const std::vector<pid_t>& processes,
                           const std::function<Status()>& transfer);

/// The JSON object that a program starts with.
std::string make_ready(const std::vector<pid_t>& pids, std::string_view kernel, uint64_t payload,
                       bool verified);

}  // namespace weightcast::bench
