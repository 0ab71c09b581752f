#include "weightcast/engine/version_receiver.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "weightcast/base/fault.h"
#include "weightcast/engine/patience.h"

namespace weightcast {
namespace {

BucketReceiverConfig make_config(const GroupConfig& group, const Begin& begin,
                                 std::optional<std::vector<TensorMeta>> announced) {
  return {.sequence = begin.sequence,
          .bucket_size = group.bucket_size,
          .checksum = group.checksum,
          .announced = std::move(announced)};
}

// The root knows which rank stands still, so it gets the first word when a deadline passes.
constexpr Duration kRootSpeaksFirst{1'000};

BucketReceiver::WaitNext make_wait(const ReceiveContext& context) {
  return [&group = context.group, &meter = context.meter,
          patience = context.timeout + kRootSpeaksFirst](BucketSource& source) {
    meter.sample();
    return wait_while_moving(group, patience,
                             [&source](Deadline deadline) { return source.next(deadline); });
  };
}

}  // namespace

VersionReceiver::VersionReceiver(const ReceiveContext& context, const Begin& begin,
                                 std::optional<std::vector<TensorMeta>> announced)
    : context_(context),
      sequence_(begin.sequence),
      version_(begin.version),
      metas_announced_(announced.has_value()),
      receiver_(make_config(context.group.config(), begin, std::move(announced)), context.source,
                context.stream, make_wait(context)) {
  context_.version_open = true;
  context_.meter.reset();
}

VersionReceiver::~VersionReceiver() {
  if (!over_) {
    fail(Error(
        Code::kInvalidArgument,
        fmt::format("version {} was dropped by its receiver before it was finished", version_)));
  }
  context_.version_open = false;
}

Status VersionReceiver::check_open() {
  if (const auto failure = context_.group.failure()) return fail(*failure);
  if (over_) return Error(Code::kInvalidArgument, fmt::format("version {} is over", version_));
  return {};
}

Error VersionReceiver::fail(const Error& error) {
  over_ = true;
  context_.failure_told = true;
  context_.group.abort(error);
  return context_.group.failure().value_or(error);
}

void VersionReceiver::say_ready() {
  if (std::exchange(ready_, true)) return;
  context_.group.set_step("moving buckets");
  context_.group.reply(Ready{sequence_});
}

Result<std::optional<BucketLease>> VersionReceiver::next() {
  WEIGHTCAST_TRY(check_open());
  say_ready();
  Result<std::optional<BucketLease>> lease = receiver_.next();
  if (!lease) {
    // Holding every slot is the caller's mistake, and it can still give one back.
    if (lease.error().code() == Code::kInvalidArgument) return lease;
    return fail(lease.error());
  }
  if (*lease) {
    context_.group.note_progress();
    if (receiver_.num_buckets() == 1) fault_point("first_bucket");
    fault_point("middle");
  }
  return lease;
}

Status VersionReceiver::copy_out(const Piece& piece, MemoryView destination) {
  if (over_) return check_open().error();
  return after_take(receiver_.copy_out(piece, destination));
}

Status VersionReceiver::verify(const Piece& piece) {
  if (over_) return check_open().error();
  return after_take(receiver_.verify(piece));
}

Status VersionReceiver::after_take(Status taken) {
  if (!taken) {
    if (taken.error().code() == Code::kInvalidArgument) return taken;
    return fail(taken.error());
  }
  context_.group.note_progress();
  return {};
}

Result<TransferStats> VersionReceiver::finish(const std::function<Status()>& apply) {
  WEIGHTCAST_TRY(check_open());
  Result<End> end = this->end();
  if (!end) return fail(end.error());
  Result<Commit> commit = await_commit();
  if (!commit) return fail(commit.error());
  context_.group.set_step("committing a version");
  fault_point("commit");
  if (Status applied = apply(); !applied) {
    return fail(applied.error().context(
        fmt::format("version {} is committed on the other ranks but not here", version_)));
  }
  over_ = true;
  context_.group.reply(Committed{sequence_});
  context_.group.set_step("between versions");
  return TransferStats{.version = version_,
                       .tensors = end->tensors,
                       .bytes = end->bytes,
                       .buckets = end->buckets,
                       .bytes_on_wire = commit->bytes_on_wire,
                       .seconds = commit->seconds,
                       .digest_kind = end->digest_kind,
                       .digest = end->digest,
                       .ranks = std::move(commit->ranks)};
}

template <typename Wanted>
Result<Wanted> VersionReceiver::next_announcement() {
  WEIGHTCAST_ASSIGN(const Announcement announcement,
                    context_.group.next_announcement(context_.timeout + kRootSpeaksFirst));
  const Wanted* wanted = std::get_if<Wanted>(&announcement);
  if (wanted == nullptr || wanted->sequence != sequence_) {
    return Error(
        Code::kCorruption,
        fmt::format("the root announced something else than version {} calls for", version_));
  }
  return *wanted;
}

Result<End> VersionReceiver::end() {
  WEIGHTCAST_TRY(check_complete());
  context_.group.set_step("ending a version");
  WEIGHTCAST_ASSIGN(const End end, next_announcement<End>());
  WEIGHTCAST_TRY(check_end(end));
  fault_point("end");
  context_.group.reply(Done{sequence_, own_stats(), receiver_.digest()});
  return end;
}

Result<Commit> VersionReceiver::await_commit() {
  Result<Commit> commit = next_announcement<Commit>();
  if (commit || commit.error().code() == Code::kCorruption) return commit;
  return commit.error().context(fmt::format(
      "in doubt: this rank holds version {} but was not told to commit it, and keeps the old one",
      version_));
}

Status VersionReceiver::check_complete() const {
  if (!receiver_.finished()) {
    return Error(Code::kInvalidArgument,
                 fmt::format("version {} has buckets that were not fetched", version_));
  }
  const uint64_t taken = receiver_.num_taken();
  if (taken == metas().size()) return {};
  constexpr size_t kMostNamed = 10;
  std::string names;
  for (uint64_t i = taken; i < metas().size() && i < taken + kMostNamed; ++i) {
    names += fmt::format("{} {}", names.empty() ? "" : ",", metas()[i].name);
  }
  return Error(
      Code::kInvalidArgument,
      fmt::format("version {} has {} tensors, of which {} were taken; missing:{}{}", version_,
                  metas().size(), taken, names, metas().size() - taken > kMostNamed ? ", …" : ""));
}

Status VersionReceiver::check_end(const End& end) const {
  if (end.tensors != metas().size() || end.buckets != receiver_.num_buckets() ||
      end.bytes != receiver_.payload_size()) {
    return Error(
        Code::kCorruption,
        fmt::format("version {}: {} tensors, {} buckets, {} bytes were sent; {}, {}, {} arrived",
                    version_, end.tensors, end.buckets, end.bytes, metas().size(),
                    receiver_.num_buckets(), receiver_.payload_size()));
  }
  const Hash128 digest = receiver_.digest();
  if (end.digest != digest) {
    return Error(Code::kCorruption, fmt::format("version {} arrived with digest {}, sent with {}",
                                                version_, digest.hex(), end.digest.hex()));
  }
  return {};
}

RankStats VersionReceiver::own_stats() {
  std::string host;
  for (const PeerInfo& peer : context_.group.peers()) {
    if (peer.rank == context_.group.rank()) host = peer.host;
  }
  return {.rank = context_.group.rank(),
          .host = std::move(host),
          .wait_seconds = receiver_.wait_seconds(),
          .move_seconds = receiver_.move_seconds(),
          .tensors = receiver_.num_taken(),
          .bytes = receiver_.payload_size(),
          .peak_extra_bytes = context_.meter.peak()};
}

}  // namespace weightcast
