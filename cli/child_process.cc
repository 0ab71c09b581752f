#include "child_process.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

namespace weightcast {
namespace {

Result<Fd> open_output(const std::filesystem::path& path) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid()) return system_error(errno, fmt::format("create {}", path.string()));
  return fd;
}

// A pipe that already holds `text`, which a pipe's buffer has room for.
Result<Fd> make_input(const std::string& text) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error(errno, "pipe");
  Fd input(ends[0]);
  const Fd writer(ends[1]);
  if (::write(writer.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return system_error(errno, "write to a pipe");
  }
  return input;
}

struct Prepared {
  pid_t parent;
  int input;
  int output;
  int log;
  std::vector<char*> argv{};
};

// Between fork and exec: only what is safe while other threads may hold any lock.
[[noreturn]] void become(const Prepared& prepared) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above.
  if (::getppid() != prepared.parent) ::_exit(127);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(prepared.input, STDIN_FILENO);
  ::dup2(prepared.output, STDOUT_FILENO);
  ::dup2(prepared.log, STDERR_FILENO);
  ::execv("/proc/self/exe", prepared.argv.data());
  ::_exit(127);
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const ChildOptions& options) {
  WEIGHTCAST_ASSIGN(const Fd input, make_input(options.input));
  WEIGHTCAST_ASSIGN(const Fd output, open_output(options.output));
  WEIGHTCAST_ASSIGN(const Fd log, open_output(options.log));
  std::vector<std::string> arguments = options.arguments;
  arguments.insert(arguments.begin(), "weightcast");
  Prepared prepared{
      .parent = ::getpid(), .input = input.get(), .output = output.get(), .log = log.get()};
  for (std::string& argument : arguments) prepared.argv.push_back(argument.data());
  prepared.argv.push_back(nullptr);

  const pid_t pid = ::fork();
  if (pid < 0) return system_error(errno, "fork");
  if (pid == 0) become(prepared);
  Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const int number = errno;
  std::unique_ptr<ChildProcess> child(new ChildProcess(pid, std::move(handle)));
  if (!child->handle_.valid()) return system_error(number, "pidfd_open");
  return child;
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<int> ChildProcess::wait(Deadline deadline) {
  const std::array<int, 1> fds = {handle_.get()};
  WEIGHTCAST_TRY(wait_readable(fds, deadline));
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) return system_error(errno, "waitpid");
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace weightcast
