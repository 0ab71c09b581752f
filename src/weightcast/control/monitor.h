// What happens to a socket's connections, as libzmq reports it.
// One thread.
#pragma once

#include <cstdint>
#include <optional>

#include "weightcast/control/zmq_socket.h"

namespace weightcast {

struct ConnectionEvent {
  uint16_t kind = 0;  ///< one of ZMQ_EVENT_*
  int value = 0;      ///< descriptor of the connection, or a cause, as `kind` has it
};

class Monitor {
 public:
  /// Watches `socket` from now on; call it before the socket binds or connects.
  static Result<Monitor> create(const ZmqContext& context, ZmqSocket& socket);

  [[nodiscard]] int fd() const { return socket_.fd(); }
  /// The next event, or nothing if there is none. Never blocks.
  std::optional<ConnectionEvent> next();

 private:
  explicit Monitor(ZmqSocket socket) : socket_(std::move(socket)) {}
  ZmqSocket socket_;
};

}  // namespace weightcast
