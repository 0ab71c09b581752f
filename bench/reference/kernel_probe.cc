// Which copy loop is the best here, measured longer than a program can afford at its start: two
// threads at a time, as writer and reader are, over cold memory. References use the winner.
#include <algorithm>
#include <barrier>
#include <ctime>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bench/common/ranks.h"
#include "bench/common/workload.h"
#include "weightcast/base/size.h"
#include "weightcast/device/host_copy.h"

namespace weightcast::bench {
namespace {

constexpr int kThreads = 2;
constexpr int kPasses = 5;
constexpr uint64_t kArenaSize = 256 * kMiB;
constexpr uint64_t kCallSize = 8 * kMiB;  // a middling tensor

struct Pair {
  Arena source;
  Arena destination;
};

// Processor time, not wall time, so that whatever else runs here does not choose the winner.
double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void copy_arena(const CopyKernel& kernel, Pair& pair) {
  for (uint64_t at = 0; at < kArenaSize; at += kCallSize) {
    kernel.copy(pair.destination.bytes().data() + at, pair.source.bytes().data() + at, kCallSize);
  }
}

double measure(const CopyKernel& kernel, std::vector<Pair>& pairs) {
  std::vector<double> rates;
  std::barrier start(kThreads);
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      pin_to_cpu(i);
      for (int pass = 0; pass < kPasses; ++pass) {
        start.arrive_and_wait();
        const double begin = thread_seconds();
        copy_arena(kernel, pairs[static_cast<size_t>(i)]);
        const double rate = static_cast<double>(kArenaSize) / (thread_seconds() - begin);
        if (i == 0) rates.push_back(rate * 1e-9);
      }
    });
  }
  threads.clear();
  std::ranges::nth_element(rates, rates.begin() + kPasses / 2);
  return rates[kPasses / 2];
}

Status run() {
  std::vector<Pair> pairs;
  for (int i = 0; i < kThreads; ++i) {
    WEIGHTCAST_ASSIGN(Arena source, Arena::create(kArenaSize));
    WEIGHTCAST_ASSIGN(Arena destination, Arena::create(kArenaSize));
    pairs.push_back({std::move(source), std::move(destination)});
  }
  std::string rows;
  for (const CopyKernel& kernel : copy_kernels()) {
    if (!rows.empty()) rows += ", ";
    rows += fmt::format(R"("{}": {:.2f})", kernel.name, measure(kernel, pairs));
  }
  std::cout << fmt::format("{{{}}}", rows) << std::endl;
  return {};
}

}  // namespace
}  // namespace weightcast::bench

int main() {
  const auto status = weightcast::bench::run();
  if (status) return EXIT_SUCCESS;
  std::cerr << status.error().message() << '\n';
  return EXIT_FAILURE;
}
