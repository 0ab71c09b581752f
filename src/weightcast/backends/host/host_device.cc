#include "weightcast/backends/host/host_device.h"

#include "weightcast/backends/host/host_buffer.h"
#include "weightcast/device/host_copy.h"

namespace weightcast {
namespace {

// Whatever was recorded was done before, so there is nothing to remember.
class InlineEvent final : public Event {
 public:
  Status wait(Deadline) override { return {}; }
};

class InlineStream final : public Stream {
 public:
  Status copy(const Copy& copy) override {
    host_copy(copy);
    return {};
  }
  Status digest(ConstMemoryView bytes, std::span<uint64_t> block_digests) override {
    host_digest(bytes, block_digests);
    return {};
  }
  Status record(Event&) override { return {}; }
  Status wait(Event&) override { return {}; }
  Status synchronize(Deadline) override { return {}; }
};

class InlineHostDevice final : public Device {
 public:
  [[nodiscard]] DeviceId id() const override { return {DeviceKind::kHost, 0}; }
  Result<std::unique_ptr<Stream>> create_stream() override {
    return std::make_unique<InlineStream>();
  }
  Result<std::unique_ptr<Event>> create_event() override { return std::make_unique<InlineEvent>(); }
  Result<std::unique_ptr<Buffer>> allocate(size_t size) override {
    return allocate_host_buffer(size);
  }
};

}  // namespace

std::unique_ptr<Device> make_host_device() { return std::make_unique<InlineHostDevice>(); }

}  // namespace weightcast
