// OpenMPI's broadcast doing the engine's job: rank 0 packs the same cold tensors into buckets, all
// ranks broadcast them, the others copy out into cold tensors of their own.
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include "bench/common/ranks.h"
#include "bench/common/workload.h"
#include "weightcast/base/mapping.h"
#include "weightcast/base/size.h"
#include "weightcast/device/host_copy.h"
#include "weightcast/plan/bucket.h"

namespace weightcast::bench {
namespace {

using RunWord = std::atomic<uint32_t>;

// Between samples the ranks sleep on a word of shared memory: a rank that waits inside MPI spins,
// and would take the processor from the side that is measured then.
Result<Mapping> share_run_word(int rank) {
  int place[2] = {static_cast<int>(getpid()), -1};
  Fd memory;
  if (rank == 0) {
    WEIGHTCAST_ASSIGN(memory, create_memfd("bench-mpi", sizeof(RunWord)));
    place[1] = memory.get();
  }
  MPI_Bcast(place, 2, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank != 0) {
    const auto path = fmt::format("/proc/{}/fd/{}", place[0], place[1]);
    memory = Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!memory.valid()) return system_error(errno, path);
  }
  WEIGHTCAST_ASSIGN(Mapping word, Mapping::map(memory, sizeof(RunWord), Access::kReadWrite));
  if (rank == 0) new (word.data()) RunWord(0);
  MPI_Barrier(MPI_COMM_WORLD);
  return word;
}

class Broadcast {
 public:
  Broadcast(int rank, uint64_t bucket_size, std::vector<Tensor> tensors, Arena arena, Arena buckets)
      : rank_(rank),
        bucket_size_(bucket_size),
        tensors_(std::move(tensors)),
        plan_(make_plan(make_metas(tensors_), bucket_size)),
        arena_(std::move(arena)),
        buckets_(std::move(buckets)),
        copy_(calibration().winner.copy) {}

  Arena& arena() { return arena_; }

  /// All tensors once, over two buckets in turn.
  void transfer() {
    size_t index = 0;
    for (const PlannedBucket& bucket : plan_.buckets) {
      std::byte* memory = buckets_.bytes().data() + index++ % 2 * bucket_size_;
      if (rank_ == 0) pack(bucket, memory);
      broadcast(memory, bucket.used_size);
      if (rank_ != 0) unpack(bucket, memory);
    }
  }

 private:
  std::byte* place(const Extent& extent) const {
    return arena_.bytes().data() + tensors_[extent.tensor].offset + extent.tensor_offset;
  }
  void pack(const PlannedBucket& bucket, std::byte* memory) const {
    for (const Extent& extent : bucket.extents) {
      copy_(memory + extent.bucket_offset, place(extent), extent.size);
    }
  }
  void unpack(const PlannedBucket& bucket, const std::byte* memory) const {
    for (const Extent& extent : bucket.extents) {
      copy_(place(extent), memory + extent.bucket_offset, extent.size);
    }
  }
  // MPI counts elements in an int: words keep a bucket of 2 GiB and more within it.
  static void broadcast(std::byte* memory, uint64_t size) {
    const auto words = static_cast<int>((size + 7) / 8);
    MPI_Bcast(memory, words, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  }

  int rank_;
  uint64_t bucket_size_;
  std::vector<Tensor> tensors_;
  BucketPlan plan_;
  Arena arena_;
  Arena buckets_;
  void (*copy_)(std::byte*, const std::byte*, size_t);
};

// One transfer between two barriers, and the usage of all ranks summed at rank 0.
Sample take_part(Broadcast& broadcast) {
  MPI_Barrier(MPI_COMM_WORLD);
  const Usage before = usage_of({getpid()});
  const double begin = MPI_Wtime();
  broadcast.transfer();
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - begin;
  const Usage after = usage_of({getpid()});
  double mine[2] = {after.cpu_seconds - before.cpu_seconds,
                    static_cast<double>(after.minor_faults - before.minor_faults)};
  double all[2] = {};
  MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  return {seconds, {all[0], static_cast<uint64_t>(all[1])}};
}

// Every byte of every rank is what rank 0 sent.
bool verify(Broadcast& broadcast) {
  broadcast.transfer();
  const auto bytes = broadcast.arena().bytes();
  int mine = first_difference(bytes) == bytes.size() ? 1 : 0;
  int all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all == 1;
}

std::vector<pid_t> gather_pids(int world_size) {
  std::vector<pid_t> pids(static_cast<size_t>(world_size));
  pid_t own = getpid();
  MPI_Gather(&own, 1, MPI_INT, pids.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  return pids;
}

constexpr uint32_t kQuit = 1U << 31;

Status run_root(Broadcast& broadcast, RunWord& word, const std::vector<pid_t>& pids,
                uint64_t payload) {
  serve(make_ready(pids, calibration().winner.name, payload, /*verified=*/true),
        [&]() -> Result<Sample> {
          advance(word);
          return take_part(broadcast);
        });
  word.fetch_or(kQuit);
  advance(word);
  return {};
}

void run_member(Broadcast& broadcast, const RunWord& word) {
  for (uint32_t seen = 0;;) {
    wait_while(word, seen);
    seen = word.load(std::memory_order_acquire);
    if ((seen & kQuit) != 0) return;
    take_part(broadcast);
  }
}

Status run(int rank, int world_size, const Arguments& arguments) {
  pin_to_cpu(rank);
  const uint64_t bucket_size = arguments.number("bucket", 64 * kMiB);
  auto tensors =
      make_tensors(arguments.text("tensors", "large"), arguments.number("payload", kGiB));
  const uint64_t payload = payload_size(tensors);
  WEIGHTCAST_ASSIGN(Arena arena, Arena::create(payload));
  WEIGHTCAST_ASSIGN(Arena buckets, Arena::create(2 * bucket_size));
  if (rank == 0) fill_pattern(arena.bytes());
  Broadcast broadcast(rank, bucket_size, std::move(tensors), std::move(arena), std::move(buckets));
  WEIGHTCAST_ASSIGN(Mapping shared, share_run_word(rank));
  auto& word = *std::launder(reinterpret_cast<RunWord*>(shared.data()));
  const auto pids = gather_pids(world_size);
  if (!verify(broadcast)) return Error(Code::kCorruption, "bytes differ after the broadcast");
  if (rank == 0) return run_root(broadcast, word, pids, payload);
  run_member(broadcast, word);
  return {};
}

}  // namespace
}  // namespace weightcast::bench

int main(int argc, char** argv) {
  using weightcast::bench::Arguments;
  MPI_Init(&argc, &argv);
  int rank = 0;
  int world_size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  const auto arguments = Arguments::parse(argc, argv);
  const auto status = arguments ? weightcast::bench::run(rank, world_size, *arguments)
                                : weightcast::Status(arguments.error());
  if (!status) {
    std::cerr << status.error().message() << '\n';
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  }
  MPI_Finalize();
  return EXIT_SUCCESS;
}
