// Finds the root of a ticket and passes its handshake.
// One thread, the caller's.
#pragma once

#include "weightcast/base/deadline.h"
#include "weightcast/control/group.h"
#include "weightcast/control/monitor.h"
#include "weightcast/control/zmq_socket.h"

namespace weightcast {

/// A connection to the root, authenticated both ways. It does not reconnect.
struct Connection {
  ZmqContext context;  // first: it ends after its sockets
  ZmqSocket socket;
  Monitor monitor;
};

/// Tries the ticket's endpoints in order until one answers, and the ticket anew where it changes.
/// Errors: `kRefused` when somebody answers who does not accept the ticket; `kDeadline`.
Result<Connection> connect_to_root(const JoinGroupOptions& options, Deadline deadline);

}  // namespace weightcast
