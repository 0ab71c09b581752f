#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

#include "weightcast/control/limits.h"
#include "weightcast/control/verified.h"
#include "weightcast/control/wire.h"
#include "weightcast/control/wire_codes.h"
#include "weightcast/control/wire_generated.h"
#include "weightcast/plan/text.h"

namespace weightcast {
namespace {

Error corrupt(std::string_view what) {
  return Error(Code::kCorruption, fmt::format("control message: {}", what));
}

// The elements of a verified vector. Copied by bytes: FlatBuffers 2.0.8 verifies the alignment of a
// vector's size, not that of elements of 8 bytes.
template <typename T, typename Vector>
std::vector<T> copied(const Vector* from) {
  static_assert(std::endian::native == std::endian::little && std::is_trivially_copyable_v<T>);
  if (from == nullptr || from->size() == 0) return {};
  std::vector<T> elements(from->size());
  std::memcpy(elements.data(), from->Data(), elements.size() * sizeof(T));
  return elements;
}

// Reads verified tables and remembers the first thing that breaks a limit. Everything it returns is
// within the limits even then.
class Reader {
 public:
  // `budget`: bytes that the message has. An encoder shares no strings, so that the values made of
  // a message never take more than it; a message that refers to one string many times is malformed.
  explicit Reader(size_t budget) : budget_(budget) {}

  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  void fail(std::string_view what) {
    if (!error_) error_ = corrupt(what);
  }

  std::string text(const flatbuffers::String* from, size_t max_size, std::string_view what) {
    if (from == nullptr) return {};
    const std::string_view view(from->c_str(), from->size());
    if (view.size() > max_size || !is_utf8(view)) {
      fail(fmt::format("{} is too long or not UTF-8", what));
      return {};
    }
    return std::string(view);
  }

  int rank(int32_t from, int lowest) {
    if (from >= lowest && from < kMaxWorldSize) return from;
    fail(fmt::format("no such rank: {}", from));
    return lowest;
  }

  double seconds(double from) {
    if (std::isfinite(from) && from >= 0) return from;
    fail("a time is not a number");
    return 0;
  }

  Duration timeout(uint64_t from_ms) {
    if (from_ms <= kMaxTimeoutMs) return Duration(from_ms);
    fail("a timeout is too long");
    return Duration(0);
  }

  Code code(uint8_t from) {
    if (const auto code = from_wire_code(from)) return *code;
    fail(fmt::format("unknown error code {}", from));
    return Code::kInternal;
  }

  Hash128 hash(const wire::Hash* from) {
    Hash128 hash;
    if (from != nullptr) std::memcpy(hash.bytes.data(), from->bytes()->data(), hash.bytes.size());
    return hash;
  }

  PeerInfo peer(const wire::PeerInfo& from) {
    PeerInfo peer;
    peer.rank = rank(from.rank(), -1);
    peer.host = text(from.host(), kMaxHostSize, "a host name");
    peer.boot_id = text(from.boot_id(), kMaxBootIdSize, "a boot id");
    peer.pid = from.pid();
    return peer;
  }

  RankStats stats(const wire::RankStats& from) {
    RankStats stats;
    stats.rank = rank(from.rank(), -1);
    stats.host = text(from.host(), kMaxHostSize, "a host name");
    stats.pack_seconds = seconds(from.pack_seconds());
    stats.wait_seconds = seconds(from.wait_seconds());
    stats.move_seconds = seconds(from.move_seconds());
    stats.tensors = from.tensors();
    stats.bytes = from.bytes();
    stats.peak_extra_bytes = from.peak_extra_bytes();
    return stats;
  }

  std::vector<TensorMeta> metas(
      const flatbuffers::Vector<flatbuffers::Offset<wire::TensorMeta>>* from) {
    std::vector<TensorMeta> metas;
    if (from == nullptr) return metas;
    metas.reserve(std::min<size_t>(from->size(), budget_ / kMinMetaSize));
    for (const wire::TensorMeta* item : *from) {
      if (!add_meta(*item, metas)) break;
    }
    return metas;
  }

  // Takes what one element costs at least from the budget.
  bool spend(size_t size) {
    if (size > budget_) {
      fail("parts of it are used twice");
      return false;
    }
    budget_ -= size;
    return true;
  }

