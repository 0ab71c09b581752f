// The raw pipeline: one writer, N readers, a ring of slots in shared memory, two copies. The best
// loops known, no metadata, no checks: what the engine is measured against.
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/common/ranks.h"
#include "bench/common/workload.h"
#include "weightcast/base/hash.h"
#include "weightcast/base/mapping.h"
#include "weightcast/base/size.h"
#include "weightcast/device/host_copy.h"
#include "weightcast/plan/bucket.h"

namespace weightcast::bench {
namespace {

constexpr size_t kMaxReaders = 15;

struct alignas(64) Word {
  std::atomic<uint32_t> value{0};
};

/// Counters only grow, over all runs; one writer each.
struct Control {
  Word run;        ///< the run that readers shall take part in
  Word published;  ///< buckets filled so far
  std::array<Word, kMaxReaders> ready;
  std::array<Word, kMaxReaders> released;  ///< buckets copied out so far
  std::array<Word, kMaxReaders> verified;
};

struct Part {
  uint64_t arena_offset;
  uint64_t slot_offset;
  uint64_t size;
};
using Bucket = std::vector<Part>;

using CopyFunction = void (*)(std::byte*, const std::byte*, size_t);

struct Settings {
  size_t num_readers;
  uint64_t bucket_size;
  size_t num_slots;
  bool checksum;
  std::vector<Tensor> tensors;
  std::vector<Bucket> buckets;
  CopyKernel kernel;
};

// Whole slots, cut from the arena without regard to tensors: nothing moves faster.
std::vector<Bucket> slice_arena(uint64_t size, uint64_t bucket_size) {
  std::vector<Bucket> buckets;
  for (uint64_t at = 0; at < size; at += bucket_size) {
    buckets.push_back({{at, 0, std::min(bucket_size, size - at)}});
  }
  return buckets;
}

// The engine's own plan: one copy a tensor, as anybody has to who packs tensors that lie apart.
std::vector<Bucket> pack_tensors(const std::vector<Tensor>& tensors, uint64_t bucket_size) {
  const auto metas = make_metas(tensors);
  std::vector<Bucket> buckets;
  for (const PlannedBucket& planned : make_plan(metas, bucket_size).buckets) {
    Bucket& bucket = buckets.emplace_back();
    for (const Extent& extent : planned.extents) {
      bucket.push_back({tensors[extent.tensor].offset + extent.tensor_offset, extent.bucket_offset,
                        extent.size});
    }
  }
  return buckets;
}

// Copies, and if wanted digests each block while the cache still holds it. 128 KiB blocks were the
// best of those measured (a whole second pass costs twice as much).
uint64_t move_bytes(const Settings& settings, std::byte* to, const std::byte* from, uint64_t size) {
  if (!settings.checksum) {
    settings.kernel.copy(to, from, size);
    return 0;
  }
  constexpr uint64_t kBlock = 128 * kKiB;
  uint64_t digest = 0;
  for (uint64_t at = 0; at < size; at += kBlock) {
    const uint64_t count = std::min(kBlock, size - at);
    settings.kernel.copy(to + at, from + at, count);
    digest = std::rotl(digest, 1) ^ xxh3_64({from + at, count});
  }
  return digest;
}

class Ring {
 public:
  static Result<Ring> create(const Settings& settings) {
    WEIGHTCAST_ASSIGN(Fd memory, create_memfd("bench-control", sizeof(Control)));
    WEIGHTCAST_ASSIGN(Mapping control, Mapping::map(memory, sizeof(Control), Access::kReadWrite));
    const uint64_t digests_size = settings.num_slots * sizeof(uint64_t);
    const uint64_t size = settings.num_slots * settings.bucket_size + digests_size;
    WEIGHTCAST_ASSIGN(Fd slots_memory, create_memfd("bench-slots", size));
    WEIGHTCAST_ASSIGN(Mapping slots, Mapping::map(slots_memory, size, Access::kReadWrite));
    WEIGHTCAST_TRY(populate({slots.data(), slots.size()}, Access::kReadWrite));
    new (control.data()) Control;
    return Ring(settings, std::move(control), std::move(slots));
  }

  Control& control() { return *std::launder(reinterpret_cast<Control*>(control_.data())); }
  std::byte* slot(uint32_t number) const {
    return slots_.data() + (number - 1) % num_slots_ * bucket_size_;
  }
  /// What the writer digested into the slot of bucket `number`.
  uint64_t& digest(uint32_t number) const {
    return reinterpret_cast<uint64_t*>(slots_.data() +
                                       num_slots_ * bucket_size_)[(number - 1) % num_slots_];
  }

