#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>

#include "weightcast/base/check.h"
#include "weightcast/base/thread.h"
#include "weightcast/control/group.h"
#include "weightcast/control/member_control.h"
#include "weightcast/control/peer_info.h"

namespace weightcast {
namespace {

class MemberGroup final : public Group {
 public:
  MemberGroup(const JoinGroupOptions& options, Connection connection,
              std::unique_ptr<Outbox> outbox, EventFd failure_fd)
      : outbox_(std::move(outbox)),
        state_(std::move(failure_fd), *outbox_),
        thread_(std::make_unique<MemberControl>(std::move(connection), options.wanted_rank, state_),
                *outbox_) {}

  /// Before the group is anybody's.
  Status wait_welcome(Duration patience) {
    WEIGHTCAST_ASSIGN(welcome_, state_.wait_welcome(patience));
    return {};
  }

  int rank() const override { return welcome_.rank; }
  int world_size() const override { return welcome_.world_size; }
  uint64_t epoch() const override { return state_.epoch(); }
  std::vector<PeerInfo> peers() const override { return {welcome_.root, local_peer(rank())}; }
  const GroupConfig& config() const override { return welcome_.config; }
  const Ticket& ticket() const override {
    WEIGHTCAST_CHECK(rank() == 0);
    return ticket_;
  }

  Status gather(Duration /*patience*/) override { return root_only(); }
  Result<std::vector<Reply>> exchange(const Announcement& /*announcement*/,
                                      Duration /*patience*/) override {
    return root_only().error();
  }
  std::vector<Result<Reply>> exchange_with_survivors(const Announcement& /*announcement*/,
                                                     Duration /*patience*/) override {
    return std::vector<Result<Reply>>(static_cast<size_t>(world_size() - 1),
                                      Result<Reply>(root_only().error()));
  }

  Result<Announcement> next_announcement(Duration patience) override {
    return state_.next_announcement(patience);
  }
  void reply(const Reply& reply) override { state_.reply(reply); }
  void abort(const Error& cause) override { state_.abort(cause, rank()); }
  std::optional<Error> failure() const override { return state_.failure(); }
  int failure_fd() const override { return state_.failure_fd(); }
  Status renew() override { return state_.renew(); }
  void note_progress() override { state_.note_progress(); }
  Clock::time_point last_progress() const override { return state_.last_progress(); }
  void set_step(const char* step) override { state_.set_step(step); }

  Status watch(int fd, int rank) override {
    Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!copy.valid()) return system_error(errno, "fcntl(F_DUPFD_CLOEXEC)");
    outbox_->push(WatchSocket{std::move(copy), rank});
    return {};
  }

 private:
  Status root_only() const {
    return Error(Code::kInvalidArgument, "only the root gathers and announces", rank());
  }

  Ticket ticket_;
  Welcome welcome_;
  const std::unique_ptr<Outbox> outbox_;
  MemberState state_;
  ControlThread thread_;  // last: it ends before what it uses
};

}  // namespace

Result<std::unique_ptr<Group>> Group::join(const JoinGroupOptions& options) {
  if (options.ticket.protocol != kProtocolVersion) {
    return Error(Code::kRefused,
                 fmt::format("the ticket is of protocol version {}, while this is version {}",
                             options.ticket.protocol, kProtocolVersion));
  }
  WEIGHTCAST_ASSIGN(Connection connection,
                    connect_to_root(options, Deadline::after(options.timeout)));
  WEIGHTCAST_ASSIGN(std::unique_ptr<Outbox> outbox, Outbox::create());
  WEIGHTCAST_ASSIGN(EventFd failure_fd, EventFd::create());
  std::unique_ptr<MemberGroup> group;
  try {
    group = std::make_unique<MemberGroup>(options, std::move(connection), std::move(outbox),
                                          std::move(failure_fd));
  } catch (const std::system_error& exception) {
    return thread_error(exception);
  }
  WEIGHTCAST_TRY(group->wait_welcome(options.timeout));
  return group;
}

}  // namespace weightcast
