#include "weightcast/control/monitor.h"

#include <cerrno>
#include <cstring>

#include "weightcast/base/random.h"

namespace weightcast {

Result<Monitor> Monitor::create(const ZmqContext& context, ZmqSocket& socket) {
  const std::string endpoint = "inproc://monitor-" + random_hex(8);
  if (::zmq_socket_monitor(socket.handle(), endpoint.c_str(), ZMQ_EVENT_ALL) != 0) {
    return system_error(errno, "zmq_socket_monitor");
  }
  WEIGHTCAST_ASSIGN(ZmqSocket events, ZmqSocket::create(context, ZMQ_PAIR));
  if (const int error = events.connect(endpoint); error != 0) {
    return system_error(error, "zmq_connect");
  }
  return Monitor(std::move(events));
}

std::optional<ConnectionEvent> Monitor::next() {
  while (const auto frames = socket_.receive()) {
    // zmq_socket_monitor(3): 16 bits of kind and 32 of value in host order, then the address.
    const auto bytes = frames->front().bytes();
    if (bytes.size() < 6) continue;
    ConnectionEvent event;
    int32_t value = 0;
    std::memcpy(&event.kind, bytes.data(), sizeof event.kind);
    std::memcpy(&value, bytes.data() + sizeof event.kind, sizeof value);
    event.value = value;
    return event;
  }
  return std::nullopt;
}

}  // namespace weightcast
