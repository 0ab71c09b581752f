// A backend is a row of functions. A new one is one folder and one line in backends.def.
// Values: copyable, any thread.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "weightcast/base/result.h"
#include "weightcast/comm/communicator.h"
#include "weightcast/device/device.h"

namespace weightcast {

struct Backend {
  std::string_view name;
  DeviceKind device_kind;
  /// Whether it can work here. The error says what is missing and how to get it.
  Status (*probe)();
  Result<std::unique_ptr<Device>> (*open_device)(int index);
  /// Requires: called on the communication thread.
  Result<std::unique_ptr<Communicator>> (*create_communicator)(const CommConfig& config,
                                                               Device& device);
};

/// Every backend of this build, in the order of backends.def.
std::span<const Backend> backends();
/// Errors: `kInvalidArgument`, listing the names there are.
Result<const Backend*> find_backend(std::string_view name);

}  // namespace weightcast
