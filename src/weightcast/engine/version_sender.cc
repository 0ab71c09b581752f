#include "weightcast/engine/version_sender.h"

#include <utility>

#include <fmt/format.h>

#include "weightcast/base/fault.h"
#include "weightcast/engine/patience.h"

namespace weightcast {
namespace {

BucketSenderConfig make_config(const HostOptions& options, const Begin& begin,
                               std::optional<std::vector<TensorMeta>> announced) {
  return {.sequence = begin.sequence,
          .bucket_size = options.bucket_size,
          .checksum = options.checksum,
          .cast = options.cast,
          .announced = std::move(announced),
          .overlap = options.overlap};
}

BucketSender::Wait make_wait(const SendContext& context) {
  return [&group = context.group, patience = context.options.timeout,
          &meter = context.meter](const std::function<Status(Deadline)>& what) {
    meter.sample();
    return wait_while_moving(group, patience, what);
  };
}

}  // namespace

VersionSender::VersionSender(const SendContext& context, const Begin& begin,
                             std::optional<std::vector<TensorMeta>> announced)
    : context_(context),
      sequence_(begin.sequence),
      version_(begin.version),
      sender_(make_config(context.options, begin, std::move(announced)), context.ring,
              context.store, context.stream, make_wait(context)),
      started_(Clock::now()) {
  context_.version_open = true;
  context_.meter.reset();
  context_.group.set_step("moving buckets");
}

VersionSender::~VersionSender() {
  if (!over_) {
    fail(Error(
        Code::kInvalidArgument,
        fmt::format("version {} was dropped by its sender before it was finished", version_)));
  }
  context_.version_open = false;
}

Status VersionSender::push(const TensorMeta& meta, ConstMemoryView source) {
  WEIGHTCAST_TRY(check_open());
  return after_push(sender_.push(meta, source));
}

Status VersionSender::push(const TensorMeta& meta, TensorReader& reader) {
  WEIGHTCAST_TRY(check_open());
  return after_push(sender_.push(meta, reader));
}

Status VersionSender::check_open() const {
  if (!over_) return {};
  const Error closed(Code::kInvalidArgument, fmt::format("version {} is over", version_));
  return context_.group.failure().value_or(closed);
}

Status VersionSender::after_push(Status pushed) {
  if (!pushed) return fail(pushed.error());
  context_.group.note_progress();
  if (const auto failure = context_.group.failure()) return fail(*failure);
  return {};
}

Error VersionSender::fail(const Error& error) {
  over_ = true;
  context_.failure_told = true;
  context_.group.abort(error);
  return context_.group.failure().value_or(error);
}

Result<TransferStats> VersionSender::finish() {
  WEIGHTCAST_TRY(check_open());
  Result<TransferStats> stats = end();
  if (!stats) return fail(stats.error());
  over_ = true;
  return commit(*std::move(stats));
}

Result<TransferStats> VersionSender::end() {
  WEIGHTCAST_TRY(sender_.finish());
  const MoveReport report = context_.comm_thread.take_report();
  TransferStats stats{
      .version = version_,
      .tensors = sender_.metas().size(),
      .bytes = sender_.payload_size(),
      .buckets = sender_.num_buckets(),
      .bytes_on_wire = report.bytes_on_wire,
      .digest_kind = context_.options.checksum ? DigestKind::kBytes : DigestKind::kMetas,
      .digest = digest(report)};
  context_.group.set_step("ending a version");
  fault_point("end");
  const End end{sequence_,   stats.buckets,     stats.tensors,
                stats.bytes, stats.digest_kind, stats.digest};
  WEIGHTCAST_ASSIGN(const auto replies, context_.group.exchange(end, context_.options.timeout));
  stats.seconds = seconds_between(started_, Clock::now());
  stats.ranks.push_back(own_stats(report));
  for (const Reply& reply : replies) {
    const Done* done = std::get_if<Done>(&reply);
    if (done == nullptr || done->sequence != sequence_ || done->digest != stats.digest) {
      return Error(Code::kCorruption,
                   fmt::format("rank {} did not confirm digest {} of version {}",
                               stats.ranks.size(), stats.digest.hex(), version_));
    }
    stats.ranks.push_back(done->stats);
  }
  return stats;
}

Result<TransferStats> VersionSender::commit(TransferStats stats) {
  context_.group.set_step("committing a version");
  fault_point("commit");
  const Commit commit{sequence_, stats.ranks, stats.seconds, stats.bytes_on_wire};
  // Every rank holds the version: from here on it is committed wherever somebody is left.
  for (const auto& reply :
       context_.group.exchange_with_survivors(commit, context_.options.timeout)) {
    if (!reply) stats.lost.push_back(reply.error());
  }
  context_.group.set_step("between versions");
  return stats;
}

Hash128 VersionSender::digest(const MoveReport& report) const {
  VersionDigest digest(context_.options.checksum ? DigestKind::kBytes : DigestKind::kMetas);
  for (size_t i = 0; i < sender_.metas().size(); ++i) {
    digest.add(sender_.metas()[i],
               context_.options.checksum ? report.tensor_digests[i] : Hash128());
  }
  return digest.finish();
}

RankStats VersionSender::own_stats(const MoveReport& report) {
  return {.rank = 0,
          .host = context_.group.peers().front().host,
          .pack_seconds = sender_.pack_seconds(),
          .wait_seconds = sender_.wait_seconds(),
          .move_seconds = report.move_seconds,
          .tensors = sender_.metas().size(),
          .bytes = sender_.payload_size(),
          .peak_extra_bytes = context_.meter.peak()};
}

}  // namespace weightcast
