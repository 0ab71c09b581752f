// Admits only those who hold the ticket's client key. CURVE alone, without a handler of its
// authentication protocol (ZeroMQ RFC 27), accepts every key.
// One thread.
#pragma once

#include <string>

#include "weightcast/control/zmq_socket.h"

namespace weightcast {

class ZapHandler {
 public:
  /// Binds before any socket of `context` listens. `client_key`: 32 bytes in Z85.
  static Result<ZapHandler> create(const ZmqContext& context, const std::string& client_key);

  [[nodiscard]] int fd() const { return socket_.fd(); }
  /// Answers what has been asked; false if nothing was. Never blocks.
  bool drain();

 private:
  ZapHandler(ZmqSocket socket, std::string key)
      : socket_(std::move(socket)), key_(std::move(key)) {}
  [[nodiscard]] bool admits(const std::vector<ZmqFrame>& request) const;

  ZmqSocket socket_;
  std::string key_;  ///< 32 bytes
};

}  // namespace weightcast
