#include "weightcast/engine/host_session.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "weightcast/base/fault.h"
#include "weightcast/engine/version_sender.h"

namespace weightcast {
namespace {

// Two slots overlap packing with moving. Small buckets get more of them, so that ranks do not wait
// for each other at every bucket, as long as all slots together stay within two buckets and a bit.
uint32_t choose_num_slots(uint64_t bucket_size) {
  constexpr uint64_t kExtraMemory = 32 * kMiB;
  return static_cast<uint32_t>(std::min<uint64_t>(2 + kExtraMemory / bucket_size, 16));
}

Status check(const HostOptions& options) {
  if (options.num_receivers < 1 || options.num_receivers >= kMaxWorldSize) {
    return Error(Code::kInvalidArgument, fmt::format("a group has 1 to {} receivers, not {}",
                                                     kMaxWorldSize - 1, options.num_receivers));
  }
  if (options.bucket_size < kMinBucketSize || options.bucket_size > kMaxBucketSize) {
    return Error(Code::kInvalidArgument,
                 fmt::format("a bucket has {} to {}, not {}", format_size(kMinBucketSize),
                             format_size(kMaxBucketSize), format_size(options.bucket_size)));
  }
  if (options.cast && *options.cast != DType::kF32 && *options.cast != DType::kF16 &&
      *options.cast != DType::kBf16) {
    return Error(Code::kInvalidArgument,
                 fmt::format("tensors are cast to F32, F16 or BF16, not {}", name(*options.cast)));
  }
  return {};
}

Status check(std::span<const TensorMeta> metas) {
  std::unordered_set<std::string_view> names;
  for (const TensorMeta& meta : metas) {
    WEIGHTCAST_TRY(weightcast::check(meta));
    if (!names.insert(meta.name).second) {
      return Error(Code::kInvalidArgument, fmt::format("tensor name {} comes twice", meta.name));
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Session>> Session::host(const HostOptions& options) {
  return HostSession::open(options);
}

Result<std::unique_ptr<Session>> HostSession::open(const HostOptions& options) {
  WEIGHTCAST_TRY(check(options));
  WEIGHTCAST_ASSIGN(const Backend* backend, find_backend(options.backend));
  WEIGHTCAST_TRY(backend->probe());
  WEIGHTCAST_ASSIGN(LinkListener listener, LinkListener::create());
  std::unique_ptr<HostSession> session(new HostSession(options, *backend, std::move(listener)));
  WEIGHTCAST_TRY(session->open_device());
  const GroupConfig config{.bucket_size = options.bucket_size,
                           .num_slots = choose_num_slots(options.bucket_size),
                           .checksum = options.checksum,
                           .heartbeat_timeout = options.heartbeat_timeout,
                           .backend = options.backend,
                           .link_name = session->listener_.name(),
                           .link_token = session->listener_.token()};
  WEIGHTCAST_ASSIGN(session->group_, Group::host({.listen = options.listen,
                                                  .world_size = options.num_receivers + 1,
                                                  .config = config}));
  session->ticket_ = encode(session->group_->ticket());
  return std::unique_ptr<Session>(std::move(session));
}

HostSession::~HostSession() {
  epoch_.reset();
  // Before the links hang up: whoever sees them do so has been told that this is no loss.
  group_.reset();
}

Status HostSession::open_device() {
  WEIGHTCAST_ASSIGN(device_, backend_.open_device(0));
  WEIGHTCAST_ASSIGN(stream_, device_->create_stream());
  return {};
}

Status HostSession::wait_for_ranks() {
  if (!links_.empty()) return {};
  if (Status gathered = gather(); !gathered) {
    links_.clear();
    return fail(gathered.error());
  }
  if (Status started = start_epoch(); !started) return fail(started.error());
  return {};
}

Status HostSession::gather() {
  group_->set_step("joining");
  WEIGHTCAST_TRY(group_->gather(options_.timeout));
  fault_point("join");
  WEIGHTCAST_ASSIGN(links_, listener_.accept_all(options_.num_receivers, group_->failure_fd(),
                                                 Deadline::after(options_.timeout)));
  for (size_t i = 0; i < links_.size(); ++i) {
    WEIGHTCAST_TRY(group_->watch(links_[i].get(), static_cast<int>(i) + 1));
  }
  return {};
}

Status HostSession::start_epoch() {
  epoch_.reset();
  announced_digest_.reset();
  WEIGHTCAST_ASSIGN(Epoch epoch, make_epoch());
  for (size_t i = 0; i < links_.size(); ++i) {
    WEIGHTCAST_TRY(epoch.publisher->add_reader(links_[i], static_cast<int>(i) + 1));
  }
  group_->set_step("linking");
  WEIGHTCAST_TRY(group_->exchange(Link{group_->epoch()}, options_.timeout));
  group_->set_step("between versions");
  epoch_ = std::move(epoch);
  return {};
}

Result<HostSession::Epoch> HostSession::make_epoch() {
  const GroupConfig& config = group_->config();
  Epoch epoch;
  WEIGHTCAST_ASSIGN(
      epoch.publisher,
      Publisher::create({group_->epoch(), config.bucket_size, config.num_slots}, *group_));
  WEIGHTCAST_ASSIGN(epoch.ring, SlotRing::create(*epoch.publisher, *device_, config.bucket_size));
  CommThread::Config comm{.create_communicator = backend_.create_communicator,
                          .comm = {.rank = 0, .world_size = 1, .epoch = group_->epoch()},
                          .checksum = options_.checksum,
                          .timeout = options_.timeout};
  for (size_t i = 0; i < epoch.publisher->num_slots(); ++i) {
    comm.comm.slots.push_back(epoch.publisher->payload(i));
  }
  WEIGHTCAST_ASSIGN(epoch.comm_thread,
                    CommThread::start(std::move(comm), *device_, *epoch.ring, *epoch.publisher));
  return epoch;
}

Result<std::unique_ptr<Sender>> HostSession::begin_send(
    uint64_t version, std::optional<std::vector<TensorMeta>> metas) {
  if (version_open_) {
    return Error(Code::kInvalidArgument, "another version is open: finish or drop its sender");
  }
  if (metas) WEIGHTCAST_TRY(check(*metas));
  WEIGHTCAST_TRY(wait_for_ranks());
  WEIGHTCAST_TRY(recover());
  if (!epoch_) {
    if (Status started = start_epoch(); !started) return fail(started.error());
  }
  Result<Begin> begin = announce(version, metas);
  if (!begin) return fail(begin.error());
  const SendContext context{*group_,      *epoch_->ring, *epoch_->publisher, *epoch_->comm_thread,
                            *stream_,     meter_,        options_,           version_open_,
                            failure_told_};
  return std::unique_ptr<Sender>(
      std::make_unique<VersionSender>(context, *begin, std::move(metas)));
}

Result<Begin> HostSession::announce(uint64_t version,
                                    const std::optional<std::vector<TensorMeta>>& metas) {
  Begin begin{.sequence = ++num_attempts_, .version = version};
  if (metas) {
    begin.metas = cast_metas(*metas, options_.cast);
    begin.metas_digest = digest_metas(begin.metas);
    begin.metas_known = MetasKnown::kAttached;
    if (announced_digest_ == begin.metas_digest) {
      begin.metas.clear();
      begin.metas_known = MetasKnown::kUnchanged;
    }
  }
  group_->set_step("starting a version");
  WEIGHTCAST_TRY(group_->exchange(begin, options_.timeout));
  if (metas) announced_digest_ = begin.metas_digest;
  return begin;
}

Result<std::unique_ptr<Receiver>> HostSession::begin_receive(std::optional<Duration>) {
  return Error(Code::kInvalidArgument, "rank 0 sends; only the other ranks receive");
}

// A failure between versions is told once, by the version that it prevents.
Status HostSession::recover() {
  const auto failure = group_->failure();
  if (!failure) return {};
  if (!failure_told_) return fail(*failure);
  epoch_.reset();
  WEIGHTCAST_TRY(group_->renew());
  failure_told_ = false;
  return {};
}

Error HostSession::fail(const Error& error) {
  failure_told_ = true;
  group_->abort(error);
  return group_->failure().value_or(error);
}

}  // namespace weightcast
