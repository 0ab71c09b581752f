#include "random_messages.h"

#include <algorithm>
#include <array>

#include "weightcast/plan/dtype.h"

namespace weightcast::testing {
namespace {

uint64_t below(Random& random, uint64_t limit) { return random() % limit; }

// Small, huge and ordinary numbers alike.
uint64_t number(Random& random) { return random() >> below(random, 64); }

std::string text(Random& random, size_t max_characters) {
  static constexpr std::array<std::string_view, 6> kCharacters = {"a", "Z", "0", "ä", "→", "𝄞"};
  std::string result;
  const size_t size = below(random, max_characters + 1);
  for (size_t i = 0; i < size; ++i) result += kCharacters[below(random, kCharacters.size())];
  return result;
}

std::string of_alphabet(Random& random, std::string_view alphabet, size_t size) {
  std::string result;
  for (size_t i = 0; i < size; ++i) result += alphabet[below(random, alphabet.size())];
  return result;
}

Hash128 hash(Random& random) {
  Hash128 hash;
  for (std::byte& byte : hash.bytes) byte = static_cast<std::byte>(random());
  return hash;
}

int rank(Random& random) { return static_cast<int>(below(random, kMaxWorldSize + 1)) - 1; }

PeerInfo peer(Random& random) {
  return {rank(random), text(random, 60), text(random, 16), static_cast<int64_t>(number(random))};
}

double seconds(Random& random) { return static_cast<double>(number(random)) / 1024; }

RankStats stats(Random& random) {
  return {rank(random),    text(random, 60), seconds(random), seconds(random),
          seconds(random), number(random),   number(random),  number(random)};
}

TensorMeta meta(Random& random) {
  TensorMeta meta;
  meta.name = "t" + text(random, 20);
  meta.dtype = dtypes()[below(random, dtypes().size())];
  const size_t num_dimensions = below(random, 5);
  for (size_t i = 0; i < num_dimensions; ++i) meta.shape.push_back(8 * below(random, 4));
  // Six- and four-bit elements must fill their last byte.
  if (meta.shape.empty() && bits(meta.dtype) < 8) meta.shape.push_back(8);
  return meta;
}

std::vector<TensorMeta> metas(Random& random) {
  std::vector<TensorMeta> metas(below(random, 20));
  for (TensorMeta& item : metas) item = meta(random);
  return metas;
}

Error error(Random& random) {
  static constexpr std::array<Code, 9> kCodes = {
      Code::kInvalidArgument, Code::kBadInput,    Code::kPeerLost,
      Code::kDeadline,        Code::kCorruption,  Code::kRefused,
      Code::kNoResource,      Code::kUnsupported, Code::kInternal};
  return Error(kCodes[below(random, kCodes.size())], text(random, 300), rank(random));
}

Welcome welcome(Random& random) {
  Welcome welcome;
  welcome.rank = 1 + static_cast<int>(below(random, kMaxWorldSize - 1));
  welcome.world_size =
      welcome.rank + 1 +
      static_cast<int>(below(random, static_cast<uint64_t>(kMaxWorldSize - welcome.rank)));
  welcome.root = peer(random);
  welcome.config = {.bucket_size = below(random, kMaxBucketSize + 1),
                    .num_slots = static_cast<uint32_t>(random()),
                    .checksum = random() % 2 == 0,
                    .heartbeat_timeout = Duration(1 + below(random, 100'000)),
                    .backend = text(random, 10),
                    .link_name = text(random, 20),
                    .link_token = of_alphabet(random, std::string_view("\0\xff\x80z", 4), 32)};
  return welcome;
}

Begin begin(Random& random) {
  return {number(random), number(random), static_cast<MetasKnown>(below(random, 3)), metas(random),
          hash(random)};
}

End end(Random& random) {
  return {number(random),
          number(random),
          number(random),
          number(random),
          static_cast<DigestKind>(below(random, 2)),
          hash(random)};
}

Commit commit(Random& random) {
  Commit commit{number(random), std::vector<RankStats>(below(random, 9)), seconds(random),
                number(random)};
  for (RankStats& item : commit.ranks) item = stats(random);
  return commit;
}

Body body(Random& random, size_t index) {
  switch (index % std::variant_size_v<Body>) {
    case 0: return Hello{kProtocolVersion, rank(random), peer(random)};
    case 1: return welcome(random);
    case 2: return Refusal{error(random).code(), text(random, 300)};
    case 3: return Heartbeat{number(random), Duration(below(random, 100'000))};
    case 4: return Abort{number(random), error(random), random() % 2 == 0};
    case 5: return Leave{};
    case 6: return Link{number(random)};
    case 7: return begin(random);
    case 8: return end(random);
    case 9: return commit(random);
    case 10: return Linked{number(random)};
    case 11: return Ready{number(random)};
    case 12: return Done{number(random), stats(random), hash(random)};
    default: return Committed{number(random)};
  }
}

}  // namespace

Message random_message(Random& random, size_t index) {
  return {number(random), number(random), body(random, index), number(random)};
}

BucketHeader random_header(Random& random) {
  BucketHeader header{.sequence = number(random),
                      .index = number(random),
                      .used_size = below(random, kMaxBucketSize + 1),
                      .last = random() % 2 == 0};
  header.extents.resize(below(random, 20));
  for (Extent& extent : header.extents) {
    extent = {number(random), number(random), number(random), number(random)};
  }
  header.metas = metas(random);
  header.digests.resize(below(random, 20));
  for (Hash128& digest : header.digests) digest = hash(random);
  return header;
}

Ticket random_ticket(Random& random) {
  static constexpr std::string_view kKeyCharacters = "0aZ.-:+=^!/*?&<>()[]{}@%$#";
  Ticket ticket;
  ticket.session_id = of_alphabet(random, "0123456789abcdef", 32);
  const size_t num_endpoints = 1 + below(random, 5);
  for (size_t i = 0; i < num_endpoints; ++i) {
    ticket.endpoints.push_back("tcp://[::1]:" + std::to_string(below(random, 65536)));
  }
  ticket.server_public_key = of_alphabet(random, kKeyCharacters, 40);
  ticket.client = {of_alphabet(random, kKeyCharacters, 40),
                   of_alphabet(random, kKeyCharacters, 40)};
  return ticket;
}

std::vector<std::byte> mutated(std::vector<std::byte> bytes, Random& random) {
  const size_t num_changes = 1 + below(random, 4);
  for (size_t i = 0; i < num_changes && !bytes.empty(); ++i) {
    const size_t at = below(random, bytes.size());
    switch (below(random, 4)) {
      case 0: bytes[at] = static_cast<std::byte>(random()); break;
      case 1: bytes[at] ^= static_cast<std::byte>(1u << below(random, 8)); break;
      case 2: bytes.resize(at); break;
      default: bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(at), bytes[at]); break;
    }
  }
  return bytes;
}

}  // namespace weightcast::testing
