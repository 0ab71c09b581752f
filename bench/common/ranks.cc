#include "ranks.h"

#include <chrono>
#include <climits>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "weightcast/base/check.h"
#include "weightcast/base/size.h"

namespace weightcast::bench {
namespace {

double cpu_seconds_of(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  WEIGHTCAST_CHECK(clock_getcpuclockid(pid, &clock) == 0);
  WEIGHTCAST_CHECK(clock_gettime(clock, &time) == 0);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Field 10 of proc(5)'s stat; the name in field 2 may hold spaces but ends with the last `)`.
uint64_t minor_faults_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::string skipped;
  for (int field = 3; field < 10; ++field) fields >> skipped;
  uint64_t faults = 0;
  WEIGHTCAST_CHECK(static_cast<bool>(fields >> faults));
  return faults;
}

int run_child(int rank, pid_t parent, const std::function<int(int)>& child) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) return EXIT_FAILURE;  // it died before the line above
  pin_to_cpu(rank);
  return child(rank);
}

}  // namespace

Result<Arguments> Arguments::parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const size_t equals = argument.find('=');
    if (equals == std::string_view::npos) {
      return Error(Code::kInvalidArgument, fmt::format("`{}` is not name=value", argument));
    }
    arguments.values_[std::string(argument.substr(0, equals))] = argument.substr(equals + 1);
  }
  return arguments;
}

std::string Arguments::text(const std::string& name, std::string_view fallback) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::string(fallback) : found->second;
}

uint64_t Arguments::number(const std::string& name, uint64_t fallback) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return fallback;
  const auto value = parse_size(found->second);
  if (value) return *value;
  std::cerr << value.error().message() << '\n';
  std::exit(EXIT_FAILURE);
}

void pin_to_cpu(int rank) {
  static const cpu_set_t allowed = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    WEIGHTCAST_CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    return set;
  }();
  int skip = rank % CPU_COUNT(&allowed);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &allowed) || skip-- > 0) ++cpu;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  WEIGHTCAST_CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
}

Usage usage_of(const std::vector<pid_t>& processes) {
  Usage usage;
  for (const pid_t pid : processes) {
    usage.cpu_seconds += cpu_seconds_of(pid);
    usage.minor_faults += minor_faults_of(pid);
  }
  return usage;
}

void wait_while(const std::atomic<uint32_t>& word, uint32_t seen) {
  constexpr int kSpins = 200;  // what the best raw loops of this kind use
  for (int spin = 0; spin < kSpins; ++spin) {
    if (word.load(std::memory_order_acquire) != seen) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  while (word.load(std::memory_order_acquire) == seen) {
    syscall(SYS_futex, &word, FUTEX_WAIT, seen, nullptr, nullptr, 0);
  }
}

void advance(std::atomic<uint32_t>& word) {
  word.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

Result<Ranks> Ranks::fork(int num_children, const std::function<int(int)>& child) {
  Ranks ranks;
  const pid_t parent = getpid();
  ranks.pids_.push_back(parent);
  pin_to_cpu(0);
  for (int rank = 1; rank <= num_children; ++rank) {
    const pid_t pid = ::fork();
    if (pid < 0) return system_error(errno, "fork");
    if (pid == 0) std::_Exit(run_child(rank, parent, child));
    ranks.pids_.push_back(pid);
  }
  return ranks;
}

bool Ranks::join() {
  bool clean = true;
  for (size_t rank = 1; rank < pids_.size(); ++rank) {
    int status = 0;
    clean &= waitpid(pids_[rank], &status, 0) == pids_[rank] && WIFEXITED(status) &&
             WEXITSTATUS(status) == EXIT_SUCCESS;
  }
  return clean;
}

Result<Sample> take_sample(const std::vector<pid_t>& processes,
                           const std::function<Status()>& transfer) {
  const Usage before = usage_of(processes);
  const auto begin = Clock::now();
  WEIGHTCAST_TRY(transfer());
  const auto end = Clock::now();
  const Usage after = usage_of(processes);
  return Sample{seconds_between(begin, end),
                {after.cpu_seconds - before.cpu_seconds, after.minor_faults - before.minor_faults}};
}

std::string make_ready(const std::vector<pid_t>& pids, std::string_view kernel, uint64_t payload,
                       bool verified) {
  return fmt::format(R"({{"pids": [{}], "kernel": "{}", "payload": {}, "verified": {}}})",
                     fmt::join(pids, ", "), kernel, payload, verified);
}

int serve(std::string_view ready, const std::function<Result<Sample>()>& run) {
  std::cout << ready << std::endl;
  for (std::string command; std::getline(std::cin, command) && command != "quit";) {
    const auto sample = run();
    if (!sample) {
      std::cerr << sample.error().message() << '\n';
      return EXIT_FAILURE;
    }
    std::cout << fmt::format(R"({{"seconds": {:.9f}, "cpu_seconds": {:.6f}, "minor_faults": {}}})",
                             sample->seconds, sample->usage.cpu_seconds, sample->usage.minor_faults)
              << std::endl;
  }
  return EXIT_SUCCESS;
}

}  // namespace weightcast::bench
