#include <cstring>

#include "weightcast/base/check.h"
#include "weightcast/control/clean_text.h"
#include "weightcast/control/limits.h"
#include "weightcast/control/wire.h"
#include "weightcast/control/wire_codes.h"
#include "weightcast/control/wire_generated.h"

namespace weightcast {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;
template <typename T>
using Offset = flatbuffers::Offset<T>;

wire::Hash to_wire(const Hash128& hash) {
  wire::Hash out;
  static_assert(sizeof out == sizeof hash.bytes);
  std::memcpy(static_cast<void*>(&out), hash.bytes.data(), sizeof out);
  return out;
}

Offset<flatbuffers::String> put_text(Builder& builder, std::string_view text, size_t max_size) {
  return builder.CreateString(clean_text(text, max_size));
}

Offset<wire::PeerInfo> put(Builder& builder, const PeerInfo& peer) {
  const auto host = put_text(builder, peer.host, kMaxHostSize);
  const auto boot_id = put_text(builder, peer.boot_id, kMaxBootIdSize);
  return wire::CreatePeerInfo(builder, peer.rank, host, boot_id, peer.pid);
}

Offset<wire::RankStats> put(Builder& builder, const RankStats& stats) {
  const auto host = put_text(builder, stats.host, kMaxHostSize);
  return wire::CreateRankStats(builder, stats.rank, host, stats.pack_seconds, stats.wait_seconds,
                               stats.move_seconds, stats.tensors, stats.bytes,
                               stats.peak_extra_bytes);
}

Offset<flatbuffers::Vector<Offset<wire::TensorMeta>>> put(Builder& builder,
                                                          const std::vector<TensorMeta>& metas) {
  std::vector<Offset<wire::TensorMeta>> offsets;
  offsets.reserve(metas.size());
  for (const TensorMeta& meta : metas) {
    const auto name = builder.CreateString(meta.name);
    const auto shape = builder.CreateVector(meta.shape);
    offsets.push_back(
        wire::CreateTensorMeta(builder, name, static_cast<uint8_t>(meta.dtype), shape));
  }
  return builder.CreateVector(offsets);
}

Offset<wire::Hello> put(Builder& builder, const Hello& hello) {
  return wire::CreateHello(builder, hello.wanted_rank, put(builder, hello.peer));
}

Offset<wire::Welcome> put(Builder& builder, const Welcome& welcome) {
  const GroupConfig& config = welcome.config;
  const auto backend = put_text(builder, config.backend, kMaxBackendSize);
  const auto link_name = put_text(builder, config.link_name, kMaxLinkNameSize);
  WEIGHTCAST_CHECK(config.link_token.size() <= kMaxLinkTokenSize);
  const auto link_token = builder.CreateVector(
      reinterpret_cast<const uint8_t*>(config.link_token.data()), config.link_token.size());
  const auto wire_config = wire::CreateGroupConfig(
      builder, config.bucket_size, config.num_slots, config.checksum,
      static_cast<uint64_t>(config.heartbeat_timeout.count()), backend, link_name, link_token);
  const auto root = put(builder, welcome.root);
  return wire::CreateWelcome(builder, welcome.rank, welcome.world_size, root, wire_config);
}

Offset<wire::Refusal> put(Builder& builder, const Refusal& refusal) {
  const auto text = put_text(builder, refusal.text, kMaxErrorTextSize);
  return wire::CreateRefusal(builder, to_wire_code(refusal.code), text);
}

Offset<wire::Heartbeat> put(Builder& builder, const Heartbeat& heartbeat) {
  return wire::CreateHeartbeat(builder, heartbeat.progress,
                               static_cast<uint64_t>(heartbeat.timeout.count()));
}

Offset<wire::Abort> put(Builder& builder, const Abort& abort) {
  const auto text = put_text(builder, abort.cause.message(), kMaxErrorTextSize);
  return wire::CreateAbort(builder, abort.epoch, to_wire_code(abort.cause.code()),
                           abort.cause.rank(), text, abort.lost);
}

Offset<wire::Leave> put(Builder& builder, const Leave& /*leave*/) {
  return wire::CreateLeave(builder);
}

Offset<wire::Link> put(Builder& builder, const Link& link) {
  return wire::CreateLink(builder, link.epoch);
}

Offset<wire::Begin> put(Builder& builder, const Begin& begin) {
  const auto metas = put(builder, begin.metas);
  const wire::Hash digest = to_wire(begin.metas_digest);
  return wire::CreateBegin(builder, begin.sequence, begin.version,
                           static_cast<uint8_t>(begin.metas_known), metas, &digest);
}

Offset<wire::End> put(Builder& builder, const End& end) {
  const wire::Hash digest = to_wire(end.digest);
  return wire::CreateEnd(builder, end.sequence, end.buckets, end.tensors, end.bytes,
                         static_cast<uint8_t>(end.digest_kind), &digest);
}

Offset<wire::Commit> put(Builder& builder, const Commit& commit) {
  std::vector<Offset<wire::RankStats>> ranks;
  ranks.reserve(commit.ranks.size());
  for (const RankStats& stats : commit.ranks) ranks.push_back(put(builder, stats));
  return wire::CreateCommit(builder, commit.sequence, builder.CreateVector(ranks), commit.seconds,
                            commit.bytes_on_wire);
}

Offset<wire::Linked> put(Builder& builder, const Linked& linked) {
  return wire::CreateLinked(builder, linked.epoch);
}

Offset<wire::Ready> put(Builder& builder, const Ready& ready) {
  return wire::CreateReady(builder, ready.sequence);
}

Offset<wire::Done> put(Builder& builder, const Done& done) {
  const auto stats = put(builder, done.stats);
  const wire::Hash digest = to_wire(done.digest);
  return wire::CreateDone(builder, done.sequence, stats, &digest);
}

Offset<wire::Committed> put(Builder& builder, const Committed& committed) {
  return wire::CreateCommitted(builder, committed.sequence);
}

template <typename T>
std::pair<wire::Body, Offset<void>> tagged(Offset<T> offset) {
  // Copied: the generated constant has no definition that a reference could name.
  const wire::Body kind = wire::BodyTraits<T>::enum_value;
  return {kind, offset.Union()};
}

// Upper bounds of what FlatBuffers spends on a table and its offset, padding included.
constexpr size_t kTableCost = 160;
constexpr size_t kMetaCost = 64;
constexpr size_t kStatsCost = 128;

size_t size_of_metas(const std::vector<TensorMeta>& metas) {
  size_t size = 0;
  for (const TensorMeta& meta : metas) {
    size += kMetaCost + meta.name.size() + 8 * meta.shape.size();
  }
  return size;
}

}  // namespace

