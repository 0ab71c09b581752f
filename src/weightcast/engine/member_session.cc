#include "weightcast/engine/member_session.h"

#include <utility>

#include <fmt/format.h>

#include "weightcast/backends/backend.h"
#include "weightcast/base/fault.h"
#include "weightcast/control/ticket.h"
#include "weightcast/engine/version_receiver.h"
#include "weightcast/handoff/link.h"

namespace weightcast {
namespace {

// A root that died is known to have within this time.
constexpr Duration kDeathShows{1'000};

std::function<std::optional<Ticket>()> decode_reread(const JoinOptions& options) {
  if (!options.reread_ticket) return {};
  return [reread = options.reread_ticket]() -> std::optional<Ticket> {
    const std::optional<std::string> text = reread();
    if (!text) return std::nullopt;
    Result<Ticket> ticket = decode_ticket(*text);
    if (!ticket) return std::nullopt;
    return *std::move(ticket);
  };
}

}  // namespace

Result<std::unique_ptr<Session>> Session::join(const JoinOptions& options) {
  return MemberSession::open(options);
}

Result<std::unique_ptr<Session>> MemberSession::open(const JoinOptions& options) {
  if (options.rank && (*options.rank < 1 || *options.rank >= kMaxWorldSize)) {
    return Error(Code::kInvalidArgument,
                 fmt::format("rank {} can not receive: rank 0 sends, the others are 1 to {}",
                             *options.rank, kMaxWorldSize - 1));
  }
  WEIGHTCAST_ASSIGN(const Ticket ticket, decode_ticket(options.ticket));
  WEIGHTCAST_ASSIGN(auto group, Group::join({.ticket = ticket,
                                             .wanted_rank = options.rank.value_or(-1),
                                             .timeout = options.timeout,
                                             .reread_ticket = decode_reread(options)}));
  std::unique_ptr<MemberSession> session(new MemberSession(options, std::move(group)));
  if (Status connected = session->connect(); !connected) {
    return session->fail(connected.error());
  }
  return std::unique_ptr<Session>(std::move(session));
}

MemberSession::~MemberSession() {
  consumer_.reset();
  // Before the link hangs up: the root has then been told that this is no loss.
  group_.reset();
}

Status MemberSession::open_device() {
  WEIGHTCAST_ASSIGN(const Backend* backend, find_backend(group_->config().backend));
  WEIGHTCAST_TRY(backend->probe());
  WEIGHTCAST_ASSIGN(device_, backend->open_device(0));
  WEIGHTCAST_ASSIGN(stream_, device_->create_stream());
  return {};
}

Status MemberSession::connect() {
  fault_point("join");
  WEIGHTCAST_TRY(open_device());
  group_->set_step("linking");
  const GroupConfig& config = group_->config();
  auto link = connect_link(config.link_name, config.link_token, rank(),
                           Deadline::after(options_.timeout), group_->failure_fd());
  if (!link) return explain(link.error());
  link_ = *std::move(link);
  WEIGHTCAST_TRY(group_->watch(link_.get(), 0));
  WEIGHTCAST_ASSIGN(const Announcement announcement, group_->next_announcement(options_.timeout));
  const Link* announced = std::get_if<Link>(&announcement);
  if (announced == nullptr) return Error(Code::kCorruption, "the root did not begin with a link");
  return attach(*announced);
}

// Nobody listens on another host, but neither does a root that has just died.
Error MemberSession::explain(const Error& link_error) const {
  const int failure_fd = group_->failure_fd();
  if (wait_readable({&failure_fd, 1}, Deadline::after(kDeathShows))) return *group_->failure();
  if (link_error.code() != Code::kUnsupported) return link_error;
  return link_error.context(
      fmt::format("rank {} is on another host, or in another network namespace, than the root, "
                  "and backend {} works within one host",
                  rank(), group_->config().backend));
}

Status MemberSession::attach(const Link& link) {
  const GroupConfig& config = group_->config();
  consumer_.reset();
  WEIGHTCAST_ASSIGN(consumer_,
                    Consumer::attach(link_, {link.epoch, config.bucket_size, config.num_slots},
                                     *group_, Deadline::after(options_.timeout)));
  group_->reply(Linked{link.epoch});
  group_->set_step("between versions");
  return {};
}

Result<std::unique_ptr<Sender>> MemberSession::begin_send(uint64_t,
                                                          std::optional<std::vector<TensorMeta>>) {
  return Error(Code::kInvalidArgument, fmt::format("rank {} receives; only rank 0 sends", rank()));
}

Result<std::unique_ptr<Receiver>> MemberSession::begin_receive(std::optional<Duration> patience) {
  if (version_open_) {
    return Error(Code::kInvalidArgument, "another version is open: finish or drop its receiver");
  }
  WEIGHTCAST_TRY(recover());
  Result<Begin> begin = await_begin(patience.value_or(options_.timeout));
  if (!begin) return fail(begin.error());
  auto announced = announced_metas(*begin);
  if (!announced) return fail(announced.error());
  const ReceiveContext context{*group_,          *consumer_,    *stream_,     meter_,
                               options_.timeout, version_open_, failure_told_};
  return std::unique_ptr<Receiver>(
      std::make_unique<VersionReceiver>(context, *begin, *std::move(announced)));
}

Result<Begin> MemberSession::await_begin(Duration patience) {
  while (true) {
    WEIGHTCAST_ASSIGN(Announcement announcement, group_->next_announcement(patience));
    if (const Link* link = std::get_if<Link>(&announcement)) {
      WEIGHTCAST_TRY(attach(*link));
    } else if (Begin* begin = std::get_if<Begin>(&announcement)) {
      group_->set_step("starting a version");
      return std::move(*begin);
    } else {
      return Error(Code::kCorruption, "the root announced neither an epoch nor a version");
    }
  }
}

Result<std::optional<std::vector<TensorMeta>>> MemberSession::announced_metas(const Begin& begin) {
  if (begin.metas_known == MetasKnown::kNo) return std::optional<std::vector<TensorMeta>>();
  if (begin.metas_known == MetasKnown::kAttached) last_metas_ = begin.metas;
  if (digest_metas(last_metas_) != begin.metas_digest) {
    return Error(
        Code::kCorruption,
        fmt::format("the tensors of version {} are not those that were announced", begin.version));
  }
  return std::optional(last_metas_);
}

// A failure between versions is told once, by the version that it prevents.
Status MemberSession::recover() {
  const auto failure = group_->failure();
  if (!failure) return {};
  if (!failure_told_) return fail(*failure);
  WEIGHTCAST_TRY(group_->renew());
  failure_told_ = false;
  return {};
}

Error MemberSession::fail(const Error& error) {
  failure_told_ = true;
  group_->abort(error);
  return group_->failure().value_or(error);
}

}  // namespace weightcast
