#include "weightcast/device/calibration.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weightcast/base/deadline.h"
#include "weightcast/base/log.h"
#include "weightcast/base/mapping.h"
#include "weightcast/base/size.h"
#include "weightcast/device/copy_kernels.h"

namespace weightcast {
namespace {

constexpr size_t kMemorySize = 16 * kMiB;  // half of it source, half destination
constexpr size_t kPassSize = 1 * kMiB;
constexpr int kNumRounds = 4;
// A kernel that is this much slower than the best so far gets no further passes: the slowest would
// else take most of the time.
constexpr double kHopeless = 0.6;
constexpr std::array<DigestOrder, 2> kDigestOrders{
    {{false, 2 * kDigestBlockSize}, {true, kDigestBlockSize}}};

// Walks its memory in a ring, so that by the time a place comes round again it has left the cache
// of the core.
class ColdMemory {
 public:
  explicit ColdMemory(Mapping mapping) : mapping_(std::move(mapping)) {}

  /// Seconds that one pass of `work` takes over the next stretch.
  template <typename Work>
  double time(Work work) {
    const size_t half = mapping_.size() / 2;
    const Copy copy{.destination = {mapping_.data() + half + offset_, kPassSize},
                    .source = {mapping_.data() + offset_, kPassSize}};
    offset_ = (offset_ + kPassSize) % half;
    const auto start = Clock::now();
    work(copy);
    return seconds_between(start, Clock::now());
  }

 private:
  Mapping mapping_;
  size_t offset_ = 0;
};

double bandwidth_gbps(double seconds) { return static_cast<double>(kPassSize) / seconds / 1e9; }

// The best of a few passes, since time that the host steals only ever makes a pass slower; and the
// candidates in turn, since it comes in stretches longer than a candidate's passes together.
std::vector<CalibrationRow> measure(std::span<const CopyKernel> candidates, ColdMemory& memory) {
  std::vector<CalibrationRow> rows;
  for (const CopyKernel& kernel : candidates) rows.push_back({kernel.name, 0});
  double best = 0;
  for (int round = 0; round < kNumRounds; ++round) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      double& bandwidth = rows[i].bandwidth_gbps;
      if (round >= 2 && bandwidth < kHopeless * best) continue;
      const double seconds = memory.time([&](const Copy& copy) {
        candidates[i].copy(copy.destination.data(), copy.source.data(), copy.source.size());
      });
      bandwidth = std::max(bandwidth, bandwidth_gbps(seconds));
      best = std::max(best, bandwidth);
    }
  }
  return rows;
}

DigestOrder measure_order(CopyKernel kernel, ColdMemory& memory) {
  std::array<uint64_t, kPassSize / kDigestBlockSize> digests{};
  std::array<double, kDigestOrders.size()> best{};
  for (int round = 0; round < kNumRounds; ++round) {
    for (size_t i = 0; i < kDigestOrders.size(); ++i) {
      const double seconds = memory.time([&](Copy copy) {
        copy.block_digests = digests;
        copy_and_digest(kernel, kDigestOrders[i], copy);
      });
      best[i] = std::max(best[i], bandwidth_gbps(seconds));
    }
  }
  return kDigestOrders[best[1] > best[0] ? 1 : 0];
}

const CopyKernel* find_kernel(std::string_view name) {
  const auto kernels = copy_kernels();
  const auto found = std::ranges::find(kernels, name, &CopyKernel::name);
  return found == kernels.end() ? nullptr : &*found;
}

void warn_unknown(std::string_view wanted) {
  std::vector<std::string_view> names;
  for (const CopyKernel& kernel : copy_kernels()) names.push_back(kernel.name);
  log_message(LogLevel::kWarn,
              fmt::format("no copy kernel `{}` on this machine, measuring instead; there are {}",
                          wanted, fmt::join(names, ", ")));
}

}  // namespace

MeasuredChoice choose_kernel(std::string_view wanted) {
  const auto start = Clock::now();
  const CopyKernel* named = find_kernel(wanted);
  if (named == nullptr && !wanted.empty()) warn_unknown(wanted);
  MeasuredChoice choice{{named == nullptr ? copy_kernels().front() : *named, {}, 0},
                        kDigestOrders[0]};
  Result<Mapping> mapping = Mapping::anonymous(kMemorySize);
  // Without the memory to measure in, the plain copy has to do; the session itself needs more.
  if (!mapping || !populate({mapping->data(), mapping->size()}, Access::kReadWrite)) return choice;
  ColdMemory memory(*std::move(mapping));
  Calibration& calibration = choice.calibration;
  if (named == nullptr) {
    calibration.rows = measure(calibration_candidates(), memory);
    const auto best =
        std::ranges::max_element(calibration.rows, {}, &CalibrationRow::bandwidth_gbps);
    calibration.winner = *find_kernel(best->kernel);
  }
  choice.order = measure_order(calibration.winner, memory);
  calibration.seconds = seconds_between(start, Clock::now());
  return choice;
}

const MeasuredChoice& chosen_kernel() {
  static const MeasuredChoice choice = [] {
    const char* wanted = std::getenv("WEIGHTCAST_COPY_KERNEL");
    return choose_kernel(wanted == nullptr ? "" : wanted);
  }();
  return choice;
}

const Calibration& calibration() { return chosen_kernel().calibration; }

}  // namespace weightcast
