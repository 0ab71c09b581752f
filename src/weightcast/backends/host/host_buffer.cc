#include "weightcast/backends/host/host_buffer.h"

#include <utility>

#include "weightcast/base/mapping.h"

namespace weightcast {
namespace {

class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(Mapping mapping) : mapping_(std::move(mapping)) {}
  [[nodiscard]] MemoryView view() const override { return {mapping_.data(), mapping_.size()}; }

 private:
  Mapping mapping_;
};

}  // namespace

Result<std::unique_ptr<Buffer>> allocate_host_buffer(size_t size) {
  if (size == 0) return std::make_unique<HostBuffer>(Mapping());
  WEIGHTCAST_ASSIGN(Mapping mapping, Mapping::anonymous(size));
  return std::make_unique<HostBuffer>(std::move(mapping));
}

}  // namespace weightcast