size_t encoded_size_bound(const Body& body) {
  size_t size = kTableCost * 2 + kMaxErrorTextSize;
  if (const auto* begin = std::get_if<Begin>(&body)) size += size_of_metas(begin->metas);
  if (const auto* commit = std::get_if<Commit>(&body)) {
    for (const RankStats& stats : commit->ranks) size += kStatsCost + stats.host.size();
  }
  return size;
}

std::vector<std::byte> encode(const Message& message) {
  Builder builder(256);
  const auto [type, body] = std::visit(
      [&builder](const auto& value) { return tagged(put(builder, value)); }, message.body);
  const auto* hello = std::get_if<Hello>(&message.body);
  // Written even where they are zero, so that `renumber` finds a place to write to.
  builder.ForceDefaults(true);
  builder.Finish(wire::CreateMessage(builder, hello == nullptr ? kProtocolVersion : hello->protocol,
                                     message.number, message.epoch, message.answers, type, body),
                 wire::MessageIdentifier());
  const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  return {bytes.begin(), bytes.end()};
}

void renumber(std::span<std::byte> bytes, uint64_t number) {
  WEIGHTCAST_CHECK(wire::GetMutableMessage(bytes.data())->mutate_number(number));
}

size_t encode(const BucketHeader& header, std::span<std::byte> destination) {
  Builder builder(size_of_metas(header.metas) + header.extents.size() * sizeof(wire::Extent) +
                  header.digests.size() * sizeof(wire::Hash) + kTableCost);
  // Both pairs of structs have one layout, which spares a copy of each element.
  static_assert(sizeof(Extent) == sizeof(wire::Extent));
  static_assert(sizeof(Hash128) == sizeof(wire::Hash));
  const auto extents = builder.CreateVectorOfStructs(
      reinterpret_cast<const wire::Extent*>(header.extents.data()), header.extents.size());
  const auto metas = put(builder, header.metas);
  const auto digests = builder.CreateVectorOfStructs(
      reinterpret_cast<const wire::Hash*>(header.digests.data()), header.digests.size());
  builder.Finish(wire::CreateBucketHeader(builder, header.sequence, header.index, header.used_size,
                                          header.last, extents, metas, digests),
                 kBucketHeaderIdentifier);
  WEIGHTCAST_CHECK(builder.GetSize() <= destination.size());
  std::memcpy(destination.data(), builder.GetBufferPointer(), builder.GetSize());
  return builder.GetSize();
}

}  // namespace weightcast
