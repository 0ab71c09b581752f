#include "round_trip.h"

#include <algorithm>
#include <cerrno>
#include <climits>

#include <fcntl.h>
#include <unistd.h>

#include "weightcast/base/check.h"

namespace weightcast::bench {

Result<Sample> measure_round_trips(const std::vector<pid_t>& processes,
                                   const std::function<Status()>& round_trip) {
  constexpr size_t kRoundTrips = 2000;
  std::vector<double> seconds;
  seconds.reserve(kRoundTrips);
  const auto all = [&]() -> Status {
    while (seconds.size() < kRoundTrips) {
      const auto begin = Clock::now();
      WEIGHTCAST_TRY(round_trip());
      seconds.push_back(seconds_between(begin, Clock::now()));
    }
    return {};
  };
  WEIGHTCAST_ASSIGN(Sample sample, take_sample(processes, all));
  const auto middle = seconds.begin() + kRoundTrips / 2;
  std::nth_element(seconds.begin(), middle, seconds.end());
  sample.seconds = *middle;
  return sample;
}

Result<Letter> Letter::create() {
  int ends[2];
  // Packets, so that several children can take one each.
  if (pipe2(ends, O_CLOEXEC | O_DIRECT) != 0) return system_error(errno, "pipe2");
  return Letter(Fd(ends[0]), Fd(ends[1]));
}

void Letter::send(const std::string& text) {
  WEIGHTCAST_CHECK(write(write_.get(), text.data(), text.size()) ==
                   static_cast<ssize_t>(text.size()));
}

std::string Letter::receive() {
  std::string text(PIPE_BUF, '\0');
  const ssize_t size = read(read_.get(), text.data(), text.size());
  WEIGHTCAST_CHECK(size >= 0);
  text.resize(static_cast<size_t>(size));
  return text;
}

}  // namespace weightcast::bench
