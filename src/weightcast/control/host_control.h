// The root's side of the protocol: admits members, assigns ranks, sends announcements, collects
// replies, notices losses.
// The control thread's.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "weightcast/control/control_thread.h"
#include "weightcast/control/group.h"
#include "weightcast/control/host_state.h"
#include "weightcast/control/monitor.h"
#include "weightcast/control/zap.h"
#include "weightcast/control/zmq_socket.h"

namespace weightcast {

/// The root's sockets, bound and ready.
struct HostSockets {
  ZmqContext context;  // first: it ends after its sockets
  ZapHandler zap;
  ZmqSocket router;
  Monitor monitor;
};

class HostControl final : public ControlRole {
 public:
  /// `state` outlives it.
  HostControl(HostSockets sockets, const HostGroupOptions& options, HostState& state);

  [[nodiscard]] std::vector<int> fds() const override;
  bool drain(std::span<const pollfd> polled) override;
  void run(Command command) override;
  [[nodiscard]] Clock::time_point exchanged_at() const override { return exchanged_at_; }
  [[nodiscard]] Clock::time_point due() const override;
  void tick(Clock::time_point now) override;
  void resumed(Clock::duration pause) override;
  void hung_up(int rank) override;
  void leave() override;
  [[nodiscard]] bool left() const override;

 private:
  struct Member {
    std::string routing_id;
    int fd = -1;  ///< of its connection
    PeerInfo info;
    int wanted_rank = -1;
    bool gone = false;  ///< lost, or has left
    uint64_t sent = 0;
    uint64_t received = 0;
    uint64_t progress = 0;
    uint64_t announced = 0;  ///< number of the last announcement to it …
    uint64_t exchange = 0;   ///< … and the exchange that it belongs to
    Clock::time_point heard_at;
    std::optional<Clock::time_point> lost_at;  ///< its connection ended: when it counts as lost
    std::deque<Message> held;                  ///< of an epoch that this rank has not begun
  };

  void drain_monitor();
  void take_message(std::vector<ZmqFrame> frames);
  void greet(std::string routing_id, int fd, const Result<Message>& message);
  [[nodiscard]] std::optional<Refusal> why_refused(const Hello& hello) const;
  void refuse(const std::string& routing_id, const Refusal& refusal);
  void assign_ranks();
  void take_from(Member& member, Message message);
  void take_of_epoch(Member& member, const Message& message);
  void announce(const Announce& announcement);
  void begin_epoch(uint64_t epoch);
  void closes(Member& member, Clock::duration grace);
  void send(Member& member, Body body);
  void send_bytes(Member& member, std::vector<std::byte> bytes);
  void lose(Member& member, const std::string& why);
  void say_alive();
  Member* find(const std::string& routing_id);

  HostSockets sockets_;
  const HostGroupOptions options_;
  HostState& state_;
  const Clock::duration interval_;
  PeerInfo self_;
  std::vector<std::unique_ptr<Member>> members_;  ///< in order of arrival
  std::map<std::string, Member*> by_routing_id_;
  std::set<int> open_fds_;
  bool sent_since_drain_ = false;
  bool gathered_ = false;
  uint64_t epoch_ = 1;
  Clock::time_point next_heartbeat_;
  Clock::time_point exchanged_at_;
};

}  // namespace weightcast
