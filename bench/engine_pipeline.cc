// The engine on the same tensors: rank 0 pushes cold tensors, every other rank copies each piece
// into cold tensors of its own, through the public interface only. Each sample is a whole version,
// from `begin_send` to the commit on all ranks.
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/common/ranks.h"
#include "bench/common/round_trip.h"
#include "bench/common/workload.h"
#include "weightcast/base/size.h"
#include "weightcast/device/host_copy.h"
#include "weightcast/engine/session.h"

namespace weightcast::bench {
namespace {

struct Settings {
  int num_receivers;
  uint64_t bucket_size;
  bool checksum;
  /// The root makes the bytes as it sends them and receivers only verify them, so that more
  /// weights than memory can move.
  bool synthetic;
  std::vector<Tensor> tensors;
};

using VerifiedRanks = std::atomic<uint32_t>;

constexpr Duration kPatience{3'600'000};  // between samples the harness measures the other side

// What receivers do with the pieces of one version.
Status take_version(const Settings& settings, Receiver& receiver, MemoryView arena) {
  for (;;) {
    WEIGHTCAST_ASSIGN(std::optional<BucketLease> lease, receiver.next());
    if (!lease) break;
    for (const Piece& piece : lease->pieces()) {
      if (settings.synthetic) {
        WEIGHTCAST_TRY(receiver.verify(piece));
        continue;
      }
      const uint64_t offset = settings.tensors[piece.tensor].offset + piece.offset;
      WEIGHTCAST_TRY(receiver.copy_out(piece, arena.subspan(offset, piece.bytes.size())));
    }
  }
  WEIGHTCAST_TRY(receiver.finish([]() -> Status { return {}; }));
  return {};
}

Status receive_for_ever(const Settings& settings, const std::string& ticket, int rank,
                        VerifiedRanks& verified) {
  const uint64_t size = settings.synthetic ? 0 : payload_size(settings.tensors);
  WEIGHTCAST_ASSIGN(Arena arena, Arena::create(size));
  WEIGHTCAST_ASSIGN(auto session,
                    Session::join({.ticket = ticket, .rank = rank, .reread_ticket = {}}));
  for (bool first = true;; first = false) {
    auto receiver = session->begin_receive(kPatience);
    if (!receiver) {
      if (receiver.error().code() == Code::kPeerLost) return {};  // the root has left
      return receiver.error();
    }
    WEIGHTCAST_TRY(take_version(settings, **receiver, arena.bytes()));
    if (!first) continue;
    if (first_difference(arena.bytes()) != size) {
      return Error(Code::kCorruption, "bytes differ after the first version");
    }
    advance(verified);
  }
}

int run_receiver(const Settings& settings, const std::string& ticket, int rank,
                 VerifiedRanks& verified) {
  const auto status = receive_for_ever(settings, ticket, rank, verified);
  if (status) return EXIT_SUCCESS;
  std::cerr << fmt::format("rank {}: {}\n", rank, status.error().message());
  return EXIT_FAILURE;
}

// The bytes of a tensor that is nowhere in memory.
class PatternReader final : public TensorReader {
 public:
  explicit PatternReader(uint64_t tensor_offset) : tensor_offset_(tensor_offset) {}
  Status read(uint64_t offset, MemoryView destination) override {
    fill_pattern(destination, tensor_offset_ + offset);
    return {};
  }

 private:
  uint64_t tensor_offset_;
};

class Trainer {
 public:
  Trainer(const Settings& settings, Session& session, MemoryView arena)
      : settings_(settings),
        session_(session),
        arena_(arena),
        metas_(make_metas(settings.tensors)) {}

  Status transfer() {
    WEIGHTCAST_ASSIGN(auto sender, session_.begin_send(++version_, metas_));
    for (size_t i = 0; i < metas_.size(); ++i) WEIGHTCAST_TRY(push(*sender, i));
    WEIGHTCAST_TRY(sender->finish());
    return {};
  }

 private:
  Status push(Sender& sender, size_t index) {
    const Tensor& tensor = settings_.tensors[index];
    if (!settings_.synthetic) {
      return sender.push(metas_[index], arena_.subspan(tensor.offset, tensor.size));
    }
    PatternReader reader(tensor.offset);
    return sender.push(metas_[index], reader);
  }

  const Settings& settings_;
  Session& session_;
  MemoryView arena_;
  std::vector<TensorMeta> metas_;
  uint64_t version_ = 0;
};

Status run_root(const Settings& settings, const Ranks& ranks, Letter& letter,
                const VerifiedRanks& verified) {
  const uint64_t size = payload_size(settings.tensors);
  WEIGHTCAST_ASSIGN(Arena arena, Arena::create(settings.synthetic ? 0 : size));
  fill_pattern(arena.bytes());
  WEIGHTCAST_ASSIGN(auto session, Session::host({.num_receivers = settings.num_receivers,
                                                 .bucket_size = settings.bucket_size,
                                                 .checksum = settings.checksum,
                                                 .cast = std::nullopt}));
  for (int i = 0; i < settings.num_receivers; ++i) letter.send(session->ticket());
  WEIGHTCAST_TRY(session->wait_for_ranks());
  Trainer trainer(settings, *session, arena.bytes());
  WEIGHTCAST_TRY(trainer.transfer());
  const auto wanted = static_cast<uint32_t>(settings.num_receivers);
  for (uint32_t seen = 0; seen != wanted; seen = verified.load(std::memory_order_acquire)) {
    wait_while(verified, seen);
  }
  const auto ready =
      make_ready(ranks.pids(), calibration().winner.name, size, /*verified=*/!settings.synthetic);
  const int status =
      serve(ready, [&] { return take_sample(ranks.pids(), [&] { return trainer.transfer(); }); });
  if (status != EXIT_SUCCESS) return Error(Code::kInternal, "a sample failed");
  return {};
}

Status run(const Settings& settings) {
  WEIGHTCAST_ASSIGN(Letter letter, Letter::create());
  WEIGHTCAST_ASSIGN(Fd memory, create_memfd("bench-verified", sizeof(VerifiedRanks)));
  WEIGHTCAST_ASSIGN(Mapping shared,
                    Mapping::map(memory, sizeof(VerifiedRanks), Access::kReadWrite));
  auto& verified = *new (shared.data()) VerifiedRanks(0);
  WEIGHTCAST_ASSIGN(Ranks ranks, Ranks::fork(settings.num_receivers, [&](int rank) {
                      return run_receiver(settings, letter.receive(), rank, verified);
                    }));
  WEIGHTCAST_TRY(run_root(settings, ranks, letter, verified));
  if (!ranks.join()) return Error(Code::kPeerLost, "a receiver failed");
  return {};
}

Settings make_settings(const Arguments& arguments) {
  return {.num_receivers = static_cast<int>(arguments.number("receivers", 1)),
          .bucket_size = arguments.number("bucket", 64 * kMiB),
          .checksum = arguments.text("checksum", "on") == "on",
          .synthetic = arguments.text("source", "memory") == "synthetic",
          .tensors =
              make_tensors(arguments.text("tensors", "large"), arguments.number("payload", kGiB))};
}

}  // namespace
}  // namespace weightcast::bench

int main(int argc, char** argv) {
  namespace bench = weightcast::bench;
  const auto arguments = bench::Arguments::parse(argc, argv);
  const auto status = arguments ? bench::run(bench::make_settings(*arguments))
                                : weightcast::Status(arguments.error());
  if (status) return EXIT_SUCCESS;
  std::cerr << status.error().message() << '\n';
  return EXIT_FAILURE;
}
