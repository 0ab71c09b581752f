// How long a question and its answer take.
// One thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "bench/common/ranks.h"
#include "weightcast/base/fd.h"
#include "weightcast/base/result.h"

namespace weightcast::bench {

inline constexpr size_t kRoundTripSize = 256;  ///< bytes of the question and of the answer

/// Makes 2000 round trips, one after the other; `seconds` of the sample is their median.
Result<Sample> measure_round_trips(const std::vector<pid_t>& processes,
                                   const std::function<Status()>& round_trip);

/// Text of at most 4 KiB from a process to its children, one for each: where to connect.
class Letter {
 public:
  static Result<Letter> create();
  void send(const std::string& text);
  /// Blocks until it was sent.
  std::string receive();

 private:
  Letter(Fd read, Fd write) : read_(std::move(read)), write_(std::move(write)) {}
  Fd read_;
  Fd write_;
};

}  // namespace weightcast::bench
