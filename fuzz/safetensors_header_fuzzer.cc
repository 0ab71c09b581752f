// A header is refused, or it covers the data without overlap or hole and survives being written.
// The input: the size of the data section, 8 bytes little-endian, and the JSON.

#include <cstring>
#include <set>
#include <string>
#include <string_view>

#include "weightcast/base/check.h"
#include "weightcast/plan/safetensors.h"

using weightcast::TensorEntry;
using weightcast::TensorMeta;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint64_t data_size = 0;
  if (size < sizeof data_size) return 0;
  std::memcpy(&data_size, data, sizeof data_size);
  const std::string_view json(reinterpret_cast<const char*>(data) + sizeof data_size,
                              size - sizeof data_size);
  const auto entries = weightcast::parse_safetensors_header(json, data_size);
  if (!entries) {
    WEIGHTCAST_CHECK(entries.error().code() == weightcast::Code::kBadInput);
    WEIGHTCAST_CHECK(!entries.error().message().empty());
    WEIGHTCAST_CHECK(entries.error().message().size() < 4096);
    return 0;
  }
  uint64_t end = 0;
  std::set<std::string_view> names;
  std::vector<TensorMeta> metas;
  for (const TensorEntry& entry : *entries) {
    WEIGHTCAST_CHECK(weightcast::check(entry.meta).has_value());
    WEIGHTCAST_CHECK(entry.offset == end);
    end += weightcast::byte_size(entry.meta);
    WEIGHTCAST_CHECK(names.insert(entry.meta.name).second);
    metas.push_back(entry.meta);
  }
  WEIGHTCAST_CHECK(end == data_size);

  const std::string written = weightcast::make_safetensors_header(metas);
  WEIGHTCAST_CHECK(written.size() % 8 == 0);
  const auto again =
      weightcast::parse_safetensors_header(std::string_view(written).substr(8), data_size);
  WEIGHTCAST_CHECK(again.has_value() && again->size() == entries->size());
  for (size_t i = 0; i < again->size(); ++i) {
    WEIGHTCAST_CHECK((*again)[i].meta == (*entries)[i].meta);
    WEIGHTCAST_CHECK((*again)[i].offset == (*entries)[i].offset);
  }
  return 0;
}
