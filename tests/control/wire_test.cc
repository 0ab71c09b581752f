#include "weightcast/control/wire.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "random_messages.h"

namespace weightcast {
namespace {

using ::testing::HasSubstr;
using testing::mutated;
using testing::Random;
using testing::random_header;
using testing::random_message;

constexpr uint64_t kSeed = 20260101;

Code code_of(const Message& message) {
  const auto decoded = decode_message(encode(message));
  return decoded ? Code::kInternal : decoded.error().code();
}

// Of a header that takes at most `max_size`.
std::vector<std::byte> encoded(const BucketHeader& header, size_t max_size = 32 * 1024) {
  std::vector<std::byte> bytes(max_size);
  bytes.resize(encode(header, bytes));
  return bytes;
}

TEST(Wire, EveryMessageComesBackAsItWas) {
  Random random(kSeed);
  for (size_t i = 0; i < 3000; ++i) {
    const Message message = random_message(random, i);
    const auto decoded = decode_message(encode(message));
    ASSERT_TRUE(decoded) << decoded.error().message();
    ASSERT_TRUE(*decoded == message) << "message " << i;
  }
}

TEST(Wire, TruncatedBytesAreCorrupt) {
  Random random(kSeed);
  for (size_t i = 0; i < std::variant_size_v<Body>; ++i) {
    const auto bytes = encode(random_message(random, i));
    for (size_t size = 0; size < bytes.size(); ++size) {
      const auto decoded = decode_message(std::span(bytes).first(size));
      ASSERT_TRUE(decoded || decoded.error().code() == Code::kCorruption);
    }
    EXPECT_FALSE(decode_message(std::span(bytes).first(bytes.size() / 2)));
  }
}

TEST(Wire, BytesOfAnyAlignmentDecode) {
  Random random(kSeed);
  const Message message = random_message(random, 7);
  const auto bytes = encode(message);
  std::vector<std::byte> buffer(bytes.size() + 8);
  for (size_t shift = 0; shift < 8; ++shift) {
    std::ranges::copy(bytes, buffer.begin() + static_cast<ptrdiff_t>(shift));
    const auto decoded = decode_message(std::span(buffer).subspan(shift, bytes.size()));
    ASSERT_TRUE(decoded && *decoded == message);
  }
}

TEST(Wire, MutatedBytesAreRefusedOrWithinTheLimits) {
  Random random(kSeed);
  for (size_t i = 0; i < 20'000; ++i) {
    const auto decoded = decode_message(mutated(encode(random_message(random, i)), random));
    if (!decoded) {
      const Code code = decoded.error().code();
      ASSERT_TRUE(code == Code::kCorruption || code == Code::kRefused);
      continue;
    }
    // What decodes encodes to the same value again: nothing was cut, so nothing broke a limit.
    const auto again = decode_message(encode(*decoded));
    ASSERT_TRUE(again && *again == *decoded);
  }
}

TEST(Wire, AnotherProtocolVersionIsRefusedNamingBoth) {
  const auto decoded = decode_message(encode({.number = 1, .body = Hello{.protocol = 7}}));
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code(), Code::kRefused);
  EXPECT_THAT(decoded.error().message(), HasSubstr("version 7, while this is version 1"));
}

TEST(Wire, ValuesBeyondTheLimitsAreCorrupt) {
  const Welcome good{.rank = 1, .world_size = 2, .config = {.heartbeat_timeout = Duration(1)}};
  ASSERT_TRUE(decode_message(encode({.body = good})));
  const auto broken = [&](auto change) {
    Welcome welcome = good;
    change(welcome);
    return code_of({.body = welcome});
  };
  EXPECT_EQ(broken([](Welcome& w) { w.rank = 0; }), Code::kCorruption);
  EXPECT_EQ(broken([](Welcome& w) { w.world_size = 1; }), Code::kCorruption);
  EXPECT_EQ(broken([](Welcome& w) { w.world_size = kMaxWorldSize + 1; }), Code::kCorruption);
  EXPECT_EQ(broken([](Welcome& w) { w.root.rank = -2; }), Code::kCorruption);
  EXPECT_EQ(broken([](Welcome& w) { w.config.bucket_size = kMaxBucketSize + 1; }),
            Code::kCorruption);
  EXPECT_EQ(broken([](Welcome& w) { w.config.heartbeat_timeout = Duration(0); }),
            Code::kCorruption);
  EXPECT_EQ(broken([](Welcome& w) { w.config.heartbeat_timeout = Duration(-1); }),
            Code::kCorruption);
  const auto with_seconds = [](double seconds) {
    return Message{.body = Commit{.seconds = seconds}};
  };
  EXPECT_EQ(code_of(with_seconds(std::nan(""))), Code::kCorruption);
  EXPECT_EQ(code_of(with_seconds(-1)), Code::kCorruption);
  EXPECT_EQ(code_of(with_seconds(std::numeric_limits<double>::infinity())), Code::kCorruption);
  EXPECT_EQ(code_of({.body = Begin{.metas = {{"", DType::kU8, {}}}}}), Code::kCorruption);
  EXPECT_EQ(code_of({.body = Begin{.metas = {{"a\xff", DType::kU8, {}}}}}), Code::kCorruption);
  EXPECT_EQ(code_of({.body = Begin{.metas = {{"a", DType{99}, {}}}}}), Code::kCorruption);
  const std::vector<uint64_t> huge = {uint64_t{1} << 40, uint64_t{1} << 40};
  EXPECT_EQ(code_of({.body = Begin{.metas = {{"a", DType::kU8, huge}}}}), Code::kCorruption);
}

TEST(Wire, LongTextsAreCutBetweenCharacters) {
  std::string text;
  while (text.size() < 100'000) text += "→";
  const auto decoded = decode_message(encode({.body = Abort{1, Error(Code::kBadInput, text)}}));
  ASSERT_TRUE(decoded) << decoded.error().message();
  const std::string& got = std::get<Abort>(decoded->body).cause.message();
  EXPECT_GT(got.size(), 16'000u);
  EXPECT_TRUE(text.starts_with(got));
}

TEST(Wire, TextsThatAreNotUtf8StillArrive) {
  const Error cause(Code::kBadInput, "file a\xff\xfe: too short", 3);
  const auto decoded = decode_message(encode({.body = Abort{1, cause}}));
  ASSERT_TRUE(decoded) << decoded.error().message();
  EXPECT_EQ(std::get<Abort>(decoded->body).cause.message(), "file a??: too short");
}

TEST(Wire, RenumberChangesTheNumberOnly) {
  Random random(kSeed);
  for (size_t i = 0; i < std::variant_size_v<Body>; ++i) {
    Message message = random_message(random, i);
    message.number = 0;
    auto bytes = encode(message);
    renumber(bytes, 77);
    message.number = 77;
    const auto decoded = decode_message(bytes);
    ASSERT_TRUE(decoded && *decoded == message);
  }
}

TEST(Wire, TheBoundIsNeverTooSmall) {
  Random random(kSeed);
  for (size_t i = 0; i < 3000; ++i) {
    const Message message = random_message(random, i);
    ASSERT_GE(encoded_size_bound(message.body), encode(message).size()) << "message " << i;
  }
}

TEST(BucketHeaderWire, EveryHeaderComesBackAsItWas) {
  Random random(kSeed);
  for (size_t i = 0; i < 2000; ++i) {
    const BucketHeader header = random_header(random);
    const auto decoded = decode_bucket_header(encoded(header));
    ASSERT_TRUE(decoded) << decoded.error().message();
    ASSERT_TRUE(*decoded == header) << "header " << i;
  }
}

TEST(BucketHeaderWire, MutatedBytesAreRefusedOrWithinTheLimits) {
  Random random(kSeed);
  for (size_t i = 0; i < 10'000; ++i) {
    const auto decoded = decode_bucket_header(mutated(encoded(random_header(random)), random));
    if (!decoded) {
      ASSERT_EQ(decoded.error().code(), Code::kCorruption);
      continue;
    }
    const auto again = decode_bucket_header(encoded(*decoded));
    ASSERT_TRUE(again && *again == *decoded);
  }
}

TEST(BucketHeaderWire, WhateverThePackerPutsIntoABucketFits) {
  // Tensors without bytes cost a header the most for the least payload.
  BucketPacker packer(kMinBucketSize);
  BucketHeader header;
  size_t num_full = 0;
  for (uint64_t i = 0; num_full < 3; ++i) {
    const std::string name = std::string(i % 3 == 0 ? 1 : i % 257, 'x') + std::to_string(i);
    const TensorMeta meta{name, DType::kU8, std::vector<uint64_t>(i % 65, 0)};
    packer.begin_tensor(meta);
    const auto placement = packer.next();
    ASSERT_TRUE(placement);
    if (placement->opens_bucket && i > 0) {
      EXPECT_LE(encoded(header, kMaxHeaderSize).size(), kMaxHeaderSize - 8);
      header = {};
      ++num_full;
    }
    header.extents.push_back(placement->extent);
    header.metas.push_back(meta);
    header.digests.emplace_back();
    ASSERT_FALSE(packer.next());
  }
}

TEST(BucketHeaderWire, ATooLargeBucketIsCorrupt) {
  const auto decoded = decode_bucket_header(encoded({.used_size = kMaxBucketSize + 1}));
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code(), Code::kCorruption);
}

}  // namespace
}  // namespace weightcast
