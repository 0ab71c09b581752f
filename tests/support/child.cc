#include "child.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "weightcast/base/check.h"

namespace weightcast::testing {

Child::Child(const std::function<std::string()>& run) {
  std::array<int, 2> ends{};
  WEIGHTCAST_CHECK(::pipe2(ends.data(), O_CLOEXEC) == 0);
  pipe_ = Fd(ends[0]);
  Fd out(ends[1]);
  pid_ = ::fork();
  WEIGHTCAST_CHECK(pid_ >= 0);
  if (pid_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string report = run();
  const bool written =
      ::write(out.get(), report.data(), report.size()) == static_cast<ssize_t>(report.size());
  ::_exit(written ? 0 : 1);
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pipe_(std::move(other.pipe_)) {}

Child::~Child() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Child::signal(int number) const { WEIGHTCAST_CHECK(::kill(pid_, number) == 0); }

std::string Child::report() {
  std::string text;
  const Deadline deadline = Deadline::after(std::chrono::seconds(120));
  const std::array<int, 1> fds{pipe_.get()};
  while (true) {
    if (!wait_readable(fds, deadline)) return "still running after 120 s";
    std::array<char, 512> part{};
    const ssize_t size = ::read(pipe_.get(), part.data(), part.size());
    if (size <= 0) break;
    text.append(part.data(), static_cast<size_t>(size));
  }
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  if (WIFSIGNALED(status)) text += fmt::format("died of signal {}", WTERMSIG(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
    text += fmt::format("exit code {}", WEXITSTATUS(status));
  }
  return text;
}

}  // namespace weightcast::testing
