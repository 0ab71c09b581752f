#include "weightcast/control/connector.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weightcast/base/fd.h"
#include "weightcast/base/size.h"
#include "weightcast/control/wire.h"

namespace weightcast {
namespace {

using std::chrono::milliseconds;

constexpr Clock::duration kFirstBackoff = milliseconds(10);
constexpr Clock::duration kMaxBackoff = milliseconds(250);
// Whoever can give a newer ticket is asked for it this long before a refusal is final: the file of
// a root that has just replaced another may still be the old one.
constexpr Clock::duration kRefusalPatience = milliseconds(1000);
// A root that ends closes its connections too; one that closes twice in a row refuses.
constexpr int kMaxClosed = 2;

enum class Outcome { kConnected, kRefused, kClosed, kUnreachable };

std::optional<Outcome> outcome_of(const ConnectionEvent& event) {
  switch (event.kind) {
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED: return Outcome::kConnected;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL: return Outcome::kRefused;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
    case ZMQ_EVENT_DISCONNECTED: return Outcome::kClosed;
    case ZMQ_EVENT_CLOSED: return Outcome::kUnreachable;
    default: return std::nullopt;
  }
}

class Search {
 public:
  Search(const JoinGroupOptions& options, Deadline deadline)
      : options_(options), deadline_(deadline), ticket_(options.ticket) {}

  Result<Connection> run() {
    Clock::duration backoff = kFirstBackoff;
    while (true) {
      WEIGHTCAST_TRY(try_endpoints());
      if (connection_) return *std::move(connection_);
      if (reread_ticket()) continue;
      WEIGHTCAST_TRY(give_up());
      const std::array<int, 0> nothing{};
      // Only a pause: there is nothing to wait for.
      std::ignore = wait_readable(nothing, std::min(deadline_, Deadline::after(backoff)));
      backoff = std::min(2 * backoff, kMaxBackoff);
    }
  }

 private:
  Status try_endpoints() {
    bool refused = false;
    for (const std::string& endpoint : ticket_.endpoints) {
      WEIGHTCAST_ASSIGN(const Outcome outcome, try_endpoint(endpoint));
      if (outcome == Outcome::kConnected) return {};
      if (outcome == Outcome::kClosed) ++num_closed_;
      if (outcome == Outcome::kRefused || num_closed_ >= kMaxClosed) {
        refused = true;
        refused_by_ = endpoint;
      }
      if (deadline_.expired()) break;
    }
    if (!refused) refused_since_.reset();
    if (refused && !refused_since_) refused_since_ = Clock::now();
    return {};
  }

  Result<Outcome> try_endpoint(const std::string& endpoint) {
    WEIGHTCAST_ASSIGN(ZmqContext context, ZmqContext::create());
    WEIGHTCAST_ASSIGN(ZmqSocket socket, ZmqSocket::create(context, ZMQ_DEALER));
    configure(socket, kMaxMessageSize);
    socket.set(ZMQ_IPV6, 1);
    use_client_keys(socket, ticket_);
    WEIGHTCAST_ASSIGN(Monitor monitor, Monitor::create(context, socket));
    if (socket.connect(endpoint) != 0) return Outcome::kUnreachable;
    const Outcome outcome = wait_outcome(monitor);
    if (outcome == Outcome::kConnected) {
      connection_.emplace(Connection{std::move(context), std::move(socket), std::move(monitor)});
    }
    return outcome;
  }

  Outcome wait_outcome(Monitor& monitor) {
    const std::array<int, 1> fds = {monitor.fd()};
    while (true) {
      while (const auto event = monitor.next()) {
        if (const auto outcome = outcome_of(*event)) return *outcome;
      }
      if (!wait_readable(fds, deadline_)) return Outcome::kUnreachable;
    }
  }

  bool reread_ticket() {
    if (!options_.reread_ticket || deadline_.expired()) return false;
    auto ticket = options_.reread_ticket();
    if (!ticket || *ticket == ticket_) return false;
    ticket_ = *std::move(ticket);
    refused_since_.reset();
    num_closed_ = 0;
    return true;
  }

  [[nodiscard]] Status give_up() const {
    const Clock::duration patience =
        options_.reread_ticket ? kRefusalPatience : Clock::duration::zero();
    if (refused_since_ && (Clock::now() - *refused_since_ >= patience || deadline_.expired())) {
      return Error(Code::kRefused,
                   fmt::format("the root at {} does not accept this ticket", refused_by_), 0);
    }
    if (!deadline_.expired()) return {};
    return Error(Code::kDeadline,
                 fmt::format("no root answers at {} within {}", fmt::join(ticket_.endpoints, ", "),
                             format_duration(options_.timeout)));
  }

  const JoinGroupOptions& options_;
  const Deadline deadline_;
  Ticket ticket_;
  std::optional<Connection> connection_;
  std::optional<Clock::time_point> refused_since_;
  std::string refused_by_;
  int num_closed_ = 0;
};

}  // namespace

Result<Connection> connect_to_root(const JoinGroupOptions& options, Deadline deadline) {
  return Search(options, deadline).run();
}

}  // namespace weightcast
