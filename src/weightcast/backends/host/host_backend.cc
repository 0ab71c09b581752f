#include <fmt/format.h>

#include "weightcast/backends/backend.h"
#include "weightcast/backends/host/host_device.h"
#include "weightcast/backends/host/solo_communicator.h"

namespace weightcast {
namespace {

Status probe() { return {}; }

Result<std::unique_ptr<Device>> open_device(int index) {
  if (index != 0) {
    return Error(Code::kInvalidArgument, fmt::format("no host device {}: there is only 0", index));
  }
  return make_host_device();
}

Result<std::unique_ptr<Communicator>> create_communicator(const CommConfig& config, Device&) {
  return create_solo_communicator(config);
}

constexpr Backend kHostBackend{"host", DeviceKind::kHost, probe, open_device, create_communicator};

}  // namespace

// Declared by the registry, through backends.def.
const Backend& host_backend();
const Backend& host_backend() { return kHostBackend; }

}  // namespace weightcast