 private:
  bool add_meta(const wire::TensorMeta& from, std::vector<TensorMeta>& metas) {
    const size_t name_size = from.name() == nullptr ? 0 : from.name()->size();
    const size_t num_dimensions = from.shape() == nullptr ? 0 : from.shape()->size();
    if (!spend(kMinMetaSize + name_size + 8 * num_dimensions)) return false;
    const auto dtype = dtype_from_code(from.dtype());
    if (!dtype || num_dimensions > kMaxDimensions || name_size > kMaxNameSize) {
      fail("a tensor has an unknown dtype, too long a name or too many dimensions");
      return false;
    }
    TensorMeta meta;
    meta.dtype = *dtype;
    if (from.name() != nullptr) meta.name = from.name()->str();
    meta.shape = copied<uint64_t>(from.shape());
    if (const Status status = check(meta); !status) {
      fail(status.error().message());
      return false;
    }
    metas.push_back(std::move(meta));
    return true;
  }

  static constexpr size_t kMinMetaSize = 20;  // an offset and a table, without its vectors

  size_t budget_;
  std::optional<Error> error_;
};

Body take(Reader& reader, const wire::Hello& from) {
  return Hello{kProtocolVersion, from.wanted_rank(), reader.peer(*from.peer())};
}

Body take(Reader& reader, const wire::Welcome& from) {
  Welcome welcome;
  welcome.rank = reader.rank(from.rank(), 1);
  welcome.world_size = from.world_size();
  if (welcome.world_size <= welcome.rank || welcome.world_size > kMaxWorldSize) {
    reader.fail("no such world size");
  }
  welcome.root = reader.peer(*from.root());
  const wire::GroupConfig& config = *from.config();
  welcome.config.bucket_size = config.bucket_size();
  welcome.config.num_slots = config.num_slots();
  welcome.config.checksum = config.checksum();
  if (config.bucket_size() > kMaxBucketSize) reader.fail("the bucket size is too large");
  welcome.config.heartbeat_timeout = reader.timeout(config.heartbeat_timeout_ms());
  if (welcome.config.heartbeat_timeout <= Duration(0)) reader.fail("no heartbeat timeout");
  welcome.config.backend = reader.text(config.backend(), kMaxBackendSize, "a backend");
  welcome.config.link_name = reader.text(config.link_name(), kMaxLinkNameSize, "a link");
  if (const auto* token = config.link_token(); token != nullptr) {
    if (token->size() > kMaxLinkTokenSize) {
      reader.fail("a link's token is too long");
    } else {
      welcome.config.link_token.assign(token->begin(), token->end());
    }
  }
  return welcome;
}

Body take(Reader& reader, const wire::Refusal& from) {
  return Refusal{reader.code(from.code()), reader.text(from.text(), kMaxErrorTextSize, "a text")};
}

Body take(Reader& reader, const wire::Heartbeat& from) {
  return Heartbeat{from.progress(), reader.timeout(from.timeout_ms())};
}

Body take(Reader& reader, const wire::Abort& from) {
  return Abort{
      from.epoch(),
      Error(reader.code(from.code()), reader.text(from.text(), kMaxErrorTextSize, "a text"),
            reader.rank(from.rank(), -1)),
      from.lost()};
}

Body take(Reader& /*reader*/, const wire::Leave& /*from*/) { return Leave{}; }
Body take(Reader& /*reader*/, const wire::Link& from) { return Link{from.epoch()}; }

Body take(Reader& reader, const wire::Begin& from) {
  Begin begin;
  begin.sequence = from.sequence();
  begin.version = from.version();
  if (from.metas_known() > static_cast<uint8_t>(MetasKnown::kUnchanged)) {
    reader.fail("unknown kind of metas");
  } else {
    begin.metas_known = static_cast<MetasKnown>(from.metas_known());
  }
  begin.metas = reader.metas(from.metas());
  begin.metas_digest = reader.hash(from.metas_digest());
  return begin;
}

Body take(Reader& reader, const wire::End& from) {
  End end;
  end.sequence = from.sequence();
  end.buckets = from.buckets();
  end.tensors = from.tensors();
  end.bytes = from.bytes();
  if (from.digest_kind() > static_cast<uint8_t>(DigestKind::kBytes)) {
    reader.fail("unknown kind of digest");
  } else {
    end.digest_kind = static_cast<DigestKind>(from.digest_kind());
  }
  end.digest = reader.hash(from.digest());
  return end;
}

Body take(Reader& reader, const wire::Commit& from) {
  Commit commit;
  commit.sequence = from.sequence();
  commit.seconds = reader.seconds(from.seconds());
  commit.bytes_on_wire = from.bytes_on_wire();
  if (from.ranks() == nullptr) return commit;
  if (from.ranks()->size() > static_cast<size_t>(kMaxWorldSize)) {
    reader.fail("more ranks than a group may have");
    return commit;
  }
  for (const wire::RankStats* stats : *from.ranks()) commit.ranks.push_back(reader.stats(*stats));
  return commit;
}

Body take(Reader& /*reader*/, const wire::Linked& from) { return Linked{from.epoch()}; }
Body take(Reader& /*reader*/, const wire::Ready& from) { return Ready{from.sequence()}; }

Body take(Reader& reader, const wire::Done& from) {
  return Done{from.sequence(), reader.stats(*from.stats()), reader.hash(from.digest())};
}

Body take(Reader& /*reader*/, const wire::Committed& from) { return Committed{from.sequence()}; }

Body take_body(Reader& reader, const wire::Message& from) {
  switch (from.body_type()) {
    case wire::Body::Hello: return take(reader, *from.body_as_Hello());
    case wire::Body::Welcome: return take(reader, *from.body_as_Welcome());
    case wire::Body::Refusal: return take(reader, *from.body_as_Refusal());
    case wire::Body::Heartbeat: return take(reader, *from.body_as_Heartbeat());
    case wire::Body::Abort: return take(reader, *from.body_as_Abort());
    case wire::Body::Leave: return take(reader, *from.body_as_Leave());
    case wire::Body::Link: return take(reader, *from.body_as_Link());
    case wire::Body::Begin: return take(reader, *from.body_as_Begin());
    case wire::Body::End: return take(reader, *from.body_as_End());
    case wire::Body::Commit: return take(reader, *from.body_as_Commit());
    case wire::Body::Linked: return take(reader, *from.body_as_Linked());
    case wire::Body::Ready: return take(reader, *from.body_as_Ready());
    case wire::Body::Done: return take(reader, *from.body_as_Done());
    case wire::Body::Committed: return take(reader, *from.body_as_Committed());
    case wire::Body::NONE: break;
  }
  reader.fail("it has no body of a known kind");
  return Leave{};
}

}  // namespace

Result<Message> decode_message(std::span<const std::byte> bytes) {
  if (bytes.size() > kMaxMessageSize) return corrupt("too large");
  const AlignedBytes aligned(bytes);
  WEIGHTCAST_TRY(verify_envelope(aligned.bytes(), wire::MessageIdentifier(), "control message"));
  const auto* message = verified<wire::Message>(aligned.bytes(), wire::MessageIdentifier());
  if (message == nullptr) return corrupt("does not match the schema");
  Reader reader(bytes.size());
  Message result{message->number(), message->epoch(), take_body(reader, *message),
                 message->answers()};
  if (reader.error()) return *reader.error();
  return result;
}

Result<BucketHeader> decode_bucket_header(std::span<const std::byte> bytes) {
  const auto malformed = [](std::string_view what) {
    return Error(Code::kCorruption, fmt::format("bucket header: {}", what));
  };
  if (bytes.size() > kMaxHeaderSize) return malformed("too large");
  const AlignedBytes aligned(bytes);
  const auto* from = verified<wire::BucketHeader>(aligned.bytes(), kBucketHeaderIdentifier);
  if (from == nullptr) return malformed("does not match the schema");
  BucketHeader header;
  header.sequence = from->sequence();
  header.index = from->index();
  header.used_size = from->used_size();
  header.last = from->last();
  if (header.used_size > kMaxBucketSize) return malformed("more bytes than a bucket may have");
  static_assert(sizeof(Extent) == sizeof(wire::Extent) && sizeof(Hash128) == sizeof(wire::Hash));
  header.extents = copied<Extent>(from->extents());
  header.digests = copied<Hash128>(from->digests());
  Reader reader(bytes.size());
  header.metas = reader.metas(from->metas());
  if (reader.error()) return malformed(reader.error()->message());
  return header;
}

}  // namespace weightcast
