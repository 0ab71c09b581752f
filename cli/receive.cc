#include <memory>
#include <string>
#include <utility>

#include "commands.h"
#include "out_of_memory.h"
#include "report.h"
#include "ticket_file.h"
#include "transfer.h"
#include "weightcast/engine/session.h"

namespace weightcast {
namespace {

Status receive(const ReceiveCommand& command, Interrupts& interrupts, TransferReport& report) {
  TicketSource tickets(command.ticket_file);
  WEIGHTCAST_ASSIGN(std::string ticket, tickets.first(command.timeout));
  const JoinOptions options{.ticket = std::move(ticket),
                            .rank = command.rank,
                            .timeout = command.timeout,
                            .reread_ticket = [&tickets] { return tickets.reread(); }};
  WEIGHTCAST_ASSIGN(const std::unique_ptr<Session> session, Session::join(options));
  report.rank = session->rank();
  report.world_size = session->world_size();
  const InterruptScope scope(interrupts, session.get());
  for (int i = 0; i < command.versions; ++i) {
    std::string file;
    auto stats = catch_out_of_memory(
        [&] { return receive_version(*session, command.out, command.versions > 1, file); });
    if (!stats) {
      session->abort(stats.error());
      return stats.error();
    }
    report.versions.push_back(*std::move(stats));
    if (!file.empty()) report.files.push_back(std::move(file));
  }
  return {};
}

}  // namespace

int run_receive(const ReceiveCommand& command, Interrupts& interrupts) {
  TransferReport report{.command = "receive"};
  if (const Status status = receive(command, interrupts, report); !status) {
    report.error = status.error();
  }
  return finish_transfer(report, command.json, interrupts);
}

}  // namespace weightcast
