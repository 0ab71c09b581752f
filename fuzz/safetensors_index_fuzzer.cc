// An index is refused, or it names each tensor once and only files beside itself.

#include <string>
#include <string_view>

#include "weightcast/base/check.h"
#include "weightcast/plan/safetensors.h"
#include "weightcast/plan/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const auto shards = weightcast::parse_safetensors_index(json);
  if (!shards) {
    WEIGHTCAST_CHECK(shards.error().code() == weightcast::Code::kBadInput);
    WEIGHTCAST_CHECK(!shards.error().message().empty());
    WEIGHTCAST_CHECK(shards.error().message().size() < 4096);
    return 0;
  }
  std::string_view previous;
  for (const weightcast::ShardOf& shard : *shards) {
    WEIGHTCAST_CHECK(previous < shard.tensor);
    WEIGHTCAST_CHECK(weightcast::is_utf8(shard.tensor) && weightcast::is_utf8(shard.file));
    WEIGHTCAST_CHECK(!shard.file.empty() && shard.file != "." && shard.file != "..");
    WEIGHTCAST_CHECK(shard.file.find('/') == std::string::npos);
    WEIGHTCAST_CHECK(shard.file.find('\0') == std::string::npos);
    previous = shard.tensor;
  }
  return 0;
}
