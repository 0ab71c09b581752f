// A trainer process sends two versions of a small model to a rollout process, which compares every
// byte of what it holds after each commit. Exits with 0 only if all of them are right.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "weightcast/engine/options.h"
#include "weightcast/engine/session.h"
#include "weightcast/plan/tensor_meta.h"

namespace {

using weightcast::DType;
using weightcast::TensorMeta;

using Bytes = std::vector<std::byte>;

constexpr uint64_t kNumVersions = 2;
constexpr uint64_t kBucketSize = 64 * weightcast::kKiB;

/// A matrix larger than a bucket, an odd size, a scalar, and a tensor without elements.
const std::vector<TensorMeta> kModel = {
    {.name = "embed.weight", .dtype = DType::kBf16, .shape = {1000, 96}},
    {.name = "embed.scales", .dtype = DType::kU8, .shape = {3, 7}},
    {.name = "step", .dtype = DType::kI64, .shape = {}},
    {.name = "adapter", .dtype = DType::kF32, .shape = {0, 16}},
};

/// Byte i of a tensor differs from its neighbours, from other tensors and from other versions.
std::byte weight(uint64_t version, uint64_t tensor, uint64_t i) {
  const uint64_t mixed = (version * 1'000'003 + tensor * 7919 + i + 1) * 0x9e3779b97f4a7c15;
  return static_cast<std::byte>(mixed >> 56);
}

Bytes make_weights(uint64_t version, uint64_t tensor) {
  Bytes bytes(weightcast::byte_size(kModel[tensor]));
  for (uint64_t i = 0; i < bytes.size(); ++i) bytes[i] = weight(version, tensor, i);
  return bytes;
}

[[noreturn]] void fail(const char* who, const std::string& why) {
  std::cerr << who << ": " << why << '\n';
  std::exit(EXIT_FAILURE);
}

/// The value of `result`, or the end of the process with its error.
template <typename T>
T take(const char* who, weightcast::Result<T> result) {
  if (!result) fail(who, result.error().message());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

void run_trainer(int ticket_pipe) {
  auto session = take("trainer", weightcast::Session::host({.bucket_size = kBucketSize}));
  // Whoever has the ticket may join: it travels by a pipe, not on a command line.
  const std::string ticket = session->ticket() + "\n";
  if (::write(ticket_pipe, ticket.data(), ticket.size()) != std::ssize(ticket)) {
    fail("trainer", "the ticket could not be written");
  }
  ::close(ticket_pipe);

  for (uint64_t version = 1; version <= kNumVersions; ++version) {
    auto sender = take("trainer", session->begin_send(version, kModel));
    for (uint64_t tensor = 0; tensor < kModel.size(); ++tensor) {
      const Bytes bytes = make_weights(version, tensor);
      take("trainer", sender->push(kModel[tensor], bytes));
    }
    const auto stats = take("trainer", sender->finish());
    std::cout << "trainer: version " << version << ", " << stats.tensors << " tensors, "
              << stats.bytes << " bytes, " << stats.buckets << " buckets, digest "
              << stats.digest.hex() << '\n';
  }
}

/// Receives one version into memory of its own and makes it visible at commit.
void receive_version(weightcast::Session& session, std::vector<Bytes>& live) {
  auto receiver = take("rollout", session.begin_receive());
  std::vector<Bytes> staged(receiver->metas().size());
  while (auto lease = take("rollout", receiver->next())) {
    for (const weightcast::Piece& piece : lease->pieces()) {
      Bytes& bytes = staged[piece.tensor];
      bytes.resize(weightcast::byte_size(receiver->metas()[piece.tensor]));
      const weightcast::MemoryView place(bytes.data() + piece.offset, piece.bytes.size());
      take("rollout", receiver->copy_out(piece, place));
    }
  }
  take("rollout", receiver->finish([&]() -> weightcast::Status {
    live.swap(staged);
    return {};
  }));
}

std::string read_ticket(int ticket_pipe) {
  std::string ticket;
  char next = 0;
  while (::read(ticket_pipe, &next, 1) == 1 && next != '\n') ticket.push_back(next);
  return ticket;
}

void run_rollout(int ticket_pipe) {
  auto session = take("rollout", weightcast::Session::join({.ticket = read_ticket(ticket_pipe)}));
  std::vector<Bytes> live;
  for (uint64_t version = 1; version <= kNumVersions; ++version) {
    receive_version(*session, live);
    for (uint64_t tensor = 0; tensor < kModel.size(); ++tensor) {
      if (live.at(tensor) != make_weights(version, tensor)) {
        fail("rollout", kModel[tensor].name + " is not what was sent");
      }
    }
    std::cout << "rollout: version " << version << " is bit-identical\n";
  }
}

}  // namespace

int main() {
  int ticket_pipe[2];
  if (::pipe(ticket_pipe) != 0) fail("main", "no pipe");
  const pid_t trainer = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) fail("main", "no second process");
  if (child == 0) {
    // The child must not outlive its parent, however that ends.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != trainer) return EXIT_FAILURE;
    ::close(ticket_pipe[1]);
    run_rollout(ticket_pipe[0]);
    return EXIT_SUCCESS;
  }
  ::close(ticket_pipe[0]);
  run_trainer(ticket_pipe[1]);
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status)) fail("main", "rollout died");
  return WEXITSTATUS(status);
}
