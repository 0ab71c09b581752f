// A bucket header is refused, or it is within the limits and encodes to itself, as far as it fits.

#include <span>
#include <vector>

#include "weightcast/base/check.h"
#include "weightcast/control/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using weightcast::Code;
  const auto header = weightcast::decode_bucket_header(std::as_bytes(std::span(data, size)));
  if (!header) {
    WEIGHTCAST_CHECK(header.error().code() == Code::kCorruption);
    return 0;
  }
  WEIGHTCAST_CHECK(header->used_size <= weightcast::kMaxBucketSize);
  for (const auto& meta : header->metas) WEIGHTCAST_CHECK(weightcast::check(meta).has_value());
  // Another encoder may be tighter than ours: what it made of little may take ours more.
  constexpr size_t kOurOverhead = 4;
  if (size * kOurOverhead > weightcast::kMaxHeaderSize) return 0;
  std::vector<std::byte> bytes(weightcast::kMaxHeaderSize);
  bytes.resize(weightcast::encode(*header, bytes));
  const auto again = weightcast::decode_bucket_header(bytes);
  WEIGHTCAST_CHECK(again && *again == *header);
  return 0;
}
