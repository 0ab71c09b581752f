#include "ranks.h"

#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "pattern.h"
#include "weightcast/pipeline/assembler.h"

namespace weightcast::testing {
namespace {

std::string read_ticket(const Fd& pipe) {
  std::string ticket(4096, '\0');
  const ssize_t size = ::read(pipe.get(), ticket.data(), ticket.size());
  ticket.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return ticket;
}

std::string join_and_run(const Fd& pipe, int rank, const RunReceiver& run) {
  JoinOptions options{.ticket = read_ticket(pipe), .rank = rank, .timeout = Duration(30'000)};
  auto session = Session::join(options);
  if (!session) return fmt::format("rank {} did not join: {}", rank, session.error().message());
  return run(**session);
}

}  // namespace

Receivers::Receivers(std::vector<RunReceiver> runs) {
  for (size_t i = 0; i < runs.size(); ++i) {
    int ends[2] = {-1, -1};
    if (::pipe(ends) != 0) std::abort();
    Fd reading(ends[0]);
    ticket_pipes_.emplace_back(ends[1]);
    children_.emplace_back([&] { return join_and_run(reading, static_cast<int>(i) + 1, runs[i]); });
  }
}

void Receivers::start(const std::string& ticket) {
  for (const Fd& pipe : ticket_pipes_) {
    if (::write(pipe.get(), ticket.data(), ticket.size()) < 0) std::abort();
  }
}

std::string Receivers::report() {
  std::string reports;
  for (Child& child : children_) reports += child.report();
  return reports;
}

Result<TransferStats> send_pattern(Session& session, const std::vector<TensorMeta>& metas,
                                   uint64_t version, bool announce) {
  std::optional<std::vector<TensorMeta>> announced;
  if (announce) announced = metas;
  WEIGHTCAST_ASSIGN(auto sender, session.begin_send(version, std::move(announced)));
  for (size_t i = 0; i < metas.size(); ++i) {
    WEIGHTCAST_TRY(sender->push(metas[i], make_pattern(metas[i], version, i)));
  }
  return sender->finish();
}

std::string receive_pattern(Session& session, const std::vector<TensorMeta>& metas,
                            uint64_t version) {
  auto receiver = session.begin_receive();
  if (!receiver) return "begin_receive: " + receiver.error().message();
  if ((*receiver)->version() != version) return "another version";
  Assembler assembler(**receiver);
  uint64_t count = 0;
  while (true) {
    auto tensor = assembler.next();
    if (!tensor) return "next: " + tensor.error().message();
    if (!*tensor) break;
    if ((*tensor)->index != count || count >= metas.size() || *(*tensor)->meta != metas[count]) {
      return fmt::format("tensor {} is not the one that was sent", count);
    }
    const ConstMemoryView bytes = (*tensor)->bytes;
    const size_t difference = first_difference(bytes, version, count);
    if (bytes.size() != byte_size(metas[count]) || difference != bytes.size()) {
      return fmt::format("{} differs at byte {}", describe(metas[count]), difference);
    }
    ++count;
  }
  if (count != metas.size()) return fmt::format("{} tensors of {}", count, metas.size());
  bool applied = false;
  const auto stats = (*receiver)->finish([&applied]() -> Status {
    applied = true;
    return {};
  });
  if (!stats) return "finish: " + stats.error().message();
  return applied && stats->tensors == metas.size() ? "" : "not applied";
}

}  // namespace weightcast::testing
