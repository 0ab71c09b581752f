#include "weightcast/comm/communicator.h"

#include <algorithm>

#include <fmt/format.h>

namespace weightcast {

Status validate(const CommConfig& config) {
  if (config.world_size < 1 || config.rank < 0 || config.rank >= config.world_size) {
    return Error(Code::kInvalidArgument,
                 fmt::format("no communicator for rank {} of {}", config.rank, config.world_size));
  }
  return {};
}

bool is_slot_prefix(const CommConfig& config, ConstMemoryView bytes) {
  return std::ranges::any_of(config.slots, [&](MemoryView slot) {
    return slot.data() == bytes.data() && bytes.size() <= slot.size();
  });
}

}  // namespace weightcast