 private:
  Ring(const Settings& settings, Mapping control, Mapping slots)
      : control_(std::move(control)),
        slots_(std::move(slots)),
        num_slots_(settings.num_slots),
        bucket_size_(settings.bucket_size) {}
  Mapping control_;
  Mapping slots_;
  size_t num_slots_;
  uint64_t bucket_size_;
};

// Waits until the counter has reached `number`.
void wait_for(const Word& word, uint32_t number) {
  for (;;) {
    const uint32_t seen = word.value.load(std::memory_order_acquire);
    if (static_cast<int32_t>(seen - number) >= 0) return;
    wait_while(word.value, seen);
  }
}

int read_for_ever(const Settings& settings, Ring& ring, size_t reader) {
  auto arena = Arena::create(payload_size(settings.tensors));
  if (!arena) return EXIT_FAILURE;
  Control& control = ring.control();
  uint32_t number = 0;
  for (uint32_t run = 1;; ++run) {
    wait_for(control.run, run);
    advance(control.ready[reader].value);
    for (const Bucket& bucket : settings.buckets) {
      wait_for(control.published, ++number);
      uint64_t digest = 0;
      for (const Part& part : bucket) {
        digest ^= move_bytes(settings, arena->bytes().data() + part.arena_offset,
                             ring.slot(number) + part.slot_offset, part.size);
      }
      if (digest != ring.digest(number)) std::abort();
      advance(control.released[reader].value);
    }
    if (run > 1) continue;
    if (first_difference(arena->bytes()) != arena->bytes().size()) std::abort();
    advance(control.verified[reader].value);
  }
}

class Writer {
 public:
  Writer(const Settings& settings, Ring& ring, Arena arena)
      : settings_(settings), ring_(ring), arena_(std::move(arena)) {}

  /// Wakes the readers, so that only the transfer itself is timed.
  void gather() {
    advance(ring_.control().run.value);
    ++run_;
    for (size_t i = 0; i < settings_.num_readers; ++i) wait_for(ring_.control().ready[i], run_);
  }

  Status transfer() {
    Control& control = ring_.control();
    const auto slots = static_cast<uint32_t>(settings_.num_slots);
    for (const Bucket& bucket : settings_.buckets) {
      ++number_;
      if (number_ > slots) wait_released(number_ - slots);
      uint64_t digest = 0;
      for (const Part& part : bucket) {
        digest ^= move_bytes(settings_, ring_.slot(number_) + part.slot_offset,
                             arena_.bytes().data() + part.arena_offset, part.size);
      }
      ring_.digest(number_) = digest;
      advance(control.published.value);
    }
    wait_released(number_);
    return {};
  }

 private:
  void wait_released(uint32_t number) {
    for (size_t i = 0; i < settings_.num_readers; ++i) {
      wait_for(ring_.control().released[i], number);
    }
  }

  const Settings& settings_;
  Ring& ring_;
  Arena arena_;
  uint32_t run_ = 0;
  uint32_t number_ = 0;
};

int run(const Settings& settings) {
  auto ring = Ring::create(settings);
  if (!ring) {
    std::cerr << ring.error().message() << '\n';
    return EXIT_FAILURE;
  }
  auto ranks = Ranks::fork(static_cast<int>(settings.num_readers), [&](int rank) {
    return read_for_ever(settings, *ring, static_cast<size_t>(rank) - 1);
  });
  auto arena = Arena::create(payload_size(settings.tensors));
  if (!ranks || !arena) {
    std::cerr << (ranks ? arena.error() : ranks.error()).message() << '\n';
    return EXIT_FAILURE;
  }
  fill_pattern(arena->bytes());
  Writer writer(settings, *ring, *std::move(arena));
  writer.gather();
  if (!writer.transfer()) return EXIT_FAILURE;
  for (size_t i = 0; i < settings.num_readers; ++i) wait_for(ring->control().verified[i], 1);
  const auto ready = make_ready(ranks->pids(), settings.kernel.name, payload_size(settings.tensors),
                                /*verified=*/true);
  return serve(ready, [&]() -> Result<Sample> {
    writer.gather();
    return take_sample(ranks->pids(), [&] { return writer.transfer(); });
  });
}

int main_checked(const Arguments& arguments) {
  Settings settings{.num_readers = arguments.number("receivers", 1),
                    .bucket_size = arguments.number("bucket", 64 * kMiB),
                    .num_slots = arguments.number("slots", 2),
                    .checksum = arguments.text("checksum", "off") == "on",
                    .tensors = make_tensors(arguments.text("tensors", "large"),
                                            arguments.number("payload", kGiB)),
                    .buckets = {},
                    .kernel = copy_kernels().front()};
  if (settings.num_readers < 1 || settings.num_readers > kMaxReaders || settings.num_slots < 1) {
    std::cerr << fmt::format("1 to {} receivers, 1 slot or more\n", kMaxReaders);
    return EXIT_FAILURE;
  }
  settings.buckets = arguments.text("pack", "slices") == "tensors"
                         ? pack_tensors(settings.tensors, settings.bucket_size)
                         : slice_arena(payload_size(settings.tensors), settings.bucket_size);
  const std::string wanted = arguments.text("kernel", "");
  for (const CopyKernel& kernel : copy_kernels()) {
    if (kernel.name == wanted) settings.kernel = kernel;
  }
  if (wanted.empty()) settings.kernel = calibration().winner;
  return run(settings);
}

}  // namespace
}  // namespace weightcast::bench

int main(int argc, char** argv) {
  const auto arguments = weightcast::bench::Arguments::parse(argc, argv);
  if (arguments) return weightcast::bench::main_checked(*arguments);
  std::cerr << arguments.error().message() << '\n';
  return EXIT_FAILURE;
}
