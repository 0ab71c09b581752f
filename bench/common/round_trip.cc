#include "round_trip.h"

#include <algorithm>
#include <cerrno>

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
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error(errno, "pipe2");
  return Letter(Fd(ends[0]), Fd(ends[1]));
}

void Letter::send(const std::string& text) {
  const std::string line = text + '\n';
  WEIGHTCAST_CHECK(write(write_.get(), line.data(), line.size()) ==
                   static_cast<ssize_t>(line.size()));
}

std::string Letter::receive() {
  std::string text;
  for (char letter = 0; read(read_.get(), &letter, 1) == 1 && letter != '\n';) text += letter;
  return text;
}

}  // namespace weightcast::bench
