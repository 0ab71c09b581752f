#include <cerrno>
#include <charconv>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>

#include "weightcast/base/check.h"
#include "weightcast/base/random.h"
#include "weightcast/base/size.h"
#include "weightcast/base/thread.h"
#include "weightcast/control/address.h"
#include "weightcast/control/group.h"
#include "weightcast/control/host_control.h"
#include "weightcast/control/limits.h"
#include "weightcast/control/peer_info.h"
#include "weightcast/control/ranks.h"

namespace weightcast {
namespace {

class HostGroup final : public Group {
 public:
  HostGroup(const HostGroupOptions& options, Ticket ticket, HostSockets sockets,
            std::unique_ptr<Outbox> outbox, EventFd failure_fd)
      : options_(options),
        ticket_(std::move(ticket)),
        outbox_(std::move(outbox)),
        state_(std::move(failure_fd), local_peer(0), options.world_size, *outbox_),
        thread_(std::make_unique<HostControl>(std::move(sockets), options, state_), *outbox_) {}

  int rank() const override { return 0; }
  int world_size() const override { return options_.world_size; }
  uint64_t epoch() const override { return state_.epoch(); }
  std::vector<PeerInfo> peers() const override { return state_.peers(); }
  const GroupConfig& config() const override { return options_.config; }
  const Ticket& ticket() const override { return ticket_; }
  Status gather(Duration patience) override { return state_.wait_gathered(patience); }

  Result<std::vector<Reply>> exchange(const Announcement& announcement,
                                      Duration patience) override {
    WEIGHTCAST_TRY(announce(announcement, false));
    return state_.wait_replies(patience);
  }

  std::vector<Result<Reply>> exchange_with_survivors(const Announcement& announcement,
                                                     Duration patience) override {
    if (const Status status = announce(announcement, true); !status) {
      return std::vector<Result<Reply>>(static_cast<size_t>(options_.world_size - 1),
                                        Result<Reply>(status.error()));
    }
    return state_.wait_survivors(patience);
  }

  Result<Announcement> next_announcement(Duration /*patience*/) override {
    return Error(Code::kInvalidArgument, "the root makes announcements and gets none", 0);
  }
  void reply(const Reply& /*reply*/) override {
    WEIGHTCAST_CHECK(false && "the root replies to nobody");
  }

  void abort(const Error& cause) override { state_.abort(cause); }
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
  Status announce(const Announcement& announcement, bool survivors) {
    const Body body = body_from(announcement);
    if (const size_t size = encoded_size_bound(body); size > kMaxMessageSize) {
      return Error(Code::kInvalidArgument,
                   fmt::format("an announcement of {} is larger than the {} that a control message "
                               "may have: too many tensors, or names too long",
                               format_size(size), format_size(kMaxMessageSize)),
                   0);
    }
    std::vector<std::byte> bytes = encode(Message{.epoch = state_.epoch(), .body = body});
    WEIGHTCAST_ASSIGN(const uint64_t exchange, state_.open_exchange(survivors));
    outbox_->push(Announce{std::move(bytes), exchange});
    return {};
  }

  const HostGroupOptions options_;
  const Ticket ticket_;
  const std::unique_ptr<Outbox> outbox_;
  HostState state_;
  ControlThread thread_;  // last: it ends before what it uses
};

Error bind_failure(int error, const std::string& listen) {
  switch (error) {
    case EADDRINUSE:
      return Error(Code::kRefused,
                   fmt::format("{}: the address is in use by another process", listen));
    case EADDRNOTAVAIL:
    case ENODEV:
      return Error(Code::kInvalidArgument,
                   fmt::format("{}: this machine has no such address", listen));
    case EACCES: return Error(Code::kInvalidArgument, fmt::format("{}: not permitted", listen));
    default: return system_error(error, fmt::format("bind {}", listen));
  }
}

Result<uint16_t> bound_port(const ZmqSocket& socket) {
  const std::string endpoint = socket.last_endpoint();
  const char* end = endpoint.data() + endpoint.size();
  uint16_t port = 0;
  const size_t colon = endpoint.rfind(':');
  if (colon == std::string::npos ||
      std::from_chars(endpoint.data() + colon + 1, end, port).ptr != end) {
    return Error(Code::kInternal, "libzmq does not say where it listens: " + endpoint);
  }
  return port;
}

Status check(const HostGroupOptions& options) {
  if (options.world_size < 1 || options.world_size > kMaxWorldSize) {
    return Error(Code::kInvalidArgument, fmt::format("a group has 1 to {} ranks, not {}",
                                                     kMaxWorldSize, options.world_size));
  }
  const Duration timeout = options.config.heartbeat_timeout;
  if (timeout.count() < 1 || timeout.count() > static_cast<int64_t>(kMaxTimeoutMs)) {
    return Error(Code::kInvalidArgument, "the heartbeat timeout is out of range");
  }
  return {};
}

Result<HostSockets> open_sockets(const Ticket& ticket, const KeyPair& server, bool is_v6) {
  WEIGHTCAST_ASSIGN(ZmqContext context, ZmqContext::create());
  WEIGHTCAST_ASSIGN(ZapHandler zap, ZapHandler::create(context, ticket.client.public_key));
  WEIGHTCAST_ASSIGN(ZmqSocket router, ZmqSocket::create(context, ZMQ_ROUTER));
  configure(router, kMaxMemberMessageSize);
  router.set(ZMQ_ROUTER_MANDATORY, 1);
  router.set(ZMQ_IPV6, is_v6 ? 1 : 0);
  router.set(ZMQ_CURVE_SERVER, 1);
  router.set_text(ZMQ_CURVE_SECRETKEY, server.secret_key);
  WEIGHTCAST_ASSIGN(Monitor monitor, Monitor::create(context, router));
  return HostSockets{std::move(context), std::move(zap), std::move(router), std::move(monitor)};
}

}  // namespace

Result<std::unique_ptr<Group>> Group::host(const HostGroupOptions& options) {
  WEIGHTCAST_TRY(check(options));
  WEIGHTCAST_ASSIGN(const ListenAddress address, parse_listen_address(options.listen));
  WEIGHTCAST_ASSIGN(const KeyPair server, make_key_pair());
  Ticket ticket;
  WEIGHTCAST_ASSIGN(ticket.client, make_key_pair());
  ticket.session_id = random_hex(kSessionIdSize / 2);
  ticket.server_public_key = server.public_key;
  WEIGHTCAST_ASSIGN(HostSockets sockets, open_sockets(ticket, server, address.is_v6));
  const int error = sockets.router.bind(endpoint(address.host, address.is_v6, address.port));
  if (error != 0) return bind_failure(error, options.listen);
  WEIGHTCAST_ASSIGN(const uint16_t port, bound_port(sockets.router));
  WEIGHTCAST_ASSIGN(ticket.endpoints, published_endpoints(address, port));
  WEIGHTCAST_ASSIGN(std::unique_ptr<Outbox> outbox, Outbox::create());
  WEIGHTCAST_ASSIGN(EventFd failure_fd, EventFd::create());
  try {
    return std::make_unique<HostGroup>(options, std::move(ticket), std::move(sockets),
                                       std::move(outbox), std::move(failure_fd));
  } catch (const std::system_error& exception) {
    return thread_error(exception);
  }
}

}  // namespace weightcast
