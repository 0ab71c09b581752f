// The host as a device. Production streams are inline: a call returns when the work is done.
// One thread a stream.
#pragma once

#include <cstdint>
#include <memory>

#include "weightcast/device/device.h"

namespace weightcast {

/// Streams that do their work inside the call.
std::unique_ptr<Device> make_host_device();

/// Streams that do their work later, on a thread of their own, with pauses and reorderings between
/// streams drawn from `seed`. For tests: code that forgets to wait for an event fails here.
std::unique_ptr<Device> make_queued_host_device(uint64_t seed);

}  // namespace weightcast
