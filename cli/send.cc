#include <filesystem>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "commands.h"
#include "out_of_memory.h"
#include "output.h"
#include "report.h"
#include "ticket_file.h"
#include "transfer.h"
#include "weightcast/engine/session.h"
#include "weightcast/plan/safetensors.h"

namespace weightcast {
namespace {

Status send_versions(Session& session, SafetensorsModel model, const SendCommand& command,
                     TransferReport& report) {
  WEIGHTCAST_TRY(session.wait_for_ranks());
  for (int version = 1; version <= command.versions; ++version) {
    if (version > 1) {
      const std::vector<std::filesystem::path> paths(command.model.begin(), command.model.end());
      WEIGHTCAST_ASSIGN(model, SafetensorsModel::open(paths));
    }
    WEIGHTCAST_ASSIGN(TransferStats stats,
                      send_version(session, static_cast<uint64_t>(version), model));
    report.versions.push_back(std::move(stats));
    const std::vector<Error>& lost = report.versions.back().lost;
    if (!lost.empty()) {
      return lost.front().context(
          fmt::format("version {} is committed on all ranks that are left, but", version));
    }
  }
  return {};
}

Status send(const SendCommand& command, Interrupts& interrupts, TransferReport& report) {
  const std::vector<std::filesystem::path> paths(command.model.begin(), command.model.end());
  WEIGHTCAST_ASSIGN(SafetensorsModel model, SafetensorsModel::open(paths));
  WEIGHTCAST_ASSIGN(const std::unique_ptr<Session> session, Session::host(command.host));
  report.rank = session->rank();
  report.world_size = session->world_size();
  const InterruptScope scope(interrupts, session.get());
  // After the bind: a second sender on a port that is taken must not replace the first one's file.
  WEIGHTCAST_ASSIGN(const auto ticket,
                    PublishedTicket::publish(command.ticket_file, session->ticket()));
  if (stderr_is_terminal()) {
    write_err(fmt::format("waiting for {} receivers", command.host.num_receivers));
  }
  Status status = catch_out_of_memory(
      [&] { return send_versions(*session, std::move(model), command, report); });
  if (!status) session->abort(status.error());
  return status;
}

}  // namespace

int run_send(const SendCommand& command, Interrupts& interrupts) {
  TransferReport report{.command = "send"};
  if (const Status status = send(command, interrupts, report); !status) {
    report.error = status.error();
  }
  return finish_transfer(report, command.json, interrupts);
}

}  // namespace weightcast
